"""Errors of the data folder and its database, as one line with the place and the remedy."""

import errno
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warpsmith.errors import StorageUnusable

PROBE_BYTES = 256 << 10
"""Free bytes that a data folder must have for anything to begin in it."""
_FULL = (sqlite3.SQLITE_FULL, errno.ENOSPC, errno.EDQUOT)
_NOT_OURS = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)


def cause_of(exc: BaseException) -> str:
    """Reason of an error in the words of the driver or the system, on one line."""
    cause = getattr(exc, "orig", None) or exc
    said = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return " ".join(said.split())


@contextmanager
def usable_storage(place: Path) -> Iterator[None]:
    """Context that uses the data folder or its database.

    Raises:
        StorageUnusable: it cannot be used; the message is one line.
    """
    try:
        yield
    except Exception as exc:
        cause = getattr(exc, "orig", exc)
        if not isinstance(cause, (OSError, sqlite3.Error, UnicodeEncodeError)):
            raise
        named = getattr(cause, "filename", None) or place
        shown = str(named).encode(errors="backslashreplace").decode().replace("\n", "\\n")
        done, remedy = _remedy(cause)
        raise StorageUnusable(
            f"the data folder cannot be {done}: {cause_of(exc)}: {shown}; {remedy}, or name another by "
            "WARPSMITH_DATA_DIR"
        ) from exc


def require_room(folder: Path) -> None:
    """Check that a folder can be written and has room for a database.

    Raises:
        OSError: it cannot, or has not.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(PROBE_BYTES))


def _remedy(cause: Exception) -> tuple[str, str]:
    number = getattr(cause, "sqlite_errorcode", None)
    code = getattr(cause, "errno", None) if number is None else number & 0xFF
    if code in _FULL:
        return "written", "make room there"
    if code in _NOT_OURS:
        return "used", "move that away"
    return "written", "give this user the right"
