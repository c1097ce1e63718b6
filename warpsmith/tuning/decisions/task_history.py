"""Queries over the tasks of a job: its baseline, its slices, its steps, its profiles. Pure."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from warpsmith.domain.state import CandidateState, SliceEnd, TaskKind, TaskState
from warpsmith.domain.templates.template import RuleFault
from warpsmith.tuning.decisions.snapshot import JobSnapshot, TaskView
from warpsmith.tuning.tasks import (
    JobBaseline,
    Payload,
    ProfilePayload,
    Result,
    SlicePayload,
    SliceResult,
    StepPayload,
    joined,
)


def best_so_far(snapshot: JobSnapshot) -> float | None:
    """The best objective of any candidate that is not rejected; None if none was measured."""
    known = (c.best_objective for c in snapshot.candidates if c.state is not CandidateState.REJECTED)
    return min((best for best in known if best is not None), default=None)


def baseline_of(snapshot: JobSnapshot) -> JobBaseline:
    """Results of the user's kernel from all tasks; its baseline must have been measured."""
    found = joined(t.result for t in snapshot.tasks)
    assert found is not None, "decide starts with the baseline"
    return found


def steps_of(snapshot: JobSnapshot) -> list[StepPayload]:
    """Questions to agents, in order."""
    return [t.payload for t in snapshot.tasks if isinstance(t.payload, StepPayload)]


class AskedTask(Protocol):
    """A task in any form."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def payload(self) -> Payload | None:
        """Payload of the task."""
        ...


def ideas_in(tasks: Iterable[AskedTask]) -> dict[str, str]:
    """Names of the ideas that agent steps follow, by task; without steps of no idea."""
    return {t.id: t.payload.idea for t in tasks if isinstance(t.payload, StepPayload) and t.payload.idea}


def slices_of(snapshot: JobSnapshot) -> list[SlicePayload]:
    """Slices of a job, in order."""
    return [t.payload for t in snapshot.tasks if isinstance(t.payload, SlicePayload)]


def last_task(snapshot: JobSnapshot, kind: TaskKind) -> TaskView | None:
    """The newest task of a kind that was not given up."""
    alive = (t for t in reversed(snapshot.tasks) if t.state is not TaskState.DEAD)
    return next((t for t in alive if t.kind is kind), None)


def faults_of(snapshot: JobSnapshot) -> tuple[RuleFault, ...]:
    """Faulty rewrite rules of this job, each once, in the order of discovery."""
    return faults_in(t.result for t in snapshot.tasks)


def faults_in(results: Iterable[Result | None]) -> tuple[RuleFault, ...]:
    """Faulty rewrite rules in results of tasks."""
    found: dict[str, RuleFault] = {}
    for result in results:
        for fault in result.faults if isinstance(result, SliceResult) else ():
            found.setdefault(fault.rule, fault)
    return tuple(found.values())


def mending(snapshot: JobSnapshot) -> str:
    """Detail of a job while a template is made again."""
    faults = faults_of(snapshot)
    return f"mending a template of ours; {faults[-1].words}" if faults else "mending a rejected template"


def last_slice(snapshot: JobSnapshot, candidate: str) -> SliceResult | None:
    """The result of a candidate's newest slice; None if there is none yet."""
    for task in reversed(snapshot.tasks):
        if isinstance(task.payload, SlicePayload) and task.payload.candidate == candidate:
            return task.result if isinstance(task.result, SliceResult) else None
    return None


def slice_results(tasks: Iterable[TaskView], candidate: str) -> list[SliceResult]:
    """Results of a candidate's slices, in order."""
    return [
        t.result
        for t in tasks
        if isinstance(t.payload, SlicePayload)
        and t.payload.candidate == candidate
        and isinstance(t.result, SliceResult)
    ]


def is_exhausted(tasks: Iterable[TaskView], candidate: str) -> bool:
    """True if the searcher of a candidate has nothing more to propose."""
    return any(r.ended_by is SliceEnd.EXHAUSTED for r in slice_results(tasks, candidate))


def is_spent(tasks: Iterable[TaskView], candidate: str, trials: int) -> bool:
    """True if the slices of a candidate have proposed all of this number of trials."""
    return any(
        isinstance(t.payload, SlicePayload)
        and t.payload.candidate == candidate
        and t.payload.candidate_trials == trials
        and isinstance(t.result, SliceResult)
        and t.result.ended_by is SliceEnd.SPENT
        for t in tasks
    )


def is_fatal(task: TaskView) -> bool:
    """True if a task was given up that the job needs; profiles and tools are dispensable."""
    return task.state is TaskState.DEAD and task.kind not in (TaskKind.PROFILE, TaskKind.TOOL)


def to_profile(tasks: Sequence[TaskView], baseline: JobBaseline, candidate: str | None) -> bool:
    """True if the best of a candidate is to be profiled: that works here, and was not done yet."""
    if candidate is None or not baseline.counters.values or any(c.missing for c in baseline.counted):
        return False
    searched = seen = -1
    for place, task in enumerate(tasks):
        if task.kind is TaskKind.PROFILE and task.state is TaskState.DEAD:
            return False
        if isinstance(task.payload, SlicePayload) and task.payload.candidate == candidate:
            searched = place
        if isinstance(task.payload, ProfilePayload) and task.payload.candidate == candidate:
            seen = place
    return seen < searched
