"""The fleet at a glance: workers with their devices, queues, and who holds what."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.engine import now
from db.repositories.workers import WorkerRepository
from db.tables import JobRow, TaskRow, WorkerRow
from warpsmith.domain.state import TaskState


@dataclass(frozen=True)
class RunningTask:
    """A task that a worker runs."""

    worker: str | None
    kind: str
    queue: str
    job: str
    name: str
    """The job's."""
    tenant: str
    seconds: float
    attempt: int


@dataclass(frozen=True)
class Queue:
    """Numbers of waiting and running tasks of a queue, and of the workers that serve it."""

    name: str
    waiting: int
    running: int
    oldest_s: float | None
    """Since when the longest waiting task waits, s; None if none does."""
    served: int
    """Number of living workers that serve it."""


@dataclass(frozen=True)
class Fleet:
    """All of it, at one moment."""

    at: datetime
    workers: Sequence[WorkerRow]
    held: Sequence[RunningTask]
    queues: Sequence[Queue]


def fleet(session: Session) -> Fleet:
    """The fleet, over all tenants."""
    at = now(session)
    workers = WorkerRepository(session).seen_lately()
    alive = WorkerRepository(session).alive()
    query = select(TaskRow, JobRow.name).join(JobRow, JobRow.id == TaskRow.job_id)
    running = session.execute(query.where(TaskRow.state == TaskState.RUNNING).order_by(TaskRow.id)).all()
    held = [
        RunningTask(
            worker=task.worker,
            kind=task.kind.value,
            queue=task.queue,
            job=task.job_id,
            name=name,
            tenant=task.tenant,
            seconds=max(0.0, (at - (task.started_at or at)).total_seconds()),
            attempt=task.attempt,
        )
        for task, name in running
    ]
    counts = select(TaskRow.queue, TaskRow.state, func.count(), func.min(TaskRow.created_at))
    counts = counts.where(TaskRow.state.in_((TaskState.QUEUED, TaskState.RUNNING)))
    found = {
        (queue, state): (count, oldest)
        for queue, state, count, oldest in session.execute(counts.group_by(TaskRow.queue, TaskRow.state))
    }
    names = {*(queue for queue, _ in found), *(queue for worker in alive for queue in worker.queues)}
    queues = [_queue(name, found, alive, at) for name in sorted(names)]
    return Fleet(at, workers, held, queues)


def _queue(
    name: str,
    found: dict[tuple[str, TaskState], tuple[int, datetime]],
    alive: Sequence[WorkerRow],
    at: datetime,
) -> Queue:
    waiting, oldest = found.get((name, TaskState.QUEUED), (0, None))
    running, _ = found.get((name, TaskState.RUNNING), (0, None))
    age_s = None if oldest is None else max(0.0, (at - oldest).total_seconds())
    return Queue(name, waiting, running, age_s, sum(name in worker.queues for worker in alive))
