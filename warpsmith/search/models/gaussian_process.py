"""A Gaussian process over an enumerated set: rank-one updates between refits of its weights.

Every step costs one pass over [points, set]. Beyond `WINDOW` points the process keeps the best ones, the
latest ones and a random part of the others, so that the cost of a step does not grow with the search.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.search.models.covariance import (
    PRIOR,
    Floats,
    Prior,
    Tables,
    matern,
    matern_in_place,
    matern_slope,
)
from warpsmith.search.spaces.feasible_set import FeasibleSet
from warpsmith.search.spaces.launch_prior import SizedLaunch

JITTER = 1e-8
NOISE = 2.5e-3
"""Initial noise variance of the standardised values."""
MEAN_PRECISION = 1.0
"""Precision of the prior of the constant mean, in units of the process variance."""
VARIANCE_SHAPE = 2.0
"""Shape of the inverse gamma prior of the process variance; its scale is the same."""
FIT_STEPS = 30
FIT_LIMIT = 200
"""Limit on the points of a fit of the weights: the best and the latest."""
GROWTH = 1.15
WINDOW = 400
"""Limit on the points that the process keeps when it is rebuilt."""


class GaussianProcess:
    """Posterior mean and variance for every row of the set.

    Rows enter when they are proposed; their values may follow later. The prior mean comes from the launch.
    """

    def __init__(
        self, feasible: FeasibleSet, seed: int = 0, prior: Prior = PRIOR, launched: SizedLaunch | None = None
    ) -> None:
        self._tables = Tables(feasible, launched)
        self.expected: Floats = np.zeros(len(feasible)) if launched is None else launched.expected
        """[n]: prior mean of every row, from the launch."""
        self.foreseen = np.zeros(len(feasible))
        """[n]: slowness of every row, predicted from its compiler's report; see `search.compile_facts`."""
        self.reported = np.zeros(len(feasible), bool)
        """[n]: True if the row's compiler report is known."""
        self._codes = self._tables.codes
        self._rng = np.random.default_rng(seed)
        self._prior = np.array([*(prior[k] for k in self._tables.kinds), (math.log(NOISE), 1.0)])
        """[weights and noise, 2]: mean and deviation of their logarithms."""
        self._weights: Floats = np.exp(self._prior[:-1, 0])
        self._noise = NOISE
        self.rows: list[int] = []
        """The rows that the process keeps, in the order of the targets of `posterior`."""
        self._entered = 0
        """Number of rows that the matrices below contain; the others are added on demand."""
        self._inverse: Floats = np.zeros((16, 16))
        """Inverse of the Cholesky factor of the points' covariance."""
        self._projected = np.zeros((16, len(feasible)), np.float32)
        self._explained = np.zeros(len(feasible))
        self._next_fit = 6

    def add(self, row: int) -> None:
        """Add a row; the next posterior takes its influence on variances into account."""
        # Nothing is computed before a refit: a resumed search adds hundreds of rows.
        self.rows.append(row)

    def foresee(self, row: int, slowness: float) -> None:
        """Record the slowness that a compiler's report predicts for a row."""
        self.foreseen[row] = slowness
        self.reported[row] = True

    def _enter(self, row: int) -> None:
        n = self._entered
        if n == self._projected.shape[0]:
            self._grow(2 * n)
        column = self._covariances(np.array([row]))[0]
        inverse = self._inverse[:n, :n]
        solved = inverse @ column[self.rows[:n]]
        pivot = math.sqrt(max(1.0 + self._noise + JITTER - float(solved @ solved), 1e-10))
        self._inverse[n, :n] = (solved @ inverse) / -pivot
        self._inverse[n, n] = 1.0 / pivot
        fresh = (column - solved.astype(np.float32) @ self._projected[:n]) / np.float32(pivot)
        self._projected[n] = fresh
        self._explained += fresh**2
        self._entered += 1

    def posterior(self, targets: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every row of the set.

        Args:
            targets: standardised values of `rows`, in that order.
        """
        for row in self.rows[self._entered :]:
            self._enter(row)
        mean, scale = self._mean(targets, self.expected)
        if self.foreseen.any():
            # Rows without a report get no prediction: the slowness of their neighbours is already in the
            # values of these.
            informed, _ = self._mean(targets, self.expected + self.foreseen)
            mean = np.where(self.reported, informed, mean)
        deviation = scale * np.sqrt(np.maximum(1.0 - self._explained, 1e-10))
        return mean, deviation

    def _mean(self, targets: Floats, expected: Floats) -> tuple[Floats, float]:
        """Posterior mean above `expected`, and the scale of the deviation."""
        targets = targets - expected[self.rows]
        n = len(self.rows)
        inverse = self._inverse[:n, :n]
        ones = inverse.sum(axis=1)
        solved = inverse @ targets
        centre = float(ones @ solved) / (float(ones @ ones) + MEAN_PRECISION)
        solved = solved - centre * ones
        mean = solved.astype(np.float32) @ self._projected[:n]
        scale = math.sqrt(_variance(float(solved @ solved), n))
        return mean.astype(np.float64) + centre + expected, scale

    def due(self, count: int) -> bool:
        """True when the data has grown enough for a refit.

        Args:
            count: rows proposed so far, including those that the process no longer keeps.
        """
        return count >= self._next_fit

    def refit(self, rows: Sequence[int], targets: Floats) -> None:
        """Fit weights and noise by gradient steps on the log posterior, then rebuild.

        Args:
            rows: all rows proposed so far, in order.
            targets: their standardised values.
        """
        self._next_fit = math.ceil(len(rows) * GROWTH)
        every = np.asarray(rows, np.intp)
        pick = _best_and_latest(targets, FIT_LIMIT)
        codes = self._codes[every[pick]]
        surprises = (targets - self.expected[every])[pick]
        self._weights, self._noise = fit(
            self._tables.gather(codes, codes), surprises, self._weights, self._noise, self._prior
        )
        keep = _best_and_latest(targets, WINDOW * 3 // 4)
        others = np.setdiff1d(np.arange(every.size), keep)
        if others.size > WINDOW // 4:
            others = self._rng.choice(others, WINDOW // 4, replace=False)
        self._rebuild(every[np.union1d(keep, others)])

    def _covariances(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        result = self._tables.distances(self._weights, self._codes[rows])
        matern_in_place(result)
        return result

    def _grow(self, size: int) -> None:
        n = self._entered
        inverse = np.zeros((size, size))
        inverse[:n, :n] = self._inverse[:n, :n]
        projected = np.zeros((size, self._projected.shape[1]), np.float32)
        projected[:n] = self._projected[:n]
        self._inverse, self._projected = inverse, projected

    def _rebuild(self, rows: NDArray[np.intp]) -> None:
        total = self._covariances(rows)
        gram = total[:, rows].astype(np.float64)
        gram[np.diag_indices_from(gram)] = 1.0 + self._noise + JITTER
        n = rows.size
        self._entered = 0
        self._grow(max(16, 2 * n) if n < WINDOW else n + 64)
        inverse = np.linalg.inv(np.linalg.cholesky(gram))
        self._inverse[:n, :n] = np.tril(inverse)
        np.matmul(inverse.astype(np.float32), total, out=self._projected[:n])
        self._explained = np.einsum("ij,ij->j", self._projected[:n], self._projected[:n], dtype=np.float64)
        self.rows = [int(r) for r in rows]
        self._entered = n


def _best_and_latest(targets: Floats, limit: int) -> NDArray[np.intp]:
    """Positions of the best and the latest values, ascending; all of them if there are few."""
    every = np.arange(targets.size)
    if targets.size <= limit:
        return every
    return np.union1d(np.argsort(targets, kind="stable")[: limit // 2], every[-limit // 2 :])


def _variance(explained: float, count: int) -> float:
    """Estimate of the process variance from the points and the prior.

    Args:
        explained: squared length of the values in units of their covariance.
    """
    return (VARIANCE_SHAPE + 0.5 * explained) / (VARIANCE_SHAPE + 0.5 * count)


def fit(
    distances: list[Floats],
    targets: Floats,
    weights: Floats,
    noise: float,
    prior: Floats,
    steps: int = FIT_STEPS,
) -> tuple[Floats, float]:
    """Maximum a posteriori fit of weights and noise: Adam on their logarithms, started at the last fit.

    Args:
        distances: per contribution, [points, points].
        prior: mean and deviation of the logarithm of every weight, and of the noise.
    """
    theta: Floats = np.log(np.append(weights, noise)).astype(np.float64)
    prior_mean, prior_scale = prior.T
    stacked: Floats = np.array(distances, np.float64).reshape(len(distances), -1)
    first: Floats = np.zeros_like(theta)
    second: Floats = np.zeros_like(theta)
    best: Floats = theta
    best_value = math.inf
    for step in range(1, steps + 1):
        value, gradient = _negative_log_posterior(theta, stacked, targets)
        value += 0.5 * float((((theta - prior_mean) / prior_scale) ** 2).sum())
        gradient = gradient + (theta - prior_mean) / prior_scale**2
        if value < best_value:
            best, best_value = np.asarray(theta, np.float64).copy(), value
        first = 0.8 * first + 0.2 * gradient
        second = 0.95 * second + 0.05 * gradient**2
        rate = 0.25 * (1.0 - 0.5 * step / steps)
        theta = theta - rate * (first / (1 - 0.8**step)) / (np.sqrt(second / (1 - 0.95**step)) + 1e-8)
        theta = np.clip(theta, math.log(1e-5), math.log(1e3)).astype(np.float64)
    return np.exp(best[:-1]), float(np.exp(best[-1]))


def _negative_log_posterior(theta: Floats, stacked: Floats, targets: Floats) -> tuple[float, Floats]:
    weights, noise = np.exp(theta[:-1]), math.exp(theta[-1])
    total: Floats = (weights @ stacked).reshape(targets.size, targets.size)
    gram = np.array(matern(total), np.float64)
    gram[np.diag_indices_from(gram)] += noise + JITTER
    inverse = np.array(np.linalg.inv(gram), np.float64)
    sign, logdet = np.linalg.slogdet(gram)
    if sign <= 0:
        return math.inf, np.zeros_like(theta)
    ones = inverse.sum(axis=1)
    alpha = inverse @ targets
    centre = float(alpha.sum()) / (float(ones.sum()) + MEAN_PRECISION)
    alpha = alpha - centre * ones
    variance = _variance(float((targets - centre) @ alpha), targets.size)
    shape = VARIANCE_SHAPE + 0.5 * targets.size
    value = shape * math.log(variance) + 0.5 * float(logdet)
    outer = 0.5 * (inverse - np.outer(alpha, alpha) / variance)
    scaled = outer * matern_slope(total)
    gradient = np.append(weights * (stacked @ scaled.ravel()), noise * float(np.trace(outer)))
    return value, gradient
