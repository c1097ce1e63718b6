"""Searchers by name."""

from collections.abc import Sequence

from warpsmith.domain.job import SearcherName
from warpsmith.domain.space import Configuration
from warpsmith.search.base import SetSearcher
from warpsmith.search.feasible import FeasibleSet
from warpsmith.search.optuna_study import StudySearcher, TpeSearcher
from warpsmith.search.portfolio import PortfolioSearcher
from warpsmith.search.simple import GridSearcher, LocalSearcher, RandomSearcher

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
