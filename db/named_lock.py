"""Mutual exclusion between processes: a named lock that ends with its holder."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from db.engine import Database

LOCK_FILES = 16
"""Number of lock files. Without Postgres all workers are on one machine, and a few files suffice."""


class Held:
    """A lock that this process holds or has held."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._connection = connection

    def holds(self) -> bool:
        """False once the lock's connection is gone, since another process may have the lock then."""
        if self._connection is None:
            return True
        if not self._connection.invalidated:
            with suppress(DBAPIError):
                self._connection.execute(text("SELECT 1"))
        return not self._connection.invalidated


@contextmanager
def alone(database: Database, kind: str, name: str, *, wait: bool) -> Iterator[Held | None]:
    """Context in which no other process is in a context of the same kind and name.

    Args:
        wait: wait for the lock; if False and the lock is taken, the context gives None.
    """
    if database.engine.dialect.name == "postgresql":
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            bound = {"name": f"{kind} {name}"}
            key = "hashtextextended(:name, 0)"
            if wait:
                connection.execute(text(f"SELECT pg_advisory_lock({key})"), bound)
            elif not connection.execute(text(f"SELECT pg_try_advisory_lock({key})"), bound).scalar_one():
                yield None
                return
            try:
                yield Held(connection)
            finally:
                if not connection.invalidated:
                    connection.execute(text(f"SELECT pg_advisory_unlock({key})"), bound)
        return
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16) % LOCK_FILES
    path = Path(f"{database.engine.url.database}-{kind}-{number}.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield Held() if _locked(descriptor, wait) else None
    finally:
        os.close(descriptor)


def _locked(descriptor: int, wait: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
