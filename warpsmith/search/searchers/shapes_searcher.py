"""Searches configurations for many shapes at once: a trial is one configuration on one shape."""

import math
from collections.abc import Sequence

import numpy as np

from warpsmith.domain.templates.space import Configuration, is_shape
from warpsmith.search.models.covariance import Floats
from warpsmith.search.models.expected_improvement import expected_improvement
from warpsmith.search.models.shape_process import Rows, ShapeProcess
from warpsmith.search.searchers.set_searcher import ModelSearcher
from warpsmith.search.spaces.feasible_set import FeasibleSet

LEAST_RESULTS = 2
"""Results, those of the user's kernel among them, from which there is a model."""
TRIED = 6
"""Results of each shape before a search may settle."""
POOL = 300
"""Rows of a shape among which a first point is chosen."""
REFIT_SHARE = 5
"""The weights are fitted again after a fifth more results."""
EVERY = 2
"""Every so many turns the shape with the fewest results has its turn."""
QUIET_TURNS = 4
MOST_POINTS = 600
"""Results that the process keeps: the best of each shape and the latest."""
TINY = 1e-300


class ShapesSearcher(ModelSearcher):
    """Proposes the row with the largest expected gain over the best of its shape.

    In every second turn it is a row of the shape that was tried least, so that no shape is given up for its
    first results. A configuration that fails on one shape is not proposed for the others. Values are relative
    to the user's kernel, whose own is 1.

    Args:
        chances: see `ShapeProcess`.
    """

    def __init__(self, feasible: FeasibleSet, seed: int = 0, chances: Floats | None = None) -> None:
        super().__init__(feasible, seed)
        parameters = feasible.space.parameters
        shapes = [c for c, p in enumerate(parameters) if is_shape(p.name)]
        self._own = [c for c in range(len(parameters)) if c not in shapes]
        self._process = ShapeProcess(feasible, shapes, seed, chances)
        self._logs: dict[int, float] = {}
        """Log values by row in the order of first mention; what was expected of those without a result."""
        self._dropped: set[int] = set()
        """Rows that the process does not keep."""
        self._ran: list[int] = []
        """Rows with a result."""
        self._hidden = np.zeros(len(feasible), bool)
        self._fitted = 0
        self._turn = 0
        self._scores: Floats | None = None
        self._gains: list[float] = []
        self._know_the_defaults()

    def choose(self) -> int:
        """See `SetSearcher.choose`."""
        closed = self._closed
        if len(self._ran) < LEAST_RESULTS:
            return self._space_filling(np.flatnonzero(~closed))
        if len(self._ran) >= self._fitted:
            self._drop()
            self._process.fit(*self._kept())
            self._fitted = len(self._ran) + max(2, len(self._ran) // REFIT_SHARE)
        rows, known = self._kept()
        mean, deviation = self._process.posterior(rows, known)
        of = self._process.workloads
        gain = expected_improvement(self._best()[of], mean, deviation)
        gain[closed] = -math.inf
        self._gains.append(float(gain.max()))
        self._scores = gain
        self._turn += 1
        if self._turn % EVERY == 0:
            tried = np.bincount(of[rows], minlength=self._process.count)
            left = np.unique(of[~closed])
            gain = np.where(of == left[np.argmin(tried[left])], gain, -math.inf)
        best = int(np.argmax(gain))
        self._logs[best] = float(mean[best])
        return best

    def likely(self, count: int, after: Sequence[Configuration] = ()) -> Sequence[Configuration]:
        """See `tuning.ports.CompileForecast.likely`; nothing before the first scores."""
        if self._scores is None:
            return ()
        closed, before = self._closed, set(self._rows(after))
        rows = np.argsort(-self._scores, kind="stable")[: count + len(before) + int(self.asked.sum())]
        found = [int(r) for r in rows if not closed[r] and int(r) not in before]
        return [self.feasible.configuration(r) for r in found[:count]]

    def learn(self, configuration: Configuration, occupancy: float | None, spills: bool) -> None:
        """See `tuning.ports.CompileForecast.learn`: the process has no use for it."""

    def exclude(self, configuration: Configuration) -> None:
        """See `tuning.ports.CompileForecast.exclude`."""
        index = self.feasible.index(configuration)
        if index is not None and not self.asked[index]:
            self.asked[index] = True
            self._fails(index)

    def on_tell(self, index: int, value: float | None) -> None:
        """See `SetSearcher.on_tell`."""
        if value is None:
            self._logs.pop(index, None)
            self._fails(index)
        else:
            self._logs[index] = math.log(max(value, TINY))
            self._ran.append(index)

    def settled(self, least: float) -> bool:
        """See `SetSearcher.settled`: of the latest turns none expected a gain, and all shapes were tried."""
        tried = np.bincount(self._process.workloads[self._ran], minlength=self._process.count)
        if tried.min() < TRIED or len(self._gains) < QUIET_TURNS:
            return False
        return max(self._gains[-QUIET_TURNS:]) < least / self._process.count

    @property
    def _closed(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        closed = self.asked | self._hidden
        return self.asked.copy() if closed.all() else closed

    def _know_the_defaults(self) -> None:
        """The user's kernel was measured on every shape; its configuration is no proposal."""
        defaults = np.array(
            [p.values.index(p.baseline_value) for p in self.feasible.space.parameters], np.int16
        )
        own = self.feasible.codes[:, self._own] == defaults[self._own]
        for row in np.flatnonzero(own.all(axis=1)):
            self.asked[row] = True
            self._logs[int(row)] = 0.0
            self._ran.append(int(row))

    def _fails(self, index: int) -> None:
        own = self.feasible.codes[:, self._own]
        self._hidden |= (own == own[index]).all(axis=1)

    def _kept(self) -> tuple[Rows, Floats]:
        """Rows with results, or without one yet, and the logs of their values."""
        rows = [row for row in self._logs if row not in self._dropped]
        return np.array(rows, np.intp), np.array([self._logs[row] for row in rows])

    def _drop(self) -> None:
        """If there are many results, keep the best of each shape and the latest."""
        rows, logs = self._kept()
        if rows.size > MOST_POINTS:
            best = np.argsort(logs - self._best()[self._process.workloads[rows]], kind="stable")
            kept = {*best[: MOST_POINTS // 2].tolist(), *range(rows.size - MOST_POINTS // 2, rows.size)}
            self._dropped |= {int(row) for place, row in enumerate(rows) if place not in kept}

    def _best(self) -> Floats:
        """The lowest log value of each shape; that of the user's kernel where nothing is better."""
        best = np.zeros(self._process.count)
        for row in self._ran:
            value = self._logs[row]
            best[self._process.workloads[row]] = min(best[self._process.workloads[row]], value)
        return best

    def _space_filling(self, at: Rows) -> int:
        """A row of the next shape, as far from earlier proposals as a few random ones allow."""
        of = self._process.workloads[at]
        left = np.unique(of)
        pool = at[of == left[int(self.asked.sum()) % left.size]]
        pool = self.rng.choice(pool, min(POOL, pool.size), replace=False)
        asked = np.flatnonzero(self.asked)
        if not asked.size:
            return int(pool[0])
        points = self._process.points
        apart = ((points[pool][:, None, :] - points[asked][None, :, :]) ** 2).sum(axis=2).min(axis=1)
        return int(pool[np.argmax(apart)])
