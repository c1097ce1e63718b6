"""Simple searchers for comparison: random, grid, local search."""

import numpy as np

from warpsmith.search.searchers.set_searcher import SetSearcher
from warpsmith.search.spaces.feasible_set import FeasibleSet


class RandomSearcher(SetSearcher):
    """Every open configuration is equally likely."""

    def __init__(self, feasible: FeasibleSet, seed: int = 0) -> None:
        super().__init__(feasible, seed)
        self._order = [int(i) for i in self.rng.permutation(len(feasible))]

    def choose(self) -> int:
        """See `SetSearcher.choose`."""
        place = next(n for n in reversed(range(len(self._order))) if not self.asked[self._order[n]])
        return self._order.pop(place)


class GridSearcher(SetSearcher):
    """Proposes configurations in the order of the set."""

    def choose(self) -> int:
        """See `SetSearcher.choose`."""
        return int(np.argmin(self.asked))


class LocalSearcher(SetSearcher):
    """Descent over one-parameter neighbours, restarted at random when a neighbourhood is exhausted."""

    STARTS = 10

    def __init__(self, feasible: FeasibleSet, seed: int = 0) -> None:
        super().__init__(feasible, seed)
        self._centre: int | None = None
        self._left: list[int] = []
        self._fresh = 0

    def choose(self) -> int:
        """See `SetSearcher.choose`."""
        if self._fresh < self.STARTS:
            self._fresh += 1
            return self._random()
        best = self._centre if self._centre is not None else self.best()
        if best is None:
            return self._random()
        if self._centre != best or not self._left:
            self._enter(best)
        while self._left:
            index = self._left.pop()
            if not self.asked[index]:
                return index
        self._fresh = self.STARTS - 3
        self._centre = None
        return self._random()

    def on_tell(self, index: int, value: float | None) -> None:
        """See `SetSearcher.on_tell`."""
        if value is None or self._centre is None:
            return
        centre = self.values.get(self._centre)
        if centre is None or value < centre:
            self._enter(index)

    def _enter(self, index: int) -> None:
        self._centre = index
        self._left = [int(i) for i in self.rng.permutation(self.feasible.neighbours(index))]

    def _random(self) -> int:
        return int(self.rng.choice(self.open_rows))
