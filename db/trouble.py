"""Trouble with a database file, told beside it: who reads the database learns what its writers wait for."""

import time
from contextlib import suppress
from pathlib import Path

FRESH_S = 8.0
"""Seconds for which trouble counts as present; writers tell it anew every few seconds."""
_BYTES = 2048


def make_room_for_trouble(database: str) -> None:
    """Reserve the room, which a full disk has not."""
    _place(database).write_bytes(bytes(_BYTES))


def tell_trouble(database: str, words: str) -> None:
    """Tell what a writer of a database waits for."""
    # All processes of a machine share this clock, which nobody sets.
    told = f"{time.monotonic()}\n{words}".encode(errors="replace")[:_BYTES]
    with suppress(OSError), _place(database).open("r+b") as file:
        file.write(told.ljust(_BYTES, b"\0"))


def trouble_of(database: str) -> str:
    """Storage error that writers of a database wait out at present; empty if there is none."""
    try:
        at_s, _, words = _place(database).read_bytes().rstrip(b"\0").decode(errors="replace").partition("\n")
        return words if 0 <= time.monotonic() - float(at_s) <= FRESH_S else ""
    except (OSError, ValueError):
        return ""


def _place(database: str) -> Path:
    return Path(f"{database}-trouble")
