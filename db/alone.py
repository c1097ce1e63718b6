"""One process at a time: a lock by name that ends with its holder."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from db.engine import Database

LOCK_FILES = 16
"""Without Postgres all workers are on one machine, and a few files are locks enough."""


@contextmanager
def alone(database: Database, kind: str, name: str, *, wait: bool) -> Iterator[bool]:
    """True in the block where nobody else is in a block of that kind and name.

    Args:
        wait: until that is so; else the block is entered with False.
    """
    if database.engine.dialect.name == "postgresql":
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            bound = {"name": f"{kind} {name}"}
            key = "hashtextextended(:name, 0)"
            if wait:
                connection.execute(text(f"SELECT pg_advisory_lock({key})"), bound)
            elif not connection.execute(text(f"SELECT pg_try_advisory_lock({key})"), bound).scalar_one():
                yield False
                return
            try:
                yield True
            finally:
                connection.execute(text(f"SELECT pg_advisory_unlock({key})"), bound)
        return
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16) % LOCK_FILES
    path = Path(tempfile.gettempdir()) / f"warpsmith-{kind}-{os.getuid()}-{number}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _locked(descriptor, wait)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, wait: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
