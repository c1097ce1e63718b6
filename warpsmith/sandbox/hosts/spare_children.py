"""Children started in advance, which hides most of the time of opening a device.

A spare child has imported its modules and is confined. It touches the device only on request.
"""

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from warpsmith.sandbox.transport.process import ChildProcess

COUNT = 2
"""Spare children per device: a comparison opens one process per side."""

_lock = threading.Lock()
_waiting: dict[tuple[int, str], list[ChildProcess]] = {}
"""Spare children by process id (a fork must not use its parent's) and device."""


def take(device: str) -> ChildProcess | None:
    """A spare child, or None. It may end at any time, together with the thread that started it."""
    while True:
        with _lock:
            found = _waiting.get((os.getpid(), device))
            child = found.pop(0) if found else None
        if child is None or child.alive:
            return child
        child.kill()


def refill(device: str, start: Callable[[], ChildProcess]) -> None:
    """Start the missing spare children; returns before they are ready."""
    with _lock:
        waiting = _waiting.setdefault((os.getpid(), device), [])
        dead = [child for child in waiting if not child.alive]
        waiting[:] = [child for child in waiting if child.alive]
        missing = COUNT - len(waiting)
    for child in dead:
        child.kill()
    made = [start() for _ in range(missing)]
    with _lock:
        waiting.extend(made)


@atexit.register
def end_all() -> None:
    """End all spare children and remove their folders."""
    with _lock:
        mine = [key for key in _waiting if key[0] == os.getpid()]
        ended = [child for key in mine for child in _waiting.pop(key)]
    for child in ended:
        with suppress(OSError):
            child.kill()
