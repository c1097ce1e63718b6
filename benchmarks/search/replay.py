"""Runs our searchers on a recorded space: ask, look the time up, tell."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.search.spaces import RecordedSpace
from warpsmith.domain.job import SearcherName
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.search.factory import make_searcher
from warpsmith.search.set_searcher import SetSearcher

Trace = list[float | None]


@dataclass(frozen=True)
class Setup:
    """Which of our searchers is run, and what it is told."""

    name: SearcherName = SearcherName.DEFAULT
    starts: Sequence[Configuration] = ()
    least_gain: float = 0.0


def replay(
    space: RecordedSpace,
    seed: int,
    budget: int,
    setup: Setup,
    batch: int = 1,
    foreseen: int = 0,
) -> tuple[Trace, float]:
    """Values in order of evaluation, and seconds of processor time of the searcher per evaluation.

    Args:
        foreseen: likely configurations that are compiled before each proposal.
    """
    searcher = make_searcher(
        setup.name,
        space.feasible,
        seed,
        warm_starts=setup.starts,
        least_gain=setup.least_gain,
        launched=space.launched,
    )
    return run(searcher, space, budget, batch, foreseen)


def run(
    searcher: "SetSearcher | object", space: RecordedSpace, budget: int, batch: int = 1, foreseen: int = 0
) -> tuple[Trace, float]:
    """Drive any ask/tell searcher to `budget` recorded evaluations."""
    trace: Trace = []
    spent = 0.0
    while len(trace) < budget:
        started = time.process_time()
        if foreseen:
            _compile(searcher, space, searcher.likely(foreseen))  # type: ignore[attr-defined]
        asked = searcher.ask(min(batch, budget - len(trace)))  # type: ignore[attr-defined]
        if foreseen:
            _compile(searcher, space, asked)
        spent += time.process_time() - started
        if not asked:
            break
        for configuration in asked:
            known = space.knows(configuration)
            value = space.time(configuration) if known else None
            if known:
                trace.append(value)
            started = time.process_time()
            searcher.tell(configuration, value)  # type: ignore[attr-defined]
            spent += time.process_time() - started
    return trace, spent / max(1, len(trace))


def _compile(searcher: object, space: RecordedSpace, configurations: Sequence[Configuration]) -> None:
    for configuration in configurations:
        report = space.reports.get(configuration_key(configuration))
        if report is not None:
            searcher.learn(configuration, *report)  # type: ignore[attr-defined]
