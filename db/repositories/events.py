"""Events of jobs, in order."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.engine import clock
from db.event_cursor import START, Cursor, after, final, of_another_server
from db.tables import EventRow, JobRow

Detail = str | int | float | bool | None


class EventRepository:
    """Appends and reads; what an event says is never changed."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, job_id: str, kind: str, data: Mapping[str, Detail] | None = None) -> None:
        """Append an event."""
        self._session.add(EventRow(job_id=job_id, at=clock(self._session), kind=kind, data=dict(data or {})))

    def page(self, job_id: str, after_id: int = 0, limit: int = 200) -> Sequence[EventRow]:
        """Events of a job after the one with id `after_id`, oldest first.

        An event comes only when nothing can come before it any more, so that who passes the last id misses
        none.
        """
        return self.after(self.cursor(after_id), limit, jobs=[job_id])

    def after(
        self, cursor: Cursor, limit: int, *, jobs: Collection[str] | None = None, tenant: str | None = None
    ) -> Sequence[EventRow]:
        """Events behind a cursor, oldest first, as far as nothing can come between them any more.

        Args:
            jobs: only events of these jobs.
            tenant: only events of this tenant's jobs, in a session that is bound to none.
        """
        query = select(EventRow).where(after(cursor), final(self._session.get_bind()))
        if jobs is not None:
            query = query.where(EventRow.job_id.in_(jobs))
        if tenant is not None:
            query = query.where(EventRow.job_id.in_(select(JobRow.id).where(JobRow.tenant == tenant)))
        return self._session.scalars(query.order_by(EventRow.xact, EventRow.id).limit(limit)).all()

    def cursor(self, event_id: int) -> Cursor:
        """The place of the event with this id; of one that is gone, the place that ids give it."""
        query = select(EventRow.xact).where(EventRow.id <= event_id).order_by(EventRow.id.desc()).limit(1)
        return Cursor(self._session.scalar(query) or 0, event_id)

    def last_id(self, job_id: str) -> int:
        """Id of the last event of a job behind which nothing but new ones can come; 0 if it has none."""
        query = select(EventRow.id).where(EventRow.job_id == job_id, final(self._session.get_bind()))
        query = query.order_by(EventRow.xact.desc(), EventRow.id.desc()).limit(1)
        return self._session.scalar(query) or 0

    def end(self) -> Cursor:
        """The place of the last event behind which nothing but new ones can come."""
        query = select(EventRow.xact, EventRow.id).where(final(self._session.get_bind()))
        last = self._session.execute(
            query.order_by(EventRow.xact.desc(), EventRow.id.desc()).limit(1)
        ).first()
        return START if last is None else Cursor(*last)

    def put_restored_first(self) -> None:
        """Put events of another server's dump before those of this server, which counts from less."""
        self._session.execute(
            update(EventRow).where(of_another_server(self._session.get_bind())).values(xact=0)
        )
