"""Order in which the tasks of a queue are served."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, exists, func, select
from sqlalchemy.orm import Session, aliased

from db.engine import clock
from db.message_names import DEVICE_PREFIX
from db.tables import JobRow, TaskRow
from warpsmith.domain.state import TaskKind, TaskState


@dataclass(frozen=True)
class NextTask:
    """A waiting task, locked until the transaction ends."""

    task_id: str
    tenant: str
    begins: bool
    """True if it is the first task of its job."""


@dataclass(frozen=True)
class Yield:
    """Yields the device to a started job that is about to continue: nothing should be taken now."""


class Turns:
    """Tenants take turns; within a tenant, started jobs go before others."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def next(self, queue: str) -> NextTask | None:
        """The next task of a queue; None if none waits.

        The tenant that was served longest ago comes first. Its tasks are ordered by: lost attempts, higher
        priority, started jobs, longer wait (of the job if it has not started). Deferred tasks are left alone.
        Any number of workers may call this at once; each gets a different task.
        """
        notified = TaskRow.notified_at <= clock(self._session)
        waiting = (TaskRow.state == TaskState.QUEUED, TaskRow.queue == queue, notified)
        begins = TaskRow.number == 0
        longest = case((begins, TaskRow.job_id), else_=TaskRow.id)
        for tenant in self._by_turn(queue, waiting):
            query = (
                select(TaskRow.id, TaskRow.number)
                .where(*waiting, TaskRow.tenant == tenant)
                .order_by(TaskRow.attempt == 0, TaskRow.priority.desc(), begins, longest)
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            found = self._session.execute(query).one_or_none()
            if found is not None:
                return NextTask(found.id, tenant, found.number == 0)
        return None

    def is_being_decided(self, queue: str, tenant: str, within_s: float) -> bool:
        """True if a job of this queue has ended a task, or asked an agent, within this number of seconds and
        has no other work.

        Decisions and rules take some milliseconds, and the job then continues; a model may take minutes.
        """
        since = clock(self._session, -within_s)
        of_job = TaskRow.job_id == JobRow.id
        open_ = TaskRow.state.in_((TaskState.QUEUED, TaskState.RUNNING))
        asks = (TaskRow.kind == TaskKind.AGENT_STEP) & (TaskRow.notified_at <= clock(self._session))
        query = select(JobRow.id).where(
            JobRow.tenant == tenant,
            JobRow.device_class == queue.removeprefix(DEVICE_PREFIX),
            JobRow.finished_at.is_(None),
            exists().where(
                of_job, (TaskRow.finished_at > since) | (open_ & asks & (TaskRow.created_at > since))
            ),
            ~exists().where(of_job, open_, ~asks | (TaskRow.created_at <= since)),
        )
        return self._session.execute(query.limit(1)).first() is not None

    def _by_turn(self, queue: str, waiting: Sequence[ColumnElement[bool]]) -> Sequence[str]:
        """Tenants with something in a queue, the one that was served longest ago first."""
        other = aliased(TaskRow)
        served = select(func.max(other.started_at)).where(
            other.queue == queue, other.tenant == TaskRow.tenant
        )
        turn = served.correlate(TaskRow).scalar_subquery()
        query = select(TaskRow.tenant).where(*waiting).group_by(TaskRow.tenant)
        return self._session.scalars(query.order_by(turn.asc().nulls_first(), TaskRow.tenant)).all()
