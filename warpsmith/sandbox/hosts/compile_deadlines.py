"""Deadlines of compilations, from the times of other configurations of the same template. Pure.

Some configurations make a compiler run for minutes, or for ever. With the pool's deadline alone, one of them
could take half of a small job's time.
"""

import statistics
import threading
from collections import OrderedDict, deque

RATIO = 20.0
"""Deadline as a multiple of the median of earlier compilations."""
LEAST_S = 10.0
"""Least deadline in seconds, since a busy machine is slow now and then."""
ENOUGH = 4
"""Number of compilations needed before a deadline is derived from them."""
REMEMBERED = 16
TEMPLATES = 256


class CompileDeadlines:
    """Deadlines by template, learned from compilations that ended. Safe to use from several threads.

    Args:
        most_s: upper limit of the deadline, used while nothing is known.
    """

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._lock = threading.Lock()
        self._took: OrderedDict[str, deque[float]] = OrderedDict()

    def limit_s(self, template: str) -> float:
        """Seconds that the next compilation of the template may take."""
        with self._lock:
            took = list(self._took.get(template, ()))
        if len(took) < ENOUGH:
            return self._most_s
        return min(self._most_s, max(LEAST_S, RATIO * statistics.median(took)))

    def took(self, template: str, seconds: float) -> None:
        """Record a compilation that ended, successfully or with errors of the source, after this time."""
        with self._lock:
            self._took.setdefault(template, deque(maxlen=REMEMBERED)).append(seconds)
            self._took.move_to_end(template)
            while len(self._took) > TEMPLATES:
                self._took.popitem(last=False)
