"""Ends all children of this process at once if its work is recalled.

A pool process does one task at a time, so all its children belong to that task. Code that still waits for a
child, or is about to start one, gets `LeaseLost`.
"""

import threading
from typing import Protocol
from weakref import WeakSet

from warpsmith.errors import LeaseLost


class Recallable(Protocol):
    """A child or other activity that runs for this process."""

    def interrupt(self) -> None:
        """End it at once; any thread may call this at any time."""
        ...

    def kill(self) -> None:
        """End it and release its resources; may be called twice."""
        ...


class _ChildWork:
    """Running activities of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: WeakSet[Recallable] = WeakSet()
        self.ended: list[Recallable] = []
        self.recalled = False
        self.count = 0
        """Number of recalls."""


_work = _ChildWork()


def recall() -> None:
    """End everything that runs; nothing starts until `resume`."""
    with _work.lock:
        _work.recalled = True
        _work.count += 1
        found = list(_work.running)
        _work.ended.extend(found)
    for running in found:
        running.interrupt()


def resume() -> None:
    """Allow new activities; the recalled ones have ended."""
    with _work.lock:
        _work.recalled = False
        over = _work.ended.copy()
        _work.ended.clear()
    for ended in over:
        ended.kill()


def register(started: Recallable) -> None:
    """Register an activity, which a recall ends.

    Raises:
        LeaseLost: a recall has just happened; `started` was ended.
    """
    with _work.lock:
        _work.running.add(started)
        recalled = _work.recalled
    if recalled:
        started.kill()
        require_wanted()


def mark() -> int:
    """Mark of the present, for `require_wanted` in work that begins later."""
    return _work.count


def require_wanted(since: int | None = None) -> None:
    """Check that the work was not recalled.

    Args:
        since: the `mark` at the time of the request.

    Raises:
        LeaseLost: it was recalled.
    """
    if _work.recalled or (since is not None and since != _work.count):
        raise LeaseLost("the work was recalled")
