"""Rows that several tests need."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.message_names import device_queue
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.tables import CandidateRow, JobRow, TaskRow, TrialRow, WorkloadRow
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import TaskKind, TrialState
from warpsmith.domain.templates.outcome import (
    CutShort,
    Measured,
    Rejected,
    Stage,
    TimeSummary,
    WorkloadTiming,
)
from warpsmith.domain.templates.template import Template
from warpsmith.testing.jobs import DEVICE, scale_job


def add_job(session: Session, job: Job | None = None) -> JobRow:
    return JobRepository(session).create(job or scale_job())[0]


def add_task(session: Session, job_id: str, kind: TaskKind = TaskKind.BASELINE) -> TaskRow:
    return TaskRepository(session).enqueue(job_id, kind, device_queue(DEVICE.device_class), None)


def add_candidate(session: Session, job_id: str, number: int = 0) -> CandidateRow:
    job = scale_job()
    template = Template(kernel=job.kernel, space=job.space)
    return CandidateRepository(session).add(job_id, number, number + 1, None, template, (), "step")


def workload_rows(session: Session, job_id: str) -> Sequence[WorkloadRow]:
    """Progress of a job by workload, in the order of the job form."""
    query = select(WorkloadRow).where(WorkloadRow.job_id == job_id).order_by(WorkloadRow.position)
    return session.scalars(query).all()


def unfinished(session: Session, candidate_id: str) -> Sequence[TrialRow]:
    """Trials of a candidate that were proposed and never finished, in the order of proposal."""
    query = select(TrialRow).where(TrialRow.candidate_id == candidate_id)
    return session.scalars(query.where(TrialRow.state == TrialState.PROPOSED).order_by(TrialRow.number)).all()


def measured(times_us: dict[str, float], objective: float) -> Measured:
    def timing(key: str, value: float) -> WorkloadTiming:
        summary = TimeSummary(median_us=value, low_us=value, high_us=value, samples=5, launches_per_sample=1)
        return WorkloadTiming(workload=key, cold=summary, max_error=0.0)

    return Measured(timings=tuple(timing(k, v) for k, v in times_us.items()), objective=objective)


def cut_short(times_us: dict[str, float], estimate: float, skipped: str) -> CutShort:
    return CutShort(timings=measured(times_us, 1.0).timings, skipped=(skipped,), estimate=estimate)


def rejected(reason: str, stage: Stage = Stage.CORRECTNESS) -> Rejected:
    return Rejected(stage=stage, reason=reason)
