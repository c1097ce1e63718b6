"""Children that can be made to stand still, all at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from warpsmith.processes.stop_children import require_wanted
from warpsmith.sandbox.transport.process import ChildProcess

LOOK_S = 0.5
"""Seconds between looks, during a halt, whether the work is still wanted."""


@dataclass
class HaltedChildren:
    """Children of one owner. While they are halted, none runs and none is asked for anything more.

    The deadlines of what they do go on.
    """

    _children: set[ChildProcess] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _going: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._going.set()

    def halt(self) -> None:
        """Stop all, and those that start from now on."""
        with self._lock:
            self._going.clear()
            for child in self._children:
                child.suspend()

    def go_on(self) -> None:
        """Let all run."""
        with self._lock:
            self._going.set()
            for child in self._children:
                child.wake()

    def wait_to_go(self) -> None:
        """Wait until they are not halted.

        Raises:
            LeaseLost: the work was recalled meanwhile.
        """
        while not self._going.wait(LOOK_S):
            require_wanted()

    @contextmanager
    def running(self, child: ChildProcess) -> Iterator[None]:
        """Context in which `child` is one of them."""
        with self._lock:
            self._children.add(child)
            if not self._going.is_set():
                child.suspend()
        try:
            yield
        finally:
            with self._lock:
                self._children.discard(child)
                child.wake()  # it may be kept, and `go_on` no longer knows it
