"""How long a compilation may take, from what others of the same template took. Pure.

Some configurations make a compiler run for minutes, or for ever. Held to the pool's deadline, one of them
could take half of a small job's time.
"""

import statistics
import threading
from collections import OrderedDict, deque

RATIO = 20.0
"""Times the median of those before it."""
LEAST_S = 10.0
"""However quick the others were: a busy machine is slow now and then."""
ENOUGH = 4
"""Compilations before they say anything."""
REMEMBERED = 16
TEMPLATES = 256


class Patience:
    """Deadlines by template, learned from compilations that ended. Safe to use from several threads.

    Args:
        most_s: deadline where nothing is known, and in any case.
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
        """A compilation ended, well or with errors of the source, after so long."""
        with self._lock:
            self._took.setdefault(template, deque(maxlen=REMEMBERED)).append(seconds)
            self._took.move_to_end(template)
            while len(self._took) > TEMPLATES:
                self._took.popitem(last=False)
