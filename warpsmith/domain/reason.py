"""Reasons for the end of a job, each in one sentence that a person and a program can read."""

from enum import StrEnum

from warpsmith.domain.base import Frozen


class ReasonCode(StrEnum):
    """Kinds of end. All but `gain` say why the kernel is kept as it is."""

    GAIN = "gain"
    """At least one workload is served by a configuration that was measured to be faster."""
    NO_RULE = "no_rule"
    """No rule could change the kernel, so there was nothing to search."""
    TEMPLATE_FAILED = "template_failed"
    """The template did not compile or gave wrong results: a fault of the rules or of the agent."""
    ALL_REFUSED = "all_refused"
    """Every configuration but the kernel's own failed a check, so nothing was compared with the kernel."""
    TOO_NOISY = "too_noisy"
    """Runs of the same kernel differ by more than the possible gain."""
    AT_FLOOR = "at_floor"
    """The kernel needs about the shortest time that the device's memory and launches allow."""
    BUDGET_SPENT = "budget_spent"
    """The budget was spent before most configurations were tried."""
    NOT_CONFIRMED = "not_confirmed"
    """The search saw a gain that the measurement in fresh processes did not confirm."""
    BEST_AS_IS = "best_as_is"
    """The original kernel was the best of all kernels tried."""
    KERNEL_REFUSED = "kernel_refused"
    """The kernel or its reference cannot be used as submitted."""
    GIVEN_UP = "given_up"
    """The service could not go on."""


class Reason(Frozen):
    """The reason why a job ended, and the extent of its search."""

    code: ReasonCode
    sentence: str
    search: str = ""
    """Number of configurations tried, of the total; empty if nothing was searched."""

    @property
    def is_gain(self) -> bool:
        """True if there is a faster kernel to use."""
        return self.code is ReasonCode.GAIN
