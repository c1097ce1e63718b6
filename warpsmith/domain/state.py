"""States of jobs, candidates, trials and tasks, and the only moves between them."""

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    """Stored; waiting for a worker with its back end."""
    BASELINE = "baseline"
    """The user's kernel is being compiled, checked and timed."""
    PLANNING = "planning"
    """An agent step is open."""
    SEARCHING = "searching"
    VERIFYING = "verifying"
    """Winners are measured again in fresh processes."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """True for states that never change."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


_RUNNING = frozenset({JobState.BASELINE, JobState.PLANNING, JobState.SEARCHING, JobState.VERIFYING})
_ENDS = frozenset({JobState.DONE, JobState.FAILED, JobState.CANCELLED})

JOB_MOVES: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: _RUNNING | {JobState.FAILED, JobState.CANCELLED},
    **{state: (_RUNNING | _ENDS) - {state} for state in _RUNNING},
    **{state: frozenset() for state in _ENDS},
}
"""Allowed moves; terminal states have none."""


class CandidateState(StrEnum):
    """Where a candidate stands."""

    SEARCHING = "searching"
    SEARCHED = "searched"
    """Its share of the budget is spent, or its space is exhausted."""
    VERIFIED = "verified"
    REJECTED = "rejected"
    """Its template does not compile or fails its check with default parameters."""


class TrialState(StrEnum):
    """Where a trial stands."""

    PROPOSED = "proposed"
    FINISHED = "finished"


class CompilationState(StrEnum):
    """Where a compilation for somebody else stands."""

    WANTED = "wanted"
    TAKEN = "taken"
    DONE = "done"
    FAILED = "failed"
    """No binary came of it; whoever wanted it compiles it again, since compilers differ."""


class TaskKind(StrEnum):
    """What a worker can be asked to do."""

    BASELINE = "baseline"
    """Check and time the user's kernel."""
    CHECK_CASES = "check_cases"
    """Try a tester's cases on the user's kernel."""
    PROFILE = "profile"
    """Read hardware counters of a candidate's best configuration."""
    AGENT_STEP = "agent_step"
    """Ask an agent."""
    SLICE = "slice"
    """Run trials of a candidate."""
    VERIFY = "verify"
    """Measure the winners again."""


class TaskState(StrEnum):
    """Where a task stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    """Given up after too many attempts; the history says why."""
    CANCELLED = "cancelled"
