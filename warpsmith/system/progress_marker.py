"""Progress marker of this process and the time since its last change; read by the stall watchdog.

A pool process does one task at a time, so there is one marker. Stages name their place; every answer of a
child is a movement. Work without movement for longer than any honest step takes is ended by
`worker.stage_watch`.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class ProgressMarker:
    """Place of the work, in words, and the time of its last movement. Safe to use from several threads."""

    words: str = ""
    """The place, such as `verification: pairs of n=4096, process 2 of 3`."""
    _moved_at: float = field(default_factory=time.monotonic)
    _longer_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, words: str) -> None:
        """Set the place of the work, which is a movement."""
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


PROGRESS = ProgressMarker()
"""Marker of this process."""
