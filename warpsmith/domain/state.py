"""States of jobs, candidates, trials and tasks, and the allowed moves between them."""

from enum import StrEnum


class JobState(StrEnum):
    """States of a job."""

    QUEUED = "queued"
    """Stored; waits for a worker with its back end."""
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
    """States of a candidate."""

    SEARCHING = "searching"
    SEARCHED = "searched"
    """Its share of the budget is spent, or its space is exhausted."""
    REJECTED = "rejected"
    """Its template does not compile or fails its check with default parameters."""


class TrialState(StrEnum):
    """States of a trial."""

    PROPOSED = "proposed"
    FINISHED = "finished"


class CompilationState(StrEnum):
    """States of a compilation requested by another worker."""

    WANTED = "wanted"
    TAKEN = "taken"
    DONE = "done"
    FAILED = "failed"
    """No binary was produced. The requester compiles the kernel itself, since compilers differ."""


class TaskKind(StrEnum):
    """Kinds of tasks that a worker can run."""

    BASELINE = "baseline"
    """Check and time the user's kernel."""
    CHECK_CASES = "check_cases"
    """Try a tester's cases on the user's kernel."""
    PROFILE = "profile"
    """Read hardware counters of a candidate's best configuration."""
    AGENT_STEP = "agent_step"
    """Ask an agent."""
    TOOL = "tool"
    """Use tools on a device for an agent that has not answered yet."""
    SLICE = "slice"
    """Run trials of a candidate."""
    VERIFY = "verify"
    """Measure the winners again."""


class TaskState(StrEnum):
    """States of a task."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    """Given up after too many attempts; the history says why."""
    CANCELLED = "cancelled"


class SliceEnd(StrEnum):
    """Reasons why a slice of a search ended."""

    LIMIT = "limit"
    """Its seconds, its trials, its lease or the job ended; the search may go on."""
    EXHAUSTED = "exhausted"
    """The searcher has nothing more to propose."""
    SPENT = "spent"
    """All trials that the candidate's slices may have between them are proposed."""
    REJECTED = "rejected"
    """The template fails with its default configuration: the candidate is of no use."""
