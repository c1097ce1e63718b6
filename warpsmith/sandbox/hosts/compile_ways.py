"""Chooses the compiler and mode of a template, learned from its other configurations. Pure.

A back end may have several ways to compile a source and try them one after another. A configuration begins
with the way that another one of its template needed, and a template that no way has helped is spared them.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass

FUTILE = 2
"""Configurations that every way refuses, after which a template has no further ones tried."""
TEMPLATES = 256


@dataclass
class _Known:
    way: str = ""
    futile: int = 0


class LearnedWays:
    """Ways of compiling that helped, and refusals, by template. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def begin(self, template: str) -> tuple[str, bool]:
        """The way to begin with (empty: the first), and whether others may be tried after it."""
        with self._lock:
            known = self._known.get(template, _Known())
            return known.way, known.futile < FUTILE

    def compiled(self, template: str, began_with: str, way: str) -> None:
        """Record that a configuration was compiled in this way.

        If it was the first way, a way that another configuration needed in the meantime is kept.
        """
        with self._lock:
            known = self._at(template)
            known.futile = 0
            if way != began_with and (began_with or not known.way):
                known.way = way

    def refused(self, template: str) -> None:
        """Record a configuration that every way refused."""
        with self._lock:
            self._at(template).futile += 1

    def _at(self, template: str) -> _Known:
        known = self._known.setdefault(template, _Known())
        self._known.move_to_end(template)
        while len(self._known) > TEMPLATES:
            self._known.popitem(last=False)
        return known
