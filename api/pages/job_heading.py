"""Heading of all pages of a job."""

from typing import Any

from sqlalchemy.orm import Session

from db.repositories.events import EventRepository
from db.views.job_status import job_status


def heading(session: Session, job_id: str) -> dict[str, Any]:
    """The names that the template of a job's pages needs.

    The last event is read before the rest of the page, so that whatever happens later is told by the stream.

    Raises:
        NotFound: no job has that id.
    """
    last_event = EventRepository(session).last_id(job_id)
    return {"status": job_status(session, job_id), "last_event": last_event}
