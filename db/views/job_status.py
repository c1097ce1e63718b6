"""Statuses of jobs: one statement, because clients poll them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Label, Row, Select, bindparam, func, literal, select, type_coerce
from sqlalchemy.orm import Session

from db.column_types import UtcDateTime
from db.engine import Database, utc_now
from db.event_cursor import final
from db.job_clock import elapsed_s
from db.repositories.workers import ALIVE_S
from db.tables import CandidateRow, EventRow, JobRow, WorkerRow, WorkloadRow
from db.tenant_sessions import TENANT
from db.trouble import trouble_of
from db.views.queue_places import QueuePlace, places
from warpsmith.domain.state import JobState
from warpsmith.errors import NotFound
from warpsmith.http_models import NO_WORKER, JobStatus, WorkloadProgress
from warpsmith.tuning.decisions.snapshot import MEASURING

_JOB, _WORKLOAD, _CANDIDATE = JobRow.__table__, WorkloadRow.__table__, CandidateRow.__table__
_WORKER = WorkerRow.__table__


def poll_statuses(database: Database, job_ids: Sequence[str]) -> dict[str, JobStatus]:
    """Statuses of these jobs by id, without a transaction; missing jobs are left out."""
    with database.single() as connection:
        return _read(connection, database.tenant, job_ids)


@dataclass(frozen=True)
class Watched:
    """Status of a watched job, and the number of its events."""

    status: JobStatus
    events: int
    """Number of its events, without those before which others may still come."""


def watched_statuses(database: Database, job_ids: Sequence[str]) -> dict[str, Watched]:
    """Statuses of these jobs by id with the number of their events, in one statement; missing jobs are left
    out."""
    with database.single() as connection:
        rows = _rows(connection, database.tenant, job_ids, with_events=True)
        found = _statuses(connection, rows)
        return {job_id: Watched(found[job_id], of_job[0].events) for job_id, of_job in rows.items()}


def job_status(session: Session, job_id: str) -> JobStatus:
    """Status of a job, as this transaction sees it.

    Raises:
        NotFound: no job has that id.
    """
    found = job_statuses(session, [job_id])
    if not found:
        raise NotFound(f"no job {job_id}")
    return found[0]


def job_statuses(session: Session, job_ids: Sequence[str]) -> list[JobStatus]:
    """Statuses of these jobs, in this order."""
    session.flush()
    found = _read(session.connection(), session.info.get(TENANT), job_ids)
    return [found[job_id] for job_id in job_ids if job_id in found]


def _read(connection: Connection, tenant: str | None, job_ids: Sequence[str]) -> dict[str, JobStatus]:
    return _statuses(connection, _rows(connection, tenant, job_ids))


_Rows = dict[str, list[Row[Any]]]
"""By job, a row for every workload."""


def _rows(
    connection: Connection, tenant: str | None, job_ids: Sequence[str], *, with_events: bool = False
) -> _Rows:
    query = _query(connection.dialect.name == "postgresql", tenant is not None)
    if with_events:
        query = query.add_columns(_events(connection))
    bound = {"job_ids": list(job_ids)} | ({} if tenant is None else {"tenant": tenant})
    rows: _Rows = {}
    for row in connection.execute(query, bound):
        rows.setdefault(row.id, []).append(row)
    return rows


def _events(connection: Connection) -> Label[int]:
    counted = select(func.count()).where(EventRow.job_id == _JOB.c.id, final(connection))
    return counted.correlate(_JOB).scalar_subquery().label("events")


def _statuses(connection: Connection, rows: _Rows) -> dict[str, JobStatus]:
    waiting = places(connection, [job_id for job_id, of_job in rows.items() if not_begun(of_job[0])])
    file = (connection.engine.url.database or "") if connection.dialect.name == "sqlite" else None
    found = {}
    for job_id, of_job in rows.items():
        seen, now = of_job[0].worker_seen, of_job[0].now
        # The embedded mode's only worker comes with its service.
        gone = file is None and (seen is None or (now - seen).total_seconds() > ALIVE_S)
        trouble = NO_WORKER if gone else "" if file is None else trouble_of(file)
        found[job_id] = _status(of_job, waiting.get(job_id), trouble)
    return found


@lru_cache
def _query(postgres: bool, of_tenant: bool) -> Select[Any]:
    """Query with a row per workload of every job. Core tables: no session adds the tenant here."""
    feasible = (
        select(_CANDIDATE.c.feasible)
        .where(_CANDIDATE.c.job_id == _JOB.c.id)
        .order_by(_CANDIDATE.c.number.desc())
        .limit(1)
        .scalar_subquery()
    )
    running = select(_WORKER.c.last_seen).where(_WORKER.c.stopped_at.is_(None))
    seen = running.order_by(_WORKER.c.last_seen.desc()).limit(1).scalar_subquery().label("worker_seen")
    now = type_coerce(func.clock_timestamp(), UtcDateTime) if postgres else literal(None)
    job = [c for c in _JOB.c if c.name != "spec"]
    workload = [c.label(f"workload_{c.name}") for c in _WORKLOAD.c]
    query = select(*job, feasible.label("feasible"), now.label("now"), seen, *workload)
    query = query.select_from(_JOB.outerjoin(_WORKLOAD, _WORKLOAD.c.job_id == _JOB.c.id))
    query = query.where(_JOB.c.id.in_(bindparam("job_ids", expanding=True)))
    if of_tenant:
        query = query.where(_JOB.c.tenant == bindparam("tenant"))
    return query.order_by(_WORKLOAD.c.position)


def not_begun(job: Row[Any]) -> bool:
    """True if a job has its first task, and no device works on it yet."""
    return job.state is JobState.BASELINE and job.started_at is None


def _status(rows: Sequence[Row[Any]], place: QueuePlace | None, trouble: str) -> JobStatus:
    job = rows[0]
    speedups = [(row.workload_weight, _speedup(row)) for row in rows if row.workload_key is not None]
    left = None
    if job.started_at is not None and not job.state.is_terminal:
        left = max(0.0, job.budget_s - elapsed_s(job, job.now or utc_now()))
    return JobStatus(
        id=job.id,
        name=job.name,
        state=JobState.QUEUED if not_begun(job) else job.state,
        detail=_detail(job, place, trouble),
        queue=None if place is None else place.queue,
        place=None if place is None else place.number,
        backend=job.backend,
        device_class=job.device_class,
        round=job.round,
        rounds=job.budget_rounds,
        trials_done=job.trials_done,
        trials_rejected=job.trials_rejected,
        trials_budget=job.budget_trials,
        feasible=job.feasible,
        best_speedup=job.speedup if job.speedup is not None else _best_speedup(speedups),
        workloads=tuple(
            WorkloadProgress(
                workload=row.workload_key,
                baseline_us=row.workload_baseline_us,
                best_us=row.workload_best_us,
                speedup=_speedup(row),
            )
            for row in rows
            if row.workload_key is not None
        ),
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        reason=job.reason,
        seconds_left=left,
        tokens_used=job.tokens_used,
        usd_used=job.usd_used,
        labels=job.labels,
    )


def _detail(job: Row[Any], place: QueuePlace | None, trouble: str) -> str:
    """Detail of a job; one that waits for its first device measures nothing yet."""
    said = "" if not_begun(job) and job.detail == MEASURING else str(job.detail)
    waits = "" if job.state.is_terminal else trouble
    return "; ".join(filter(None, (waits, "" if place is None else place.words, said)))


def _speedup(row: Row[Any]) -> float | None:
    if row.workload_baseline_us is None or row.workload_best_us is None:
        return None
    return float(row.workload_baseline_us / row.workload_best_us)


def _best_speedup(speedups: Sequence[tuple[float, float | None]]) -> float | None:
    """Weighted geometric mean over workloads, each with its own best; one without a faster configuration
    keeps its baseline."""
    if all(s is None for _, s in speedups):
        return None
    logs = sum(weight * math.log(max(1.0, s or 1.0)) for weight, s in speedups)
    return math.exp(logs / sum(weight for weight, _ in speedups))
