"""Bodies of the responses that charts show: trials as points, the seconds of a job by stage."""

from typing import Literal

from warpsmith.domain.base import Frozen
from warpsmith.domain.templates.outcome import OutcomeKind

JobStage = Literal["queue", "baseline", "agents", "search", "verification", "device", "decisions"]


class RejectionWords(Frozen):
    """Reason of rejected trials: its stage and its words."""

    stage: str
    reason: str
    """The reason with its numbers blanked, shortened: similar reasons are one."""


class TrialPoints(Frozen):
    """Finished trials of a job in the order of proposal: columns of one length."""

    number: tuple[int, ...] = ()
    at_s: tuple[float, ...] = ()
    """Seconds from the job's first use of its device to the end of the trial."""
    round: tuple[int, ...] = ()
    candidate: tuple[int, ...] = ()
    """Number of the candidate within the job, from 0."""
    gain: tuple[float | None, ...] = ()
    """Baseline time divided by the trial's time, over all workloads; None unless it was measured."""
    outcome: tuple[OutcomeKind, ...] = ()
    rejection: tuple[int | None, ...] = ()
    """Index in `rejections`; None unless it was rejected."""
    reused: tuple[bool, ...] = ()
    """True if the trial was taken over from an earlier job."""
    rejections: tuple[RejectionWords, ...] = ()
    """Reasons that `rejection` points to. Each response has indices of its own."""
    next: float = 0.0
    """Pass it as `since` to get what is new. Some points of this response come again; their numbers tell."""


class StageSeconds(Frozen):
    """Time that a job spent in one stage."""

    stage: JobStage
    """`queue`: waiting for its first turn on a device; `baseline`: the user's kernel is checked and timed;
    `agents`: questions to agents until their answers, with the tools and profiles used for them; `search`:
    trials are run; `verification`: winners are measured again; `device`: waiting for a device later on;
    `decisions`: nothing is open, and the service decides what comes next."""
    round: int | None = None
    """Round of agents' questions and of searches; None for other stages."""
    seconds: float


class JobSeconds(Frozen):
    """Time of a job by stage and round, from its submission to its end, or so far."""

    seconds: float
    """All of it; the sum of the stages."""
    stages: tuple[StageSeconds, ...]
    """In the order in which they began. No moment counts twice: if several stages run, the device's counts;
    of those, verification before search before baseline."""
