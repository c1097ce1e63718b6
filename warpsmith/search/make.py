"""Searchers by name."""

from collections.abc import Callable, Sequence

from warpsmith.domain.job import SearcherName
from warpsmith.domain.space import Configuration
from warpsmith.search.base import SetSearcher
from warpsmith.search.feasible import FeasibleSet
from warpsmith.search.optuna_study import StudySearcher, TpeSearcher
from warpsmith.search.portfolio import PortfolioSearcher
from warpsmith.search.simple import GridSearcher, LocalSearcher, RandomSearcher
from warpsmith.tuning.ports import Searcher

_CLASSES: dict[SearcherName, type[SetSearcher]] = {
    SearcherName.DEFAULT: PortfolioSearcher,
    SearcherName.RANDOM: RandomSearcher,
    SearcherName.GRID: GridSearcher,
    SearcherName.TPE: TpeSearcher,
    SearcherName.LOCAL: LocalSearcher,
}


def make_searcher(
    name: SearcherName,
    feasible: FeasibleSet,
    seed: int,
    history: Sequence[tuple[Configuration, float | None]] = (),
    warm_starts: Sequence[Configuration] = (),
    least_gain: float = 0.0,
) -> StudySearcher:
    """A searcher that has heard of everything finished before.

    Args:
        history: finished trials of this search, in order; None where a configuration was rejected.
        warm_starts: configurations to propose first.
        least_gain: relative gain below which the search ends before its set does; 0: never.
    """
    searcher = _CLASSES[name](feasible, seed)
    searcher.start_with(warm_starts)
    study = StudySearcher(searcher, least_gain)
    for configuration, value in history:
        study.tell(configuration, value)
    return study


class Deferred:
    """Implements `tuning.ports.Searcher`: is made, and hears what it was told, when it is first asked.

    Of the slices that share a search one proposes; the others need no model of what was found.
    """

    def __init__(self, make: Callable[[], Searcher]) -> None:
        self._make = make
        self._made: Searcher | None = None
        self._told: list[tuple[Configuration, float | None]] = []

    def ask(self, count: int) -> Sequence[Configuration]:
        """See `tuning.ports.Searcher.ask`."""
        if self._made is None:
            self._made = self._make()
            for configuration, value in self._told:
                self._made.tell(configuration, value)
            self._told.clear()
        return self._made.ask(count)

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """See `tuning.ports.Searcher.tell`."""
        if self._made is None:
            self._told.append((configuration, value))
        else:
            self._made.tell(configuration, value)
