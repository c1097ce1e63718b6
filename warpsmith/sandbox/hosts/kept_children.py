"""Reference children that wait for the next cases of the job whose function they ran."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpsmith.sandbox.transport.process import ChildProcess


@dataclass
class KeptChildren:
    """Idle children of one source: another job's code might meet what the first left in them.

    A child that is kept has its memory: fresh pages cost it more than the arithmetic of most references.

    Args:
        keep_s: seconds after which idle children end; 0: they end at once.
    """

    keep_s: float = 0.0
    _source: str = ""
    _idle: list[ChildProcess] = field(default_factory=list)
    _end: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, source: str) -> ChildProcess | None:
        """A living child that ran nothing but this source, or None."""
        with self._lock:
            self._wait_no_longer()
            ended = [] if source == self._source else self._all()
            found = None
            while self._idle and found is None:
                child = self._idle.pop()  # the last one has the most memory in use again
                if child.alive:
                    found = child
                else:
                    ended.append(child)
            self._source = source
        _kill(ended)
        return found

    def give_back(self, source: str, child: ChildProcess) -> None:
        """Keep a child that has answered all that it was asked."""
        with self._lock:
            keeps = self.keep_s > 0 and source == self._source and child.alive
            if keeps:
                self._idle.append(child)
                self._wait_no_longer()
                self._end = threading.Timer(self.keep_s, self.end_all)
                self._end.daemon = True
                self._end.start()
        if not keeps:
            child.kill()

    def end_all(self) -> None:
        """End those that wait."""
        with self._lock:
            self._wait_no_longer()
            ended = self._all()
        _kill(ended)

    def _all(self) -> list[ChildProcess]:
        found, self._idle = self._idle, []
        return found

    def _wait_no_longer(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None


def _kill(children: Sequence[ChildProcess]) -> None:
    for child in children:
        child.kill()
