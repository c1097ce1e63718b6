"""Reads a job in the form that `tuning.decisions.decide` needs."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from db import job_clock
from db.engine import now
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from db.tables import JobRow, TaskRow
from db.views.unserved_jobs import unserved
from warpsmith.domain.jobs.memory import fitting
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.settings import UNSERVED_S
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot, TaskView
from warpsmith.tuning.tasks import JobBaseline, joined

ON_THE_KERNEL = (TaskKind.BASELINE, TaskKind.CHECK_CASES, TaskKind.PROFILE)
"""Kinds of tasks whose results `job_baseline` joins."""


def job_baseline(session: Session, job_id: str, before: int | None = None) -> JobBaseline | None:
    """Baseline of the user's kernel; None before it was measured.

    Args:
        before: what tasks of this number and later ones brought is left out; None: nothing is.
    """
    query = select(TaskRow.result).where(TaskRow.job_id == job_id, TaskRow.kind.in_(ON_THE_KERNEL))
    if before is not None:
        query = query.where(TaskRow.number < before)
    return joined(session.scalars(query.order_by(TaskRow.number)))


def elapsed_s(session: Session, row: JobRow) -> float:
    """See `db.job_clock.elapsed_s`."""
    return job_clock.elapsed_s(row, now(session))


def _classes(session: Session, job: JobRow) -> list[str]:
    """Device classes that could serve a job: with its back end and enough memory."""
    offered = WorkerRepository(session).of_backend(job.backend)
    return sorted({d.device_class for d in fitting(job.spec, offered)})


def load_snapshot(session: Session, job_id: str, unserved_s: float = UNSERVED_S) -> JobSnapshot:
    """Everything on which the next decision about a job depends.

    Args:
        unserved_s: seconds for which no worker may be able to serve it; 0: until a worker reports so.

    Raises:
        NotFound: no job has that id.
    """
    job = JobRepository(session).get(job_id, with_spec=True)
    tasks = TaskRepository(session).of_job(job_id)
    candidates = CandidateRepository(session).of_job(job_id)
    available = _classes(session, job) if job.device_class is None else ()
    waits = job.device_class is None or any(
        t.state is TaskState.QUEUED and t.kind is not TaskKind.AGENT_STEP for t in tasks
    )
    devices = 1
    if job.device_class is not None and job.state in (JobState.PLANNING, JobState.SEARCHING):
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
                payload=t.payload,
                result=t.result,
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
        reused=TrialRepository(session).reused(job_id),
        unserved=unserved(session, job, unserved_s) if waits else None,
    )
