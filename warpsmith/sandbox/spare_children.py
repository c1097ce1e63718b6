"""Children that have started and wait: most of what opening a device takes is done before it is asked for.

A spare has imported what it needs and is confined; it touches the device when it is told to, not before.
"""

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from warpsmith.sandbox.process import ChildProcess

COUNT = 2
"""For each device: a comparison opens a process for each side at a time."""

_lock = threading.Lock()
_waiting: dict[tuple[int, str], list[ChildProcess]] = {}
"""By process, since a fork must not use its parent's, and device."""


def take(device: str) -> ChildProcess | None:
    """A child that waits, or None. It may end at any time, with the thread that started it."""
    while True:
        with _lock:
            found = _waiting.get((os.getpid(), device))
            child = found.pop(0) if found else None
        if child is None or child.alive:
            return child
        child.kill()


def refill(device: str, start: Callable[[], ChildProcess]) -> None:
    """Start what is missing; returns while they are still starting."""
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
    """End the children that wait, and remove their folders."""
    with _lock:
        mine = [key for key in _waiting if key[0] == os.getpid()]
        ended = [child for key in mine for child in _waiting.pop(key)]
    for child in ended:
        with suppress(OSError):
            child.kill()
