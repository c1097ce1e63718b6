"""Ends what this process has others do, once the work is nobody's any more: its children, all at once.

A pool process does one task at a time, so all that it has begun belongs to that task. What still waits for
a child, or is about to start one, gets `LeaseLost`.
"""

import threading
from typing import Protocol
from weakref import WeakSet

from warpsmith.errors import LeaseLost


class Recallable(Protocol):
    """Something that runs for this process."""

    def interrupt(self) -> None:
        """End it at once; any thread may ask, at any time."""
        ...

    def kill(self) -> None:
        """End it and give back what it held; may be called twice."""
        ...


class _Work:
    """What this process does now."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: WeakSet[Recallable] = WeakSet()
        self.ended: list[Recallable] = []
        self.recalled = False
        self.count = 0
        """How often something was recalled."""


_work = _Work()


def recall() -> None:
    """End everything that runs; nothing more starts until `resume`."""
    with _work.lock:
        _work.recalled = True
        _work.count += 1
        found = list(_work.running)
        _work.ended.extend(found)
    for running in found:
        running.interrupt()


def resume() -> None:
    """What was recalled is over; the next task may begin."""
    with _work.lock:
        _work.recalled = False
        over = _work.ended.copy()
        _work.ended.clear()
    for ended in over:
        ended.kill()


def register(started: Recallable) -> None:
    """`started` is to be ended with everything else.

    Raises:
        LeaseLost: that has just happened; `started` is ended.
    """
    with _work.lock:
        _work.running.add(started)
        recalled = _work.recalled
    if recalled:
        started.kill()
        require_wanted()


def mark() -> int:
    """What `require_wanted` is to be given by work that begins later."""
    return _work.count


def require_wanted(since: int | None = None) -> None:
    """The work goes on.

    Args:
        since: the `mark` of when it was asked for.

    Raises:
        LeaseLost: it was recalled.
    """
    if _work.recalled or (since is not None and since != _work.count):
        raise LeaseLost("the work was recalled")
