"""Tasks: claimed by compare-and-set, fenced by a lease token, returned when the lease expires."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import exists, func, select, update
from sqlalchemy.orm import Session

from db.engine import clock, now
from db.identifiers import new_id
from db.message_names import DEVICE_PREFIX, RUN_TASK
from db.repositories.device_waits import WaitRepository
from db.repositories.fair_turns import Turns, Yield
from db.repositories.outbox import OutboxRepository
from db.tables import JobRow, TaskRow
from warpsmith.domain.state import TaskKind, TaskState
from warpsmith.errors import LeaseLost, NotFound
from warpsmith.tuning.tasks import Payload, Result

OPEN_TASK_STATES = (TaskState.QUEUED, TaskState.RUNNING)
MAX_DETAIL_CHARACTERS = 4000
DATABASE_AWAY = "database away"
LEASE_EXPIRED = "lease expired"
WORKER_DIED = "worker died"
WORKER_STOPPED = "worker stopped"
LOST_CAUSES = frozenset({DATABASE_AWAY, LEASE_EXPIRED, WORKER_DIED})
"""Causes for which an attempt was lost with its machine; they say little about the task itself."""
LOST_FACTOR = 3
"""Ratio of allowed losses to allowed failures; a task that kills its workers ends too."""


class TaskRepository:
    """Queries on the `task` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def enqueue(self, job_id: str, kind: TaskKind, queue: str, payload: Payload | None) -> TaskRow:
        """A new task and its message."""
        query = select(func.coalesce(func.max(TaskRow.number), -1) + 1).where(TaskRow.job_id == job_id)
        number = self._session.execute(query).scalar_one()
        of_job = select(JobRow.tenant, JobRow.priority).where(JobRow.id == job_id)
        tenant, priority = self._session.execute(of_job).one()
        at = clock(self._session)
        row = TaskRow(
            id=new_id(),
            job_id=job_id,
            tenant=tenant,
            priority=priority,
            number=number,
            kind=kind,
            queue=queue,
            state=TaskState.QUEUED,
            payload=payload,
            error="",
            attempt=0,
            history=[],
            notified_at=at,
            created_at=at,
        )
        self._session.add(row)
        OutboxRepository(self._session).add(RUN_TASK, queue, row.id)
        self._session.flush()
        return row

    def get(self, task_id: str) -> TaskRow:
        """Return a task as the database has it now.

        Raises:
            NotFound: no task has that id.
        """
        row = self._session.get(TaskRow, task_id, populate_existing=True)
        if row is None:
            raise NotFound(f"no task {task_id}")
        return row

    def of_job(self, job_id: str) -> Sequence[TaskRow]:
        """All tasks of a job, in order."""
        query = select(TaskRow).where(TaskRow.job_id == job_id).order_by(TaskRow.number)
        return self._session.scalars(query.execution_options(populate_existing=True)).all()

    def claim(self, task_id: str, worker: str, lease_s: float) -> TaskRow | None:
        """Claim a queued task; None if another worker has it or it has ended.

        The returned row carries the lease token that every later write needs.
        """
        claimed = self._session.execute(
            update(TaskRow)
            .where(TaskRow.id == task_id, TaskRow.state == TaskState.QUEUED)
            .values(
                state=TaskState.RUNNING,
                attempt=TaskRow.attempt + 1,
                lease_token=new_id(),
                lease_until=clock(self._session, lease_s),
                worker=worker,
                started_at=clock(self._session),
            )
            .returning(TaskRow.id)
        ).scalar_one_or_none()
        return None if claimed is None else self.get(task_id)

    def claim_next(
        self, queue: str, worker: str, lease_s: float, patience_s: float = 0.0
    ) -> TaskRow | Yield | None:
        """Claim the next task of a queue; None if none waits. Concurrent workers get different tasks.

        Args:
            patience_s: seconds after its last task within which a started job may need the device again;
                `Yield` is then returned instead of another job's first task.
        """
        turns = Turns(self._session)
        turn = turns.next(queue)
        if turn is None:
            return None
        if patience_s and turn.begins and turns.is_being_decided(queue, turn.tenant, patience_s):
            return Yield()
        return self.claim(turn.task_id, worker, lease_s)

    def queue_of(self, task_id: str) -> str | None:
        """The queue of a task; None if there is no such task."""
        return self._session.execute(select(TaskRow.queue).where(TaskRow.id == task_id)).scalar_one_or_none()

    def deaf(self, worker: str, queues: Sequence[str], quiet_s: float) -> bool:
        """True if something has waited for `quiet_s`, and this worker took nothing from these queues."""
        before = clock(self._session, -quiet_s)
        ours = TaskRow.queue.in_(queues)
        now = clock(self._session)
        waits = exists().where(
            TaskRow.state == TaskState.QUEUED, ours, TaskRow.created_at < before, TaskRow.notified_at < now
        )
        busy = exists().where(TaskRow.worker == worker, ours, TaskRow.state == TaskState.RUNNING)
        took = exists().where(
            TaskRow.worker == worker, ours, (TaskRow.started_at > before) | (TaskRow.finished_at > before)
        )
        return bool(self._session.execute(select(waits & ~busy & ~took)).scalar_one())

    def renew(self, task_id: str, token: str, lease_s: float) -> None:
        """Extend the lease of a task by `lease_s`.

        Raises:
            LeaseLost: another worker has it now, or its job has ended.
        """
        self._fenced(task_id, token, {"lease_until": clock(self._session, lease_s)})

    def is_held(self, task_id: str, token: str) -> bool:
        """True if the lease with this token is still valid."""
        held = (TaskRow.id == task_id, TaskRow.lease_token == token, TaskRow.state == TaskState.RUNNING)
        return bool(self._session.execute(select(exists().where(*held))).scalar_one())

    def finish(self, task_id: str, token: str, result: Result) -> None:
        """Store the result.

        Raises:
            LeaseLost: another worker has it now, or its job has ended.
        """
        values = {
            "state": TaskState.DONE,
            "result": result,
            "finished_at": clock(self._session),
            "lease_token": None,
            "lease_until": None,
        }
        self._fenced(task_id, token, values)

    def fail(
        self, task_id: str, token: str, cause: str, detail: str, max_attempts: int, *, final: bool = False
    ) -> TaskState:
        """Record a failed attempt: queue the task again, or give it up.

        Args:
            final: another attempt cannot help.

        Raises:
            LeaseLost: another worker has it now, or its job has ended.
        """
        row = self.get(task_id)
        if row.lease_token != token or row.state is not TaskState.RUNNING:
            raise LeaseLost(f"task {task_id}")
        values = self._failure(row, cause, detail, final or _is_last(row, cause, max_attempts))
        self._fenced(task_id, token, values)
        self._notify_again(row, values)
        return TaskState(values["state"])

    def held_by(self, worker: str) -> int:
        """Number of tasks that a worker holds."""
        query = select(func.count()).where(TaskRow.state == TaskState.RUNNING, TaskRow.worker == worker)
        return self._session.execute(query).scalar_one()

    def give_back(self, worker: str, token: str | None = None) -> int:
        """Queue again the tasks of a stopping worker; the attempt does not count. Returns their number.

        Args:
            token: lease of the only one to give back; another process of the worker may have its task by
                now.
        """
        query = select(TaskRow).where(TaskRow.state == TaskState.RUNNING, TaskRow.worker == worker)
        if token is not None:
            query = query.where(TaskRow.lease_token == token)
        rows = self._session.scalars(query.execution_options(populate_existing=True)).all()
        for row in rows:
            assert row.lease_token is not None
            values = self._failure(row, WORKER_STOPPED, "", give_up=False)
            self._fenced(row.id, row.lease_token, values | {"attempt": row.attempt - 1, "error": ""})
            self._notify_again(row, values)
        return len(rows)

    def defer(self, task_id: str, token: str, until: datetime) -> None:
        """Let a task wait for an external event; it is queued again at the event, or at `until`.

        The attempt does not count.

        Raises:
            LeaseLost: another worker has it now, or its job has ended.
        """
        values = {
            "state": TaskState.QUEUED,
            "attempt": TaskRow.attempt - 1,
            "lease_token": None,
            "lease_until": None,
            "notified_at": until,
        }
        self._fenced(task_id, token, values)

    def wake(self, task_id: str) -> None:
        """Queue a deferred task again because its event has occurred."""
        changed = self._session.execute(
            update(TaskRow)
            .where(TaskRow.id == task_id, TaskRow.state == TaskState.QUEUED)
            .values(notified_at=clock(self._session))
            .returning(TaskRow.queue)
        ).scalar_one_or_none()
        if changed is not None:
            OutboxRepository(self._session).add(RUN_TASK, changed, task_id)

    def expire(self, max_attempts: int, limit: int = 100) -> Sequence[TaskRow]:
        """Take back tasks whose lease has expired; those tried too often are given up."""
        query = (
            select(TaskRow)
            .where(TaskRow.state == TaskState.RUNNING, TaskRow.lease_until < clock(self._session))
            .order_by(TaskRow.lease_until)
            .limit(limit)
            .with_for_update(skip_locked=True)
            .execution_options(populate_existing=True)
        )
        rows = self._session.scalars(query).all()
        for row in rows:
            detail = f"the worker did not renew its lease (until {row.lease_until})"
            self._take_back(row, LEASE_EXPIRED, detail, max_attempts)
        return rows

    def expire_of(self, worker: str, max_attempts: int) -> Sequence[TaskRow]:
        """Take back the tasks of a worker that is known to be dead."""
        query = select(TaskRow).where(TaskRow.state == TaskState.RUNNING, TaskRow.worker == worker)
        rows = self._session.scalars(query.with_for_update(skip_locked=True)).all()
        for row in rows:
            self._take_back(row, WORKER_DIED, "its process is gone", max_attempts)
        return rows

    def notify_quiet(self, quiet_s: float, per_queue: int = 20) -> Sequence[str]:
        """Send a message again for tasks that nobody claimed for `quiet_s`, since the first may be lost.

        Only the oldest tasks of a queue are included, so that a long queue is not flooded.
        """
        rank = func.row_number().over(partition_by=TaskRow.queue, order_by=TaskRow.id).label("rank")
        # A deferred task is to be notified of in the future, and takes nobody's place.
        waiting = (TaskRow.state == TaskState.QUEUED, TaskRow.notified_at <= clock(self._session))
        ranked = select(TaskRow.id, rank).where(*waiting).subquery()
        before = clock(self._session, -quiet_s)
        query = (
            select(TaskRow.id, TaskRow.queue)
            .join(ranked, ranked.c.id == TaskRow.id)
            .where(
                ranked.c.rank <= per_queue, TaskRow.notified_at < before, TaskRow.state == TaskState.QUEUED
            )
        )
        rows = self._session.execute(query).all()
        ids = [row.id for row in rows]
        if ids:
            self._session.execute(
                update(TaskRow).where(TaskRow.id.in_(ids)).values(notified_at=clock(self._session))
            )
            for row in rows:
                OutboxRepository(self._session).add(RUN_TASK, row.queue, row.id)
        return ids

    def lock_open(self, job_id: str) -> None:
        """Lock the open tasks of a job until this transaction ends."""
        query = select(TaskRow.id).where(TaskRow.job_id == job_id, TaskRow.state.in_(OPEN_TASK_STATES))
        self._session.execute(query.order_by(TaskRow.id).with_for_update()).all()

    def cancel_open(self, job_id: str) -> None:
        """End every open task of a job; their workers lose the lease."""
        self._session.execute(
            update(TaskRow)
            .where(TaskRow.job_id == job_id, TaskRow.state.in_(OPEN_TASK_STATES))
            .values(state=TaskState.CANCELLED, lease_token=None, lease_until=None)
            .values(finished_at=clock(self._session))
        )

    def _take_back(self, row: TaskRow, cause: str, detail: str, max_attempts: int) -> None:
        assert row.lease_token is not None
        values = self._failure(row, cause, detail, _is_last(row, cause, max_attempts))
        # Nobody worked on it for longer than that.
        until = None if row.lease_until is None else min(row.lease_until, now(self._session))
        self._fenced(row.id, row.lease_token, values)
        self._notify_again(row, values, until)

    def _failure(self, row: TaskRow, cause: str, detail: str, give_up: bool) -> dict[str, Any]:
        entry = {
            "at": now(self._session).isoformat(),
            "attempt": row.attempt,
            "worker": row.worker,
            "cause": cause,
            "detail": detail[:MAX_DETAIL_CHARACTERS],
        }
        values: dict[str, Any] = {
            "state": TaskState.DEAD if give_up else TaskState.QUEUED,
            "history": [*row.history, entry],
            "error": f"{cause}: {detail}"[:MAX_DETAIL_CHARACTERS],
            "lease_token": None,
            "lease_until": None,
            "notified_at": clock(self._session),
        }
        if give_up:
            values["finished_at"] = clock(self._session)
        return values

    def _notify_again(self, row: TaskRow, values: dict[str, Any], at: datetime | None = None) -> None:
        outbox = OutboxRepository(self._session)
        if values["state"] is TaskState.DEAD:
            outbox.add_advance(row.job_id)
            return
        outbox.add(RUN_TASK, row.queue, row.id)
        if row.queue.startswith(DEVICE_PREFIX):
            WaitRepository(self._session).begin(row.job_id, at)

    def _fenced(self, task_id: str, token: str, values: dict[str, Any]) -> None:
        written = self._session.execute(
            update(TaskRow)
            .where(TaskRow.id == task_id, TaskRow.lease_token == token, TaskRow.state == TaskState.RUNNING)
            .values(values)
            .returning(TaskRow.id)
        ).scalar_one_or_none()
        if written is None:
            raise LeaseLost(f"task {task_id}")


def _is_last(row: TaskRow, cause: str, max_attempts: int) -> bool:
    """True if the task is given up after this failure. Losses and failures are counted separately."""
    causes = [str(entry["cause"]) for entry in row.history] + [cause]
    lost = sum(c in LOST_CAUSES for c in causes)
    failed = sum(c not in LOST_CAUSES and c != WORKER_STOPPED for c in causes)
    return failed >= max_attempts or lost >= max_attempts * LOST_FACTOR
