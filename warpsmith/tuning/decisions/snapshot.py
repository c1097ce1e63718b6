"""A job as the input of decisions, and the actions that decisions return."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import CandidateState, JobState, TaskKind, TaskState
from warpsmith.domain.templates.declined_rule import DeclinedRule
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.decisions.unserved_jobs import Unserved
from warpsmith.tuning.tasks import Payload, Result

MEASURING = "measuring the kernel as it is"
"""Default detail of a job from its first task on."""


@dataclass(frozen=True)
class TaskView:
    """A task in the form that decisions need."""

    id: str
    kind: TaskKind
    state: TaskState
    payload: Payload | None
    result: Result | None
    """Result of the task; None before its end."""
    error: str = ""

    @property
    def is_open(self) -> bool:
        """True while a worker may still return a result."""
        return self.state in (TaskState.QUEUED, TaskState.RUNNING)


@dataclass(frozen=True)
class CandidateSummary:
    """A candidate in the form that decisions need."""

    id: str
    number: int
    round: int
    state: CandidateState
    made_by: str
    """Id of the task that made it."""
    trials: int
    measured: int
    best_objective: float | None
    feasible: int | None = None
    """Number of its configurations; None if not counted yet."""


@dataclass(frozen=True)
class JobSnapshot:
    """Everything a decision depends on."""

    job: Job
    state: JobState
    device_class: str | None
    available_classes: Sequence[str]
    """Device classes of living workers with the job's back end."""
    elapsed_s: float
    """Seconds since the job first had its device, without the time it waited for the device."""
    trials_done: int
    tasks: Sequence[TaskView]
    candidates: Sequence[CandidateSummary]
    devices: int = 1
    """This job's share of the living devices of its class: the number of slices that may run concurrently."""
    reused: int = 0
    """Number of results of earlier jobs that were taken over; `trials_done` is without them."""
    unserved: Unserved | None = None
    """Capabilities that workers lack, if the job waits for a device that none offers."""


@dataclass(frozen=True)
class PinDevice:
    """Bind the job to a device class, so that all its timings are comparable."""

    device_class: str


@dataclass(frozen=True)
class StartTask:
    """Queue a task. Agent steps go to `agents`, everything else to the job's device class."""

    payload: Payload

    @property
    def kind(self) -> TaskKind:
        """The kind of the task."""
        return self.payload.kind


@dataclass(frozen=True)
class AddCandidate:
    """Store the template that an agent step returned."""

    number: int
    round: int
    parent: str | None
    template: Template
    declined: tuple[DeclinedRule, ...]
    made_by: str


@dataclass(frozen=True)
class SetCandidate:
    """Move a candidate."""

    id: str
    state: CandidateState


@dataclass(frozen=True)
class SetJobState:
    """Move the job, or renew its detail."""

    state: JobState
    detail: str


@dataclass(frozen=True)
class NoteWait:
    """Add to the job's detail what it waits for."""

    words: str


Action = PinDevice | StartTask | AddCandidate | SetCandidate | SetJobState | NoteWait


def apply(snapshot: JobSnapshot, action: Action, new_id: str = "") -> JobSnapshot:
    """The snapshot after an action.

    Args:
        new_id: id of the task or the candidate that the action makes.
    """
    match action:
        case PinDevice():
            return replace(snapshot, device_class=action.device_class)
        case SetJobState():
            return replace(snapshot, state=action.state)
        case SetCandidate():
            moved = [replace(c, state=action.state) if c.id == action.id else c for c in snapshot.candidates]
            return replace(snapshot, candidates=tuple(moved))
        case AddCandidate():
            searching = CandidateState.SEARCHING
            new = CandidateSummary(new_id, action.number, action.round, searching, action.made_by, 0, 0, None)
            return replace(snapshot, candidates=(*snapshot.candidates, new))
        case StartTask():
            task = TaskView(new_id, action.kind, TaskState.QUEUED, action.payload, None)
            return replace(snapshot, tasks=(*snapshot.tasks, task))
        case NoteWait():
            return snapshot


def end_task(
    snapshot: JobSnapshot, task_id: str, state: TaskState, result: Result | None, error: str = ""
) -> JobSnapshot:
    """The snapshot after a task has ended."""
    tasks = [
        replace(t, state=state, result=result, error=error) if t.id == task_id else t for t in snapshot.tasks
    ]
    return replace(snapshot, tasks=tuple(tasks))
