"""Searchers by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.domain.jobs.job import SearcherName
from warpsmith.domain.jobs.known_winner import KnownWinner
from warpsmith.domain.templates.space import Configuration
from warpsmith.registry import Kind, load
from warpsmith.search.models.known_winners import log_chances
from warpsmith.search.searchers.portfolio import PortfolioSearcher
from warpsmith.search.searchers.set_searcher import SetSearcher
from warpsmith.search.searchers.shapes_searcher import ShapesSearcher
from warpsmith.search.searchers.simple_searchers import GridSearcher, LocalSearcher, RandomSearcher
from warpsmith.search.spaces.feasible_set import FeasibleSet
from warpsmith.search.spaces.launch_prior import SizedLaunch

_CLASSES: dict[SearcherName, type[SetSearcher]] = {
    SearcherName.RANDOM: RandomSearcher,
    SearcherName.GRID: GridSearcher,
    SearcherName.LOCAL: LocalSearcher,
}


@dataclass(frozen=True)
class Hints:
    """Knowledge of a space before its search."""

    warm_starts: Sequence[Configuration] = ()
    """Configurations to propose first. Their results may mislead, so the default searcher drops them if fresh
    ones beside them are better."""
    launched: SizedLaunch | None = None
    """What the launch says of every configuration; only the default searcher uses it."""
    known_winners: Sequence[KnownWinner] = ()
    """What won elsewhere; only a search over shapes uses it."""


def make_searcher(
    name: SearcherName,
    feasible: FeasibleSet,
    seed: int,
    history: Sequence[tuple[Configuration, float | None]] = (),
    hints: Hints = Hints(),
    least_gain: float = 0.0,
) -> SetSearcher:
    """A searcher that was told of everything finished before.

    Args:
        history: finished trials of this search, in order; None where a configuration was rejected.
        least_gain: relative gain below which the search ends before its set does; 0: never.
    """
    searcher: SetSearcher
    if feasible.sole_workloads is not None and name in (SearcherName.DEFAULT, SearcherName.SHAPES):
        searcher = ShapesSearcher(feasible, seed, log_chances(feasible, hints.known_winners))
    elif name in (SearcherName.DEFAULT, SearcherName.SHAPES):
        searcher = PortfolioSearcher(feasible, seed, launched=hints.launched)
    elif name is SearcherName.TPE:
        # Optuna is imported where it is used: it takes as long as a pool's other imports together.
        from warpsmith.search.searchers.optuna_study import TpeSearcher

        searcher = TpeSearcher(feasible, seed)
    else:
        make = _CLASSES.get(name) or load(Kind.SEARCHER, name.value)
        searcher = make(feasible, seed)
    searcher.least_gain = least_gain
    searcher.start_with(hints.warm_starts)
    for configuration, value in history:
        searcher.tell(configuration, value)
    return searcher
