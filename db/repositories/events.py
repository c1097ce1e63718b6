"""Events of jobs, in order."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.engine import clock
from db.tables import EventRow

Detail = str | int | float | bool | None


class EventRepository:
    """Appends and reads; nothing is ever changed."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, job_id: str, kind: str, data: Mapping[str, Detail] | None = None) -> None:
        """Append an event."""
        self._session.add(EventRow(job_id=job_id, at=clock(self._session), kind=kind, data=dict(data or {})))

    def page(self, job_id: str, after: int = 0, limit: int = 200) -> Sequence[EventRow]:
        """Events of a job after the one with id `after`, oldest first."""
        query = select(EventRow).where(EventRow.job_id == job_id, EventRow.id > after)
        return self._session.scalars(query.order_by(EventRow.id).limit(limit)).all()
