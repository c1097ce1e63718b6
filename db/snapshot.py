"""Reads a job as `tuning.decisions.decide` sees it."""

from typing import TypeVar

from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from db.engine import clock
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.tables import JobRow, TaskRow
from db.unserved_jobs import unserved
from warpsmith.domain.memory import fitting
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.settings import UNSERVED_S
from warpsmith.tuning.decisions.decide import CandidateSummary, JobSnapshot, Payload, Result, TaskView
from warpsmith.tuning.tasks import (
    BaselineResult,
    ChecksPayload,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
    VerifyPayload,
    VerifyResult,
)

PAYLOADS: dict[TaskKind, type[ChecksPayload | StepPayload | SlicePayload | VerifyPayload]] = {
    TaskKind.BASELINE: ChecksPayload,
    TaskKind.AGENT_STEP: StepPayload,
    TaskKind.SLICE: SlicePayload,
    TaskKind.VERIFY: VerifyPayload,
}
RESULTS: dict[TaskKind, type[BaselineResult | StepResult | SliceResult | VerifyResult]] = {
    TaskKind.BASELINE: BaselineResult,
    TaskKind.AGENT_STEP: StepResult,
    TaskKind.SLICE: SliceResult,
    TaskKind.VERIFY: VerifyResult,
}


def task_payload(row: TaskRow) -> Payload:
    """What the task was given."""
    return None if row.payload is None else PAYLOADS[row.kind].model_validate(row.payload)


def task_result(row: TaskRow) -> Result:
    """What the task brought back; None before it has."""
    return None if row.result is None else RESULTS[row.kind].model_validate(row.result)


R = TypeVar("R", bound=BaseModel)


def last_result(
    session: Session, job_id: str, kind: TaskKind, model: type[R], before: int | None = None
) -> R | None:
    """The newest result of a kind of task of a job, of those with a number below `before` where given."""
    query = select(TaskRow.result).where(TaskRow.job_id == job_id, TaskRow.kind == kind)
    if before is not None:
        query = query.where(TaskRow.number < before)
    query = query.where(TaskRow.result.is_not(None)).order_by(TaskRow.number.desc()).limit(1)
    found = session.execute(query).scalar_one_or_none()
    return None if found is None else model.model_validate(found)


def elapsed_s(session: Session, row: JobRow) -> float:
    """Seconds since the job first had its device, up to its end, without those that it waited for the device;
    0 before the start."""
    if row.started_at is None:
        return 0.0
    end = row.waiting_since or row.finished_at or session.execute(select(clock(session))).scalar_one()
    return max(0.0, (end - row.started_at).total_seconds() - row.waited_s)


def _classes(session: Session, job: JobRow) -> list[str]:
    """Device classes that could serve a job: of those with its back end, the ones with the memory."""
    offered = WorkerRepository(session).of_backend(job.backend)
    return sorted({d.device_class for d in fitting(job.spec, offered)})


def load_snapshot(session: Session, job_id: str, unserved_s: float = UNSERVED_S) -> JobSnapshot:
    """Everything the next decision about a job depends on.

    Args:
        unserved_s: how long nobody may be able to serve it; 0: no longer than until a worker says so.

    Raises:
        NotFound: there is no such job.
    """
    job = JobRepository(session).get(job_id, with_spec=True)
    tasks = TaskRepository(session).of_job(job_id)
    candidates = CandidateRepository(session).of_job(job_id)
    available = _classes(session, job) if job.device_class is None else ()
    waits = job.device_class is None or any(
        t.state is TaskState.QUEUED and t.kind is not TaskKind.AGENT_STEP for t in tasks
    )
    devices = 1
    if job.device_class is not None and job.state is JobState.SEARCHING:
        # Where several jobs want the devices, each is searched on its share, in slices worth their start.
        sharing = JobRepository(session).pinned(job.device_class)
        devices = max(1, WorkerRepository(session).devices(job.device_class) // max(1, sharing))
    return JobSnapshot(
        job=job.spec,
        state=job.state,
        device_class=job.device_class,
        available_classes=available,
        elapsed_s=elapsed_s(session, job),
        trials_done=job.trials_done,
        tasks=[
            TaskView(
                id=t.id,
                kind=t.kind,
                state=t.state,
                payload=task_payload(t),
                result=task_result(t),
                error=t.error,
            )
            for t in tasks
        ],
        candidates=[
            CandidateSummary(
                id=c.id,
                number=c.number,
                round=c.round,
                state=c.state,
                made_by=c.made_by,
                trials=c.trials,
                measured=c.measured,
                best_objective=c.best_objective,
                feasible=c.feasible,
            )
            for c in candidates
        ],
        devices=devices,
        unserved=unserved(session, job, unserved_s) if waits else None,
    )
