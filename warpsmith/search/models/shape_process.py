"""A Gaussian process over configurations and the shapes that they run on.

What is learnt at one shape informs the others: the covariance of two points is that of their configurations,
shared by all shapes, times a mixture of 1 and the covariance of their shapes. Each shape has a level of its
own (how much can be gained there at all says nothing about which configuration gains it) and a spread of its
own. Where something is known beforehand, the process is of what differs from it, and what is learnt is
in part of one shape alone: there an effect that is small elsewhere can decide.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.search.models.covariance import Floats, matern
from warpsmith.search.spaces.feasible_set import FeasibleSet, parameter_values

Rows = NDArray[np.intp]

JITTER = 1e-8
LEVEL_VARIANCE = 100.0
"""Prior variance of a shape's level, in units of the process variance: as good as unknown."""
VARIANCE_SHAPE = 2.0
POOLED = 4.0
"""Results of all shapes that count for the spread of one."""
WORST = 0.8
"""Log of time over the best of the shape beyond which how bad it is carries no information."""
MANY_VALUES, TWO_VALUES, DEVIATION = 0.3, -0.7, 0.8
"""Prior of the logarithm of a parameter's inverse length, by its number of values, which lie in 0..1.

These and the next are rounded from fits to a fused MoE kernel of 64 experts (`benchmarks/results/triton`).
"""
SHAPE, SHAPE_DEVIATION = 1.25, 0.6
MIXTURE_DEVIATION = 0.7
NOISE, NOISE_DEVIATION = -6.4, 0.8
LEAST, MOST = -3.0, 3.0
CHANCE = 0.3
"""Deviations that a time is expected lower by for each unit of the logarithm of its chance to be the best."""
ALONE = 0.1
"""Variance of what holds for one shape alone, over the rest, where chances are known."""
STEPS = 80
"""Steps of a fit: random moves, of which those that raise the posterior are kept."""
MOVED = 0.35
"""Share of the weights that a move changes."""
BLOCK = 64
"""Rows that are taken in at once, which bounds the memory beside what is kept of them."""


class ShapeProcess:
    """Posterior mean and deviation of the log time for rows of a set whose rows each run on one shape.

    Args:
        shapes: columns of the space that say which shape a row runs on.
        chances: logarithm of every row's chance to be the best of its shape, up to a constant.
    """

    def __init__(
        self, feasible: FeasibleSet, shapes: Sequence[int], seed: int = 0, chances: Floats | None = None
    ) -> None:
        workloads = feasible.sole_workloads
        assert workloads is not None, "every row runs on one shape"
        self.workloads: Rows = workloads
        self.count = int(workloads.max()) + 1
        varying = [c for c, p in enumerate(feasible.space.parameters) if len(p.values) > 1]
        own = [c for c in varying if c not in shapes]
        self.points = _scaled(feasible, own)
        """[n, parameters]: values in 0..1, words one column a word."""
        of_rows = _scaled(feasible, [c for c in varying if c in shapes])
        self._shapes: Floats = np.zeros((self.count, of_rows.shape[1]))
        """[shapes, parameters]"""
        self._shapes[workloads] = of_rows
        self._rng = np.random.default_rng(seed)
        two = np.array([np.unique(column).size == 2 for column in self.points.T], bool)
        mean = np.where(two, TWO_VALUES, MANY_VALUES)
        self._prior_mean: Floats = np.concatenate([mean, [SHAPE, 0.0, NOISE]])
        spread = np.full(mean.size, DEVIATION)
        tail = [SHAPE_DEVIATION, MIXTURE_DEVIATION, NOISE_DEVIATION]
        self._prior_deviation: Floats = np.concatenate([spread, tail])
        self._theta = self._prior_mean.copy()
        self._alone = 0.0 if chances is None else ALONE
        self._expected: Floats = np.zeros(len(feasible)) if chances is None else -CHANCE * chances
        self._every: Rows = np.arange(len(feasible))
        self._taken = self._every[:0]
        """Rows of the factor, in its order."""
        self._factor: Floats = np.zeros((0, 0))
        """[taken, taken]: lower Cholesky factor of their covariance, with the noise."""
        self._projected: Floats = np.zeros((0, len(feasible)))
        """[taken or more, set]: inverse of the factor times the covariance with every row of the set."""
        self._explained: Floats = np.zeros(len(feasible))
        """[set]: variance that the rows taken explain, the sum of squares of a column of it."""

    def fit(self, rows: Rows, logs: Floats) -> None:
        """Fit the weights to results: log times of rows, relative to whatever is the same for a shape."""
        targets, _ = self._targets(rows, logs)
        best, theta, step = self._cost(self._theta, rows, targets), self._theta, DEVIATION
        for _ in range(STEPS):
            moved = self._rng.random(theta.size) < MOVED
            tried = theta + step * moved * self._rng.normal(size=theta.size)
            tried[:-1] = np.clip(tried[:-1], LEAST, MOST)
            cost = self._cost(tried, rows, targets)
            if cost < best:
                best, theta, step = cost, tried, min(1.2, 1.2 * step)
            else:
                step = max(0.15, 0.97 * step)
        self._theta = theta
        self._taken = self._every[:0]

    def posterior(self, rows: Rows, logs: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the log time at every row of the set, given those of some.

        Rows that follow those of the call before cost the work for themselves alone.
        """
        self._take(rows)
        targets, spreads = self._targets(rows, logs)
        solved = np.linalg.solve(self._factor, targets)
        variance = _variance(float(solved @ solved), rows.size)
        left = np.maximum(1.0 + LEVEL_VARIANCE - self._explained, 1e-9)
        scale = spreads[self.workloads]
        mean = self._expected + solved @ self._projected[: rows.size]
        return mean * scale, np.sqrt(left * variance) * scale

    def _take(self, rows: Rows) -> None:
        """Have the factor of these rows: what begins as before stays, the rest is appended."""
        shared = min(self._taken.size, rows.size)
        begins = int((self._taken[:shared] == rows[:shared]).cumprod().sum())
        if begins < self._factor.shape[0]:
            self._factor = self._factor[:begins, :begins]
            self._explained = (self._projected[:begins] ** 2).sum(axis=0)
        if rows.size > self._projected.shape[0]:
            grown = np.empty((2 * rows.size, self._every.size))
            grown[:begins] = self._projected[:begins]
            self._projected = grown
        for start in range(begins, rows.size, BLOCK):
            self._extend(rows[start : start + BLOCK])
        self._taken = rows

    def _extend(self, fresh: Rows) -> None:
        """Append rows to the factor and to what is projected through it."""
        known = self._factor.shape[0]
        before = self._projected[:known]
        shared = before[:, fresh]
        left = self._covariance(self._theta, fresh, self._every)
        left += LEVEL_VARIANCE * self._same(fresh, self._every)
        left -= shared.T @ before
        own = left[:, fresh]
        own[np.diag_indices_from(own)] += math.exp(self._theta[-1]) + JITTER
        factor = np.linalg.cholesky(own)
        part = np.linalg.solve(factor, left)
        self._projected[known : known + fresh.size] = part
        self._explained = self._explained + (part**2).sum(axis=0)
        grown = np.zeros((known + fresh.size,) * 2)
        grown[:known, :known], grown[known:, :known], grown[known:, known:] = self._factor, shared.T, factor
        self._factor = grown

    def _targets(self, rows: Rows, logs: Floats) -> tuple[Floats, Floats]:
        """Log times without outliers, less the expected, in units of a shape's spread; and the spreads."""
        of = self.workloads[rows]
        best = np.full(self.count, math.inf)
        np.minimum.at(best, of, logs)
        clipped = np.minimum(logs, best[of] + WORST)
        number = np.bincount(of, minlength=self.count)
        level = np.bincount(of, clipped, self.count) / np.maximum(number, 1)
        squares = np.bincount(of, (clipped - level[of]) ** 2, self.count)
        pooled = max(float(squares.sum()) / max(1, rows.size - self.count), 1e-6)
        spreads = np.sqrt((POOLED * pooled + squares) / (POOLED + np.maximum(number - 1, 0)))
        return clipped / spreads[of] - self._expected[rows], spreads

    def _cost(self, theta: Floats, rows: Rows, targets: Floats) -> float:
        """Negative log posterior of weights, up to a constant."""
        try:
            factor = np.linalg.cholesky(self._gram(theta, rows))
        except np.linalg.LinAlgError:
            return math.inf
        solved = np.linalg.solve(factor, targets)
        shape = VARIANCE_SHAPE + 0.5 * rows.size
        fit = shape * math.log(_variance(float(solved @ solved), rows.size))
        prior = (((theta - self._prior_mean) / self._prior_deviation) ** 2).sum() / 2.0
        return fit + float(np.log(np.diag(factor)).sum()) + float(prior)

    def _gram(self, theta: Floats, rows: Rows) -> Floats:
        gram = self._covariance(theta, rows, rows) + LEVEL_VARIANCE * self._same(rows, rows)
        gram[np.diag_indices_from(gram)] += math.exp(theta[-1]) + JITTER
        return gram

    def _covariance(self, theta: Floats, rows: Rows, others: Rows) -> Floats:
        share: float = math.exp(theta[-2])
        of_shapes = matern(math.exp(2.0 * theta[-3]) * _squared(self._shapes, self._shapes))
        mixed = (share * of_shapes + 1.0) / (1.0 + share)
        found: Floats = matern(self._apart(theta, rows, others))
        found *= mixed[self.workloads[rows][:, None], self.workloads[others][None, :]]
        if self._alone:
            row, other = np.nonzero(self._same(rows, others))
            apart = (self.points[rows[row]] - self.points[others[other]]) ** 2
            alone = matern(apart @ np.exp(2.0 * self._prior_mean[: apart.shape[1]]))
            found[row, other] += self._alone * alone
            found /= 1.0 + self._alone
        return found

    def _apart(self, theta: Floats, rows: Rows, others: Rows) -> Floats:
        weights = np.exp(theta[: self.points.shape[1]])
        return _squared(self.points[rows] * weights, self.points[others] * weights)

    def _same(self, rows: Rows, others: Rows) -> Floats:
        """[rows, others]: 1 where both are of one shape."""
        found: Floats = np.equal.outer(self.workloads[rows], self.workloads[others]).astype(np.float64)
        return found


def _squared(rows: Floats, others: Floats) -> Floats:
    """Squared distances, [rows, others]."""
    found = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None, :] - 2.0 * rows @ others.T
    result: Floats = np.maximum(found, 0.0)
    return result


def _scaled(feasible: FeasibleSet, columns: Sequence[int]) -> Floats:
    """Values of parameters in 0..1 by their logarithms; of words, one column a word."""
    found: list[Floats] = []
    for column in columns:
        values = parameter_values(feasible.space, column)
        codes = feasible.codes[:, column]
        if values.dtype.kind in "US":
            found += [(codes == n).astype(np.float64) for n in range(values.size)]
            continue
        numbers = values.astype(np.float64)
        logs = np.sign(numbers) * np.log2(np.abs(numbers) + (0.0 if (numbers > 0).all() else 1.0))
        found.append(((logs - logs.min()) / np.ptp(logs))[codes])
    return np.stack(found, axis=1) if found else np.zeros((len(feasible), 0))


def _variance(explained: float, count: int) -> float:
    """Estimate of the process variance; `explained` is the squared length of the targets in its units."""
    return (VARIANCE_SHAPE + 0.5 * explained) / (VARIANCE_SHAPE + 0.5 * count)
