"""Mutual exclusion between processes: a named lock that ends with its holder."""

import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from db.engine import Database
from warpsmith.system.own_locks import lock_folder, opened_lock

LOCK_FILE = "databases.lock"
"""File of all such locks of this user, each a byte of it. Without Postgres all workers are on one machine."""
_FLOCK = "@hhqqi4x"
"""`struct flock` of Linux: type, from where, start, length, and a process, which is none here."""


class HeldLock:
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
def alone(database: Database, kind: str, name: str, *, wait: bool) -> Iterator[HeldLock | None]:
    """Context in which no other process is in a context of the same kind and name.

    Args:
        wait: wait for the lock; if False and the lock is taken, the context gives None.

    Raises:
        Unavailable: without Postgres, this user has no folder for locks.
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
                yield HeldLock(connection)
            finally:
                if not connection.invalidated:
                    connection.execute(text(f"SELECT pg_advisory_unlock({key})"), bound)
        return
    with opened_lock(lock_folder() / LOCK_FILE) as descriptor:
        held = _locked(descriptor, _place(database, kind, name), wait)
        yield HeldLock() if held else None


def _place(database: Database, kind: str, name: str) -> int:
    """The byte that stands for a lock, the same for whoever names the database by another path."""
    path = os.path.realpath(database.engine.url.database or "")
    return int.from_bytes(hashlib.sha256(f"{path}\0{kind} {name}".encode()).digest()[:8], "big") >> 2


def _locked(descriptor: int, place: int, wait: bool) -> bool:
    # Locks of an open file exclude other threads too, and end with the descriptor.
    command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
    try:
        fcntl.fcntl(descriptor, command, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))
    except (BlockingIOError, PermissionError):
        return False
    return True
