"""Deadlines for what other processes do, stretched by how slow this machine is at the moment."""

import time
from collections.abc import Callable

WORK = 1_000_000
"""Additions of the measured piece of work."""
QUIET_S = 0.03
"""Seconds that the work takes on a quiet core of 2020 or later."""
MOST = 20.0
HANGS_S = 600.0
"""Ceiling of a wait for what comes for certain: only what hangs takes as long, on any machine."""


def slowness() -> float:
    """How many times longer work takes here and now than on a quiet core: at least 1, at most `MOST`."""
    return min(MOST, max(1.0, _work_s() / QUIET_S))


def stretched(seconds: float) -> float:
    """A deadline that is `seconds` on a quiet machine. For tests that fail if it passes, not for waits."""
    return seconds * slowness()


class Deadline:
    """So many seconds on a quiet machine: how slow this one is, is measured once they have passed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()
        self._end = self._began + seconds

    def passed(self) -> bool:
        """True if a machine as slow as this one has had the time as well."""
        if time.monotonic() < self._end:
            return False
        self._end = max(self._end, self._began + stretched(self._seconds))
        return time.monotonic() >= self._end


def comes_true(holds: Callable[[], object], seconds: float, every_s: float = 0.02) -> bool:
    """Whether it holds before the deadline; for what other processes and threads do."""
    deadline = Deadline(seconds)
    while not holds():
        if deadline.passed():
            return bool(holds())
        time.sleep(every_s)
    return True


def _work_s() -> float:
    """The time of the work: the longest of three, since a busy machine lets some run undisturbed."""
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        sum(range(WORK))
        taken.append(time.perf_counter() - began)
    return max(taken)
