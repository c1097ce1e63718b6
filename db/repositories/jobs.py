"""Jobs: created once, moved by compare-and-set, final once ended."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import exists, func, select, text, update
from sqlalchemy.orm import Session, undefer

from db.engine import clock, insert_new
from db.identifiers import new_id
from db.repositories.events import EventRepository
from db.repositories.outbox import OutboxRepository
from db.repositories.tasks import TaskRepository
from db.tables import DEFAULT_TENANT, JobRow, TaskRow, WorkloadRow
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.reason import Reason
from warpsmith.domain.state import JOB_MOVES, JobState, TaskState
from warpsmith.errors import InvalidInput, NotFound
from warpsmith.tuning.tasks import VerifyResult

OPEN_JOB_STATES = tuple(s for s in JobState if not s.is_terminal)


@dataclass(frozen=True)
class JobFilter:
    """Filter of a list of jobs; all given conditions must hold."""

    states: Sequence[JobState] = ()
    """States, of which a job has one; empty: any state."""
    labels: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    """Part of the name, in any case."""
    device_class: str = ""
    created_from: datetime | None = None
    created_before: datetime | None = None
    tenant: str = ""
    """Tenant, in a session that is bound to none."""


class KeyReused(InvalidInput):
    """An idempotency key was used before with another job."""


EVERY_JOB = JobFilter()


class JobRepository:
    """Queries on the `job` and `workload` tables."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def create(
        self,
        job: Job,
        idempotency_key: str | None = None,
        *,
        tenant: str = DEFAULT_TENANT,
        api_key: str | None = None,
        priority: int = 0,
    ) -> tuple[JobRow, bool]:
        """Store a job and its first message; the flag is False if it was already stored.

        Args:
            idempotency_key: the submitter's name for the job, unique within a tenant.
            api_key: id of the key that submits it.
            priority: among the jobs of the tenant; higher goes first.

        Raises:
            KeyReused: the key was used before with another job.
        """
        digest = spec_hash(job)
        job_id = new_id()
        values = {
            "id": job_id,
            "tenant": tenant,
            "api_key": api_key,
            "priority": priority,
            "name": job.name,
            "spec": job,
            "spec_hash": digest,
            "labels": job.labels,
            "idempotency_key": idempotency_key,
            "state": JobState.QUEUED,
            "detail": "",
            "backend": job.kernel.backend.value,
            "round": 0,
            "budget_rounds": job.budget.rounds,
            "budget_trials": job.budget.trials,
            "budget_s": job.budget.seconds,
            "budget_usd": job.budget.usd,
            "trials_proposed": 0,
            "trials_done": 0,
            "trials_rejected": 0,
            "tokens_used": 0,
            "usd_used": 0.0,
            "created_at": clock(self._session),
        }
        insert = insert_new(self._session, JobRow).values(values).returning(JobRow.id)
        if self._session.execute(insert).scalar_one_or_none() is None:
            return self._same(tenant, idempotency_key, digest), False
        for position, workload in enumerate(job.workloads):
            row = WorkloadRow(job_id=job_id, position=position, key=workload.key, weight=workload.weight)
            self._session.add(row)
        EventRepository(self._session).add(job_id, "state", {"state": JobState.QUEUED.value, "detail": ""})
        OutboxRepository(self._session).add_advance(job_id)
        self._session.flush()
        return self.get(job_id), True

    def get(self, job_id: str, *, with_spec: bool = False) -> JobRow:
        """Return a job as the database has it now.

        Raises:
            NotFound: no job has that id.
        """
        options = [undefer(JobRow.spec)] if with_spec else []
        row = self._session.get(JobRow, job_id, options=options, populate_existing=True)
        if row is None:
            raise NotFound(f"no job {job_id}")
        return row

    def has(self, job_id: str) -> bool:
        """True if a job with that id exists."""
        return self._session.execute(select(JobRow.id).where(JobRow.id == job_id)).first() is not None

    def trials_spent(self, job_id: str) -> bool:
        """True if the job has run all trials of its budget."""
        query = select(JobRow.trials_done >= JobRow.budget_trials).where(JobRow.id == job_id)
        return bool(self._session.execute(query).scalar_one())

    def page(
        self, after: str | None = None, limit: int = 50, only: JobFilter = EVERY_JOB
    ) -> Sequence[JobRow]:
        """Jobs older than `after`, newest first."""
        query = select(JobRow).order_by(JobRow.id.desc()).limit(limit)
        if only.tenant:
            query = query.where(JobRow.tenant == only.tenant)
        if only.states:
            # A job that waits for its first turn is shown as queued; see `db.views.job_status`.
            waits = (JobRow.state == JobState.BASELINE) & JobRow.started_at.is_(None)
            shown = JobRow.state.in_(only.states) & ~waits
            query = query.where(shown | waits if JobState.QUEUED in only.states else shown)
        for key, value in only.labels.items():
            query = query.where(JobRow.labels[key].as_string() == value)
        if only.name:
            query = query.where(JobRow.name.icontains(only.name, autoescape=True))
        if only.device_class:
            query = query.where(JobRow.device_class == only.device_class)
        if only.created_from is not None:
            query = query.where(JobRow.created_at >= only.created_from)
        if only.created_before is not None:
            query = query.where(JobRow.created_at < only.created_before)
        if after is not None:
            query = query.where(JobRow.id < after)
        return self._session.scalars(query).all()

    def move(
        self,
        job_id: str,
        source: JobState,
        target: JobState,
        detail: str = "",
        reason: Reason | None = None,
    ) -> bool:
        """Compare-and-set of the state; False if the job is no longer in `source`.

        A job that ends also ends its open tasks; their workers lose the lease.

        Args:
            reason: reason for the end of a job.

        Raises:
            ValueError: `JOB_MOVES` has no such move.
        """
        if target not in JOB_MOVES[source]:
            raise ValueError(f"no move from {source.value} to {target.value}")
        values: dict[str, object] = {"state": target, "detail": detail}
        if target.is_terminal:
            values["reason"] = reason
            values["finished_at"] = clock(self._session)
            # Rows of tasks before the job's, in the order of workers that store a result.
            TaskRepository(self._session).lock_open(job_id)
        moved = self._session.execute(
            update(JobRow)
            .where(JobRow.id == job_id, JobRow.state == source)
            .values(values)
            .returning(JobRow.id)
        ).scalar_one_or_none()
        if moved is None:
            return False
        if target.is_terminal:
            TaskRepository(self._session).cancel_open(job_id)
        EventRepository(self._session).add(job_id, "state", {"state": target.value, "detail": detail})
        return True

    def set_detail(self, job_id: str, detail: str) -> bool:
        """Set the job's detail; False if it is unchanged, or the job has ended."""
        changed = self._session.execute(
            update(JobRow)
            .where(JobRow.id == job_id, JobRow.detail != detail, JobRow.state.in_(OPEN_JOB_STATES))
            .values(detail=detail)
            .returning(JobRow.id)
        ).scalar_one_or_none()
        return changed is not None

    def cancel(self, job_id: str) -> JobRow:
        """Cancel a job; one that has ended is left unchanged.

        Raises:
            NotFound: no job has that id.
        """
        row = self.get(job_id)
        while not row.state.is_terminal:
            if self.move(job_id, row.state, JobState.CANCELLED, "cancelled on request"):
                self._session.flush()
            row = self.get(job_id)
        return row

    def pin(self, job_id: str, device_class: str) -> bool:
        """Bind a job to a device class, once."""
        changed = self._session.execute(
            update(JobRow)
            .where(JobRow.id == job_id, JobRow.device_class.is_(None))
            .values(device_class=device_class)
            .returning(JobRow.id)
        ).scalar_one_or_none()
        return changed is not None

    def pinned(self, device_class: str) -> int:
        """Number of open jobs bound to a device class."""
        query = select(func.count()).where(
            JobRow.state.in_(OPEN_JOB_STATES), JobRow.device_class == device_class
        )
        return self._session.execute(query).scalar_one()

    def set_round(self, job_id: str, round_: int) -> None:
        """Set the job's current round."""
        self._session.execute(update(JobRow).where(JobRow.id == job_id).values(round=round_))

    def spend(self, job_id: str, tokens: int, usd: float) -> None:
        """Add the cost of an agent step."""
        values = {"tokens_used": JobRow.tokens_used + tokens, "usd_used": JobRow.usd_used + usd}
        self._session.execute(update(JobRow).where(JobRow.id == job_id).values(values))

    def reserve(self, job_id: str, tokens: int, usd: float) -> bool:
        """Reserve cost before a model is called; False if the job's budget does not cover it."""
        budget = self.get(job_id, with_spec=True).spec.budget
        reserved = self._session.execute(
            update(JobRow)
            .where(JobRow.id == job_id, JobRow.state.in_(OPEN_JOB_STATES))
            .where(JobRow.tokens_used + tokens <= budget.tokens, JobRow.usd_used + usd <= budget.usd)
            .values(tokens_used=JobRow.tokens_used + tokens, usd_used=JobRow.usd_used + usd)
            .returning(JobRow.id)
        ).scalar_one_or_none()
        return reserved is not None

    def set_baseline(self, job_id: str, times_us: Mapping[str, float]) -> None:
        """Store the times of the user's kernel by workload."""
        for key, value in times_us.items():
            query = update(WorkloadRow).where(WorkloadRow.job_id == job_id, WorkloadRow.key == key)
            self._session.execute(query.values(baseline_us=value))

    def set_verified(self, job_id: str, result: VerifyResult) -> None:
        """Replace the best so far by the published figures, which may be those of the baseline."""
        self._session.execute(update(JobRow).where(JobRow.id == job_id).values(speedup=result.speedup))
        compared = {c.workload: c for c in result.comparisons}
        for choice in result.choices:
            values: dict[str, Any] = {"best_us": WorkloadRow.baseline_us}
            if (found := compared.get(choice.workload)) is not None:
                best_us = found.baseline_us if choice.candidate is None else found.best_us
                values = {"baseline_us": found.baseline_us, "best_us": best_us}
            query = update(WorkloadRow).where(WorkloadRow.job_id == job_id)
            self._session.execute(query.where(WorkloadRow.key == choice.workload).values(**values))

    def lock(self, job_id: str) -> None:
        """Make every other decision about this job wait until this transaction ends.

        SQLite has one writer at a time, which suffices as a lock.
        """
        if self._session.get_bind().dialect.name == "postgresql":
            query = text("SELECT pg_advisory_xact_lock(hashtextextended(:id, 0))")
            self._session.execute(query, {"id": job_id})

    def notify_idle(self, quiet_s: float, limit: int = 100) -> Sequence[str]:
        """Send `advance` to open jobs without an open task that were not notified for `quiet_s`."""
        busy = exists().where(
            TaskRow.job_id == JobRow.id, TaskRow.state.in_((TaskState.QUEUED, TaskState.RUNNING))
        )
        before = clock(self._session, -quiet_s)
        query = (
            select(JobRow.id)
            .where(JobRow.state.in_(OPEN_JOB_STATES), ~busy)
            .where(
                (JobRow.notified_at.is_(None) & (JobRow.created_at < before)) | (JobRow.notified_at < before)
            )
            .order_by(JobRow.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        ids = self._session.scalars(query).all()
        self._notify(ids)
        return ids

    def notify_unpinned(self, backends: Sequence[str]) -> Sequence[str]:
        """Send `advance` to jobs that wait for a worker with one of these back ends."""
        query = select(JobRow.id).where(
            JobRow.state == JobState.QUEUED, JobRow.device_class.is_(None), JobRow.backend.in_(backends)
        )
        ids = self._session.scalars(query.order_by(JobRow.id).limit(1000)).all()
        self._notify(ids)
        return ids

    def _notify(self, ids: Sequence[str]) -> None:
        if ids:
            self._session.execute(
                update(JobRow).where(JobRow.id.in_(ids)).values(notified_at=clock(self._session))
            )
            for job_id in ids:
                OutboxRepository(self._session).add_advance(job_id)

    def stored(self, tenant: str, idempotency_key: str | None) -> bool:
        """True if a job with this key is already stored."""
        if idempotency_key is None:
            return False
        query = exists().where(JobRow.tenant == tenant, JobRow.idempotency_key == idempotency_key)
        return bool(self._session.scalar(select(query)))

    def _same(self, tenant: str, idempotency_key: str | None, digest: str) -> JobRow:
        query = select(JobRow).where(JobRow.tenant == tenant, JobRow.idempotency_key == idempotency_key)
        row = self._session.scalars(query).one()
        if row.spec_hash != digest:
            raise KeyReused("Idempotency-Key", "was used before with another job; use a new key")
        return row


def spec_hash(job: Job) -> str:
    """SHA-256 of the canonical JSON of a job."""
    canonical = json.dumps(job.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
