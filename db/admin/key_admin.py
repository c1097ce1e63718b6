"""API keys in the database of the settings, for an operator: the `warpsmith keys` commands."""

from collections.abc import Iterator
from contextlib import contextmanager

from db.admin.reachable import DatabaseAway, operated
from db.repositories.keys import KeyRepository
from warpsmith.settings import Settings


@contextmanager
def stored_keys(current: Settings | None = None) -> Iterator[KeyRepository]:
    """Context with the keys, in one transaction.

    Raises:
        Unavailable: the database does not answer, or its schema does not fit.
    """
    with operated(current) as database, database.write() as session:
        yield KeyRepository(session)


def any_active(current: Settings | None = None) -> bool | None:
    """True if a valid key exists; None if the database does not answer."""
    try:
        with stored_keys(current) as keys:
            return keys.any_active()
    except DatabaseAway:
        return None
