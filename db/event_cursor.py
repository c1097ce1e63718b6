"""Places in the order of events that no later commit can undercut.

On Postgres ids are given before a transaction commits, so that an event with a smaller id may appear later.
Every event therefore carries the number of its transaction. Events are read up to the oldest transaction that
is still open, ordered by transaction and id: whatever commits later stands behind them. SQLite has one writer
at a time, so that ids alone are in order there, and every transaction number is 0.
"""

from dataclasses import dataclass

from sqlalchemy import BigInteger, ColumnElement, Connection, Engine, Text, cast, func, true, tuple_

from db.tables import EventRow


@dataclass(frozen=True, order=True)
class Cursor:
    """The place of an event."""

    xact: int = 0
    """Number of the transaction that wrote it; 0 on SQLite."""
    id: int = 0


START = Cursor()


def after(cursor: Cursor) -> ColumnElement[bool]:
    """A condition: the event stands behind the cursor."""
    return tuple_(EventRow.xact, EventRow.id) > tuple_(cursor.xact, cursor.id)


def final(bind: Engine | Connection) -> ColumnElement[bool]:
    """A condition: nothing that commits later can stand before the event."""
    if bind.dialect.name == "sqlite":
        return true()
    return EventRow.xact < _number(func.pg_snapshot_xmin(func.pg_current_snapshot()))


def of_another_server(bind: Engine | Connection) -> ColumnElement[bool]:
    """A condition: the event was written by a Postgres server that had counted further than this one, whose
    dump was restored here."""
    if bind.dialect.name == "sqlite":
        return ~true()
    return EventRow.xact >= _number(func.pg_snapshot_xmax(func.pg_current_snapshot()))


def _number(transaction: ColumnElement[object]) -> ColumnElement[int]:
    # Postgres casts its transaction numbers to text only.
    return cast(cast(transaction, Text), BigInteger)
