"""Why a job ended as it did, in one sentence that a person and a program can read."""

from enum import StrEnum

from warpsmith.domain.base import Frozen


class ReasonCode(StrEnum):
    """Which end it was. All but `gain` say why the kernel stays as it is."""

    GAIN = "gain"
    """At least one workload is served by a configuration that was measured to be faster."""
    NO_RULE = "no_rule"
    """No rule could change the kernel, so there was nothing to search."""
    TEMPLATE_FAILED = "template_failed"
    """What was made of the kernel did not compile or was not right: a fault of the rules or the agent."""
    TOO_NOISY = "too_noisy"
    """Runs of one kernel differ by more than what might be gained."""
    AT_FLOOR = "at_floor"
    """The kernel needs about the shortest time that the device's memory and launches allow."""
    BUDGET_SPENT = "budget_spent"
    """Most configurations were not tried before the budget was spent."""
    NOT_CONFIRMED = "not_confirmed"
    """The search saw a gain, which did not survive the measurement in fresh processes."""
    BEST_AS_IS = "best_as_is"
    """The kernel as it is was the best of what was tried."""
    KERNEL_REFUSED = "kernel_refused"
    """The kernel, or its reference, is of no use as it was posted."""
    GIVEN_UP = "given_up"
    """The service could not go on."""


class Reason(Frozen):
    """Why a job ended, and how far its search came."""

    code: ReasonCode
    sentence: str
    search: str = ""
    """How many configurations were tried, of how many; empty where nothing was searched."""

    @property
    def is_gain(self) -> bool:
        """Whether there is something to use."""
        return self.code is ReasonCode.GAIN
