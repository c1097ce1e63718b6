"""Compilations requested by one worker and done by another. A lost row does no harm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from db.engine import clock, insert_new, without_waiting_for_the_disk
from db.tables import CompilationRow
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.state import CompilationState
from warpsmith.domain.templates.template import ConfiguredKernel

KEEP_S = 600.0
"""Seconds after which rows are deleted; the requester has stored the binary by then."""


@dataclass(frozen=True)
class CompilationRequest:
    """A requested compilation."""

    key: str
    """Hash of everything that determines the binary."""
    queue: str
    kernel: ConfiguredKernel
    device: DeviceInfo


class CompilationRepository:
    """Queries on the `compilation` table. Writes do not wait for the disk."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def want(self, wanted: Sequence[CompilationRequest]) -> list[str]:
        """Request these compilations; returns the keys that were not requested before."""
        without_waiting_for_the_disk(self._session)
        at = clock(self._session)
        # One order everywhere: otherwise two requests for the same keys could deadlock.
        rows = [
            {**vars(w), "state": CompilationState.WANTED, "created_at": at}
            for w in sorted(wanted, key=lambda w: w.key)
        ]
        insert = insert_new(self._session, CompilationRow).values(rows)
        return list(self._session.scalars(insert.returning(CompilationRow.key)))

    def take(self, key: str, worker: str) -> CompilationRequest | None:
        """Take this compilation; None if another worker has it, or it is no longer requested."""
        without_waiting_for_the_disk(self._session)
        row = self._session.execute(
            update(CompilationRow)
            .where(CompilationRow.key == key, CompilationRow.state == CompilationState.WANTED)
            .values(state=CompilationState.TAKEN, worker=worker)
            .returning(CompilationRow.queue, CompilationRow.kernel, CompilationRow.device)
        ).one_or_none()
        return None if row is None else CompilationRequest(key, row.queue, row.kernel, row.device)

    def take_next(self, queue: str, worker: str) -> CompilationRequest | None:
        """Take the compilation that has waited longest in a queue; None if none waits."""
        waiting = (CompilationRow.queue == queue, CompilationRow.state == CompilationState.WANTED)
        query = select(CompilationRow.key).where(*waiting).order_by(CompilationRow.created_at).limit(1)
        key = self._session.scalar(query.with_for_update(skip_locked=True))
        return None if key is None else self.take(key, worker)

    def finish(self, key: str, worker: str, artifact: bytes | None) -> None:
        """Store the binary (None: there is none). Nothing happens if another worker has taken over."""
        without_waiting_for_the_disk(self._session)
        state = CompilationState.FAILED if artifact is None else CompilationState.DONE
        self._session.execute(
            update(CompilationRow)
            .where(CompilationRow.key == key, CompilationRow.state == CompilationState.TAKEN)
            .where(CompilationRow.worker == worker)
            .values(state=state, artifact=artifact)
        )

    def states(self, keys: Sequence[str]) -> Mapping[str, CompilationState]:
        """States of these compilations; deleted ones are left out."""
        query = select(CompilationRow.key, CompilationRow.state).where(CompilationRow.key.in_(keys))
        return {row.key: row.state for row in self._session.execute(query)}

    def artifacts(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """The binaries of those that are done."""
        query = select(CompilationRow.key, CompilationRow.artifact).where(
            CompilationRow.key.in_(keys), CompilationRow.artifact.is_not(None)
        )
        return {row.key: row.artifact for row in self._session.execute(query) if row.artifact is not None}

    def withdraw(self, keys: Sequence[str]) -> list[str]:
        """Withdraw those that no node has begun; returns their keys."""
        without_waiting_for_the_disk(self._session)
        gone = (
            delete(CompilationRow)
            .where(CompilationRow.key.in_(keys), CompilationRow.state == CompilationState.WANTED)
            .returning(CompilationRow.key)
        )
        return list(self._session.scalars(gone))

    def prune(self, older_s: float = KEEP_S) -> None:
        """Delete old requests."""
        before = clock(self._session, -older_s)
        self._session.execute(delete(CompilationRow).where(CompilationRow.created_at < before))
