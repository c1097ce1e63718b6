"""Outgoing messages, stored in the transaction that causes them."""

from collections.abc import Sequence

from sqlalchemy import delete, exists, select, update
from sqlalchemy.orm import Session

from db.engine import clock
from db.message_names import ADVANCE, CONTROL_QUEUE
from db.tables import OutboxRow

KEEP_PUBLISHED_S = 3600.0


class OutboxRepository:
    """Stores and returns outgoing messages."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, name: str, queue: str, subject: str) -> OutboxRow:
        """Add a message that the relay will publish once this transaction is committed."""
        row = OutboxRow(name=name, queue=queue, subject=subject, created_at=clock(self._session), attempts=0)
        self._session.add(row)
        return row

    def add_advance(self, job_id: str) -> OutboxRow:
        """Add a message that asks for the next decision about this job."""
        return self.add(ADVANCE, CONTROL_QUEUE, job_id)

    def any_waiting(self) -> bool:
        """True if a message waits; locks nothing."""
        return bool(self._session.scalar(select(exists().where(OutboxRow.published_at.is_(None)))))

    def waiting(self, limit: int = 100) -> Sequence[OutboxRow]:
        """Waiting messages, oldest first, locked against other relays until the transaction ends."""
        query = select(OutboxRow).where(OutboxRow.published_at.is_(None)).order_by(OutboxRow.id).limit(limit)
        return self._session.scalars(query.with_for_update(skip_locked=True)).all()

    def take_overdue(self, name: str, older_s: float, limit: int = 20) -> Sequence[str]:
        """Take subjects of messages that no relay could publish for `older_s`, for work without a broker.

        Marks them published. Commit before acting only if the caller recovers from a crash in between.
        """
        before = clock(self._session, -older_s)
        query = (
            select(OutboxRow)
            .where(OutboxRow.published_at.is_(None), OutboxRow.name == name, OutboxRow.created_at < before)
            .order_by(OutboxRow.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        rows = self._session.scalars(query).all()
        self.mark_published([row.id for row in rows])
        return [row.subject for row in rows]

    def mark_published(self, ids: Sequence[int]) -> None:
        """Mark messages as published."""
        if ids:
            values = {"published_at": clock(self._session), "attempts": OutboxRow.attempts + 1}
            self._session.execute(update(OutboxRow).where(OutboxRow.id.in_(ids)).values(values))

    def mark_failed(self, ids: Sequence[int]) -> None:
        """Record that the broker did not take them; they stay waiting."""
        if ids:
            values = {"attempts": OutboxRow.attempts + 1}
            self._session.execute(update(OutboxRow).where(OutboxRow.id.in_(ids)).values(values))

    def prune(self, older_s: float = KEEP_PUBLISHED_S) -> None:
        """Delete messages published long ago."""
        limit = clock(self._session, -older_s)
        self._session.execute(delete(OutboxRow).where(OutboxRow.published_at < limit))
