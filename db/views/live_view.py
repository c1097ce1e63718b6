"""Events since a cursor, for all subscriptions to jobs at once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.event_cursor import Cursor, after, final
from db.repositories.jobs import OPEN_JOB_STATES
from db.tables import EventRow, JobRow
from warpsmith.http_models import EventView

MOST_RUNNING = 200
"""Limit on the running jobs of which a watcher of a whole tenant hears between two events."""


@dataclass(frozen=True)
class Happened:
    """An event, with its place and its owner."""

    at: Cursor
    tenant: str
    event: EventView


def happened(
    session: Session, since: Cursor, limit: int, *, jobs: Collection[str] | None = None
) -> list[Happened]:
    """Events behind a cursor, oldest first, as far as nothing can come between them any more.

    Args:
        jobs: only events of these jobs.
    """
    query = select(EventRow, JobRow.tenant).join(JobRow, JobRow.id == EventRow.job_id)
    query = query.where(after(since), final(session.get_bind()))
    if jobs is not None:
        query = query.where(EventRow.job_id.in_(jobs))
    rows = session.execute(query.order_by(EventRow.xact, EventRow.id).limit(limit)).all()
    return [Happened(Cursor(row.xact, row.id), tenant, event_view(row)) for row, tenant in rows]


def event_view(row: EventRow) -> EventView:
    """An event as the API shows it."""
    return EventView(id=row.id, job=row.job_id, at=row.at, kind=row.kind, data=row.data)


def running_jobs(session: Session, tenants: Collection[str]) -> Sequence[str]:
    """Jobs of these tenants that have begun and not ended, newest first; `MOST_RUNNING` at most."""
    query = select(JobRow.id).where(
        JobRow.tenant.in_(tenants), JobRow.state.in_(OPEN_JOB_STATES), JobRow.started_at.is_not(None)
    )
    return session.scalars(query.order_by(JobRow.id.desc()).limit(MOST_RUNNING)).all()
