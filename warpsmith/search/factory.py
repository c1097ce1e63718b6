"""Searchers by name."""

from collections.abc import Sequence

from warpsmith.domain.job import SearcherName
from warpsmith.domain.space import Configuration
from warpsmith.search.feasible_set import FeasibleSet
from warpsmith.search.launch_prior import Launched
from warpsmith.search.optuna_study import StudySearcher, TpeSearcher
from warpsmith.search.portfolio import PortfolioSearcher
from warpsmith.search.set_searcher import SetSearcher
from warpsmith.search.simple_searchers import GridSearcher, LocalSearcher, RandomSearcher

_CLASSES: dict[SearcherName, type[SetSearcher]] = {
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
    launched: Launched | None = None,
    unfinished: Sequence[Configuration] = (),
) -> StudySearcher:
    """A searcher that has heard of everything finished before.

    Args:
        history: finished trials of this search, in order; None where a configuration was rejected.
        warm_starts: configurations to propose first; old results may mislead, so they are on trial.
        least_gain: relative gain below which the search ends before its set does; 0: never.
        launched: what the launch says of every configuration; the default searcher alone looks at it.
        unfinished: proposed by this search before and never finished; they come before all else.
    """
    searcher: SetSearcher
    if name is SearcherName.DEFAULT:
        searcher = PortfolioSearcher(feasible, seed, launched=launched)
    else:
        searcher = _CLASSES[name](feasible, seed)
    searcher.start_with(warm_starts)
    searcher.finish_first(unfinished)
    study = StudySearcher(searcher, least_gain)
    for configuration, value in history:
        study.tell(configuration, value)
    return study
