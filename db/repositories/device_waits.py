"""Waiting for a device: the job's detail meanwhile, and the time that its budget does not pay for."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, case, exists, literal, select, update
from sqlalchemy.orm import Session

from db.column_types import UtcDateTime
from db.engine import clock, now
from db.message_names import DEVICE_PREFIX
from db.repositories.outbox import OutboxRepository
from db.repositories.workers import WorkerRepository
from db.tables import JobRow, TaskRow
from warpsmith.domain.state import JobState, TaskState

WAITS = "; waits: "
"""Separator, in a job's detail, between its activity and what it waits for."""
STANDS = "; now: "
"""Separator between its activity and where the work on it stands."""
BACK_S, SLACK_S = 1.0, 5.0
"""Seconds by which the clock may differ from a worker's between two counts: it is then taken to be right."""
MOST_COUNTED = 1000
OPEN_STATES = tuple(state for state in JobState if not state.is_terminal)


class WaitRepository:
    """Stops a job's clock from `begin` to `end`; the clock starts with the first `end`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(self, job_id: str, at: datetime | None = None) -> None:
        """Record that the job waits for its device, and none of its tasks uses one.

        Args:
            at: start of the wait; None: now. Time that was counted after it stays counted.
        """
        ours = (TaskRow.job_id == job_id, TaskRow.queue.startswith(DEVICE_PREFIX, autoescape=True))
        works = exists().where(*ours, TaskRow.state == TaskState.RUNNING)
        since: ColumnElement[datetime] = clock(self._session)
        if at is not None:
            since = case((JobRow.counted_at > at, JobRow.counted_at), else_=literal(at, UtcDateTime))
        self._session.execute(
            update(JobRow)
            .where(JobRow.id == job_id, JobRow.waiting_since.is_(None), ~works)
            .values(waiting_since=since)
        )

    def end(self, job_id: str, task_id: str) -> None:
        """Record that a task of the job has the device; its seconds count from now on."""
        # Rows of tasks before the job's, in the order of workers that store a result.
        task = self._session.get(TaskRow, task_id, with_for_update=True, populate_existing=True)
        job = self._session.get(JobRow, job_id, with_for_update=True, populate_existing=True)
        assert task is not None
        assert job is not None
        at = now(self._session)
        if job.started_at is None:
            job.started_at = job.counted_at = at
        elif job.waiting_since is not None:
            waited_s = (at - job.waiting_since).total_seconds()
            job.waited_s += waited_s
            task.waited_s += waited_s
            job.waiting_since, job.counted_at = None, at
        job.detail = _activity(job.detail)

    def count(self, seen_s: float, task_id: str | None = None) -> None:
        """Leave out of the time of jobs by how much the clock was set since their time was last counted.

        A clock that goes by itself moves on by what the caller saw, or by less if another worker has counted
        since.

        Args:
            seen_s: seconds since the caller counted last, by a clock that nobody sets.
            task_id: a task of the only job; None: all jobs that run.
        """
        query = select(JobRow).where(JobRow.started_at.is_not(None), JobRow.waiting_since.is_(None))
        query = query.where(JobRow.state.in_(OPEN_STATES)).order_by(JobRow.id).limit(MOST_COUNTED)
        if task_id is not None:
            query = query.where(
                JobRow.id == select(TaskRow.job_id).where(TaskRow.id == task_id).scalar_subquery()
            )
        query = query.with_for_update(skip_locked=task_id is None).execution_options(populate_existing=True)
        rows = self._session.scalars(query).all()
        at = now(self._session)
        for row in rows:
            passed_s = (at - (row.counted_at or at)).total_seconds()
            if not -BACK_S <= passed_s <= seen_s + SLACK_S:
                row.waited_s += passed_s - seen_s
            row.counted_at = at

    def note(self, job_id: str, words: str) -> None:
        """Add to the job's detail what it waits for; empty: nothing."""
        self._add(job_id, WAITS, words)

    def stands(self, job_id: str, words: str) -> None:
        """Add to the job's detail where the work on it stands; empty: nowhere."""
        self._add(job_id, STANDS, words)

    def _add(self, job_id: str, separator: str, words: str) -> None:
        row = self._session.get(JobRow, job_id, with_for_update=True, populate_existing=True)
        if row is None or row.state.is_terminal:
            return
        doing = _activity(row.detail)
        said = f"{doing}{separator}{words}" if words else doing
        if said != row.detail:
            row.detail = said

    def notify_unserved(self, quiet_s: float, limit: int = 100) -> Sequence[str]:
        """Send `advance` to jobs whose task waits for a device that no living worker offers."""
        offered = WorkerRepository(self._session).all_device_classes()
        before = clock(self._session, -quiet_s)
        waits = exists().where(
            TaskRow.job_id == JobRow.id,
            TaskRow.state == TaskState.QUEUED,
            TaskRow.queue.startswith(DEVICE_PREFIX, autoescape=True),
        )
        query = (
            select(JobRow.id)
            .where(JobRow.state.in_(OPEN_STATES), JobRow.device_class.not_in(offered), waits)
            .where(JobRow.notified_at.is_(None) | (JobRow.notified_at < before))
            .order_by(JobRow.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        ids = self._session.scalars(query).all()
        if ids:
            self._session.execute(
                update(JobRow).where(JobRow.id.in_(ids)).values(notified_at=clock(self._session))
            )
        for job_id in ids:
            OutboxRepository(self._session).add_advance(job_id)
        return ids


def _activity(detail: str) -> str:
    """A detail without what was added to it."""
    return detail.split(WAITS, maxsplit=1)[0].split(STANDS, maxsplit=1)[0]
