"""Runs our searchers on a recorded space: ask, look the time up, tell."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.search.spaces import RecordedSpace
from warpsmith.domain.job import SearcherName
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.search.factory import make_searcher
from warpsmith.tuning.ports import CompileForecast

Trace = list[float | None]


class AskTell(Protocol):
    """A search of anybody's."""

    def ask(self, count: int) -> Sequence[Configuration]:
        """Up to `count` configurations not asked before."""
        ...

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """The time of a configuration, or None if it failed."""
        ...


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
    return run(searcher, space, budget, batch, Ahead(searcher.forecast, foreseen))


@dataclass(frozen=True)
class Ahead:
    """How many likely configurations are compiled before each proposal, and whose forecast names them."""

    forecast: CompileForecast | None = None
    foreseen: int = 0


def run(
    searcher: AskTell, space: RecordedSpace, budget: int, batch: int = 1, ahead: Ahead = Ahead()
) -> tuple[Trace, float]:
    """Drive any ask/tell searcher to `budget` recorded evaluations."""
    trace: Trace = []
    forecast = ahead.forecast if ahead.foreseen else None
    spent = 0.0
    while len(trace) < budget:
        started = time.process_time()
        if forecast is not None:
            _compile(forecast, space, forecast.likely(ahead.foreseen))
        asked = searcher.ask(min(batch, budget - len(trace)))
        if forecast is not None:
            _compile(forecast, space, asked)
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


def _compile(
    forecast: CompileForecast, space: RecordedSpace, configurations: Sequence[Configuration]
) -> None:
    for configuration in configurations:
        report = space.reports.get(configuration_key(configuration))
        if report is not None:
            forecast.learn(configuration, *report)
