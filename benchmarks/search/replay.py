"""Runs searchers on a recorded space: ask, look the time up, tell."""

import time
from collections.abc import Sequence
from typing import Protocol

from benchmarks.search.spaces import RecordedSpace
from warpsmith.domain.templates.space import Configuration

Trace = list[float | None]


class AskTell(Protocol):
    """A search of anybody's."""

    def ask(self, count: int) -> Sequence[Configuration]:
        """Up to `count` configurations not asked before."""
        ...

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """The time of a configuration, or None if it failed."""
        ...


def run(searcher: AskTell, space: RecordedSpace, budget: int) -> tuple[Trace, float]:
    """Drive any ask/tell searcher to `budget` recorded evaluations.

    Returns:
        The values in order of evaluation, and seconds of processor time of the searcher per evaluation.
    """
    trace: Trace = []
    spent = 0.0
    while len(trace) < budget:
        started = time.process_time()
        asked = searcher.ask(1)
        spent += time.process_time() - started
        if not asked:
            break
        for configuration in asked:
            known = space.knows(configuration)
            value = space.time(configuration) if known else None
            if known:
                trace.append(value)
            started = time.process_time()
            searcher.tell(configuration, value)
            spent += time.process_time() - started
    return trace, spent / max(1, len(trace))
