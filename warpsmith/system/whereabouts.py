"""Where the work of this process stands, in words, and for how long nothing has moved.

A pool process does one task at a time, so there is one place. Stages say where they are; every answer of a
child is a movement. What stands still for longer than any honest step takes is ended by `worker.stage_watch`.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Whereabouts:
    """Safe to use from several threads."""

    words: str = ""
    """The place, such as `verification: pairs of n=4096, process 2 of 3`."""
    _moved_at: float = field(default_factory=time.monotonic)
    _longer_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, words: str) -> None:
        """Say where the work stands from now on."""
        self.words = words
        self.moved()

    def moved(self) -> None:
        """Note that something was achieved, at the same place."""
        self._moved_at = time.monotonic()

    @contextmanager
    def longer(self, seconds: float) -> Iterator[None]:
        """Context in which a step may take so much longer than a usual one."""
        with self._lock:
            self._longer_s += seconds
        try:
            yield
        finally:
            with self._lock:
                self._longer_s -= seconds

    def still_s(self) -> float:
        """Seconds without any movement, less those that the present step may take longer."""
        return time.monotonic() - self._moved_at - self._longer_s


HERE = Whereabouts()
"""That of this process."""
