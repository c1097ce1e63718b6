"""What decisions read from the rows of a job. Pure."""

from collections.abc import Iterable

from warpsmith.domain.state import TaskKind, TaskState
from warpsmith.domain.template import RuleFault
from warpsmith.tuning.actions import JobSnapshot, Result, TaskView
from warpsmith.tuning.tasks import BaselineResult, SlicePayload, SliceResult, StepPayload


def best_so_far(snapshot: JobSnapshot) -> float | None:
    """The best objective of any candidate; None where none was measured."""
    return min((c.best_objective for c in snapshot.candidates if c.best_objective is not None), default=None)


def baseline_of(snapshot: JobSnapshot) -> BaselineResult:
    """The newest result of the baseline, of which there must be one."""
    view = last_task(snapshot, TaskKind.BASELINE)
    assert view is not None and isinstance(view.result, BaselineResult), "decide starts with the baseline"
    return view.result


def steps_of(snapshot: JobSnapshot) -> list[StepPayload]:
    """What agents were asked, in order."""
    return [t.payload for t in snapshot.tasks if isinstance(t.payload, StepPayload)]


def last_task(snapshot: JobSnapshot, kind: TaskKind) -> TaskView | None:
    """The newest task of a kind that was not given up."""
    alive = (t for t in reversed(snapshot.tasks) if t.state is not TaskState.DEAD)
    return next((t for t in alive if t.kind is kind), None)


def faults_of(snapshot: JobSnapshot) -> tuple[RuleFault, ...]:
    """Rules of ours that made templates of this job fail, each once, as they were found."""
    return faults_in(t.result for t in snapshot.tasks)


def faults_in(results: Iterable[Result]) -> tuple[RuleFault, ...]:
    """The same, of results of tasks."""
    found: dict[str, RuleFault] = {}
    for result in results:
        for fault in result.faults if isinstance(result, SliceResult) else ():
            found.setdefault(fault.rule, fault)
    return tuple(found.values())


def mending(snapshot: JobSnapshot) -> str:
    """What a job says while a template is made again."""
    faults = faults_of(snapshot)
    return f"mending a template of ours; {faults[-1].words}" if faults else "mending a rejected template"


def last_slice(snapshot: JobSnapshot, candidate: str) -> SliceResult | None:
    """The result of a candidate's newest slice; None where there is none yet."""
    for task in reversed(snapshot.tasks):
        if isinstance(task.payload, SlicePayload) and task.payload.candidate == candidate:
            return task.result if isinstance(task.result, SliceResult) else None
    return None
