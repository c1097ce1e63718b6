"""A job as the input of decisions, and the actions that decisions return."""

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.domain.job import Job
from warpsmith.domain.state import CandidateState, JobState, TaskKind, TaskState
from warpsmith.domain.template import Template
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
    """None in rows of older versions."""
    result: Result | None
    """None before it has ended."""
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
    declined: tuple[str, ...]
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
