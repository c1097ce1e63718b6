"""Prunes a trial after its first workloads if they predict a hopeless result on the others.

The relation between workloads is learnt from the candidate's trials on all of them: a regression of the
logarithms of time divided by baseline time. It is local in the first workload, since configurations that are
slow for different reasons relate differently. The first workloads alone decide which trials run on all, so
that a regression on these is not biased by the selection.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warpsmith.search.models.expected_improvement import expected_improvement

Floats = NDArray[np.float64]

LEAST_WORKLOADS = 3
"""Least number of workloads that allow a configuration; with two there was little to save, and long searches
became worse."""
ENOUGH = 6
"""Trials on all workloads before a prediction is made; more if more workloads are regressed on."""
LEAST_TRIAL_GAIN = 0.0005
"""Least relative gain that the rest of a trial must promise, in the objective and in the mean over workloads
of each one's own best together."""
BY_CHANCE = 0.1
"""Share of hopeless trials that continue at random. Otherwise nothing would be learnt about bad times, and
estimates could not be checked."""
NEAR = 1.02
"""Factor of a workload's best within which a configuration runs on all workloads: it may be the best when
timed again."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
NARROW = 1e-3
RIDGE = 1e-6


def evenly(seed: int) -> Callable[[], float]:
    """Numbers from 0 to 1, spread evenly in every stretch: of ten in a row, about one is below 0.1.

    With plain random numbers some seeds go dozens of trials without one.
    """
    at = random.Random(seed).random()

    def draw() -> float:
        nonlocal at
        at = (at + GOLDEN) % 1.0
        return at

    return draw


@dataclass(frozen=True)
class Estimate:
    """Estimate for a configuration that is not worth running on the other workloads."""

    objective: float
    """Estimated objective, never better than the best measured one."""
    goes_on: bool
    """True if it runs on the other workloads all the same, at random."""


@dataclass
class Pruner:
    """Learns from trials on all their workloads, and decides whether a running trial continues.

    Args:
        weights: weights of all workloads of the job, by key.
        baseline_us: baseline times by workload key, µs.
        cuts: False: no trial is pruned.
        draw: returns a number from 0 to 1 that selects trials to continue at random.
    """

    weights: Mapping[str, float]
    baseline_us: Mapping[str, float]
    cuts: bool = True
    draw: Callable[[], float] = random.random
    steady: bool = True
    """False if the device is slower or faster now than before; nothing is then pruned."""
    best_us: dict[str, float] = field(default_factory=dict)
    """The best so far by workload key."""
    _best: float = math.inf
    """Logarithm of the best objective."""
    _whole: list[dict[str, float]] = field(default_factory=list)
    """Logarithms of time divided by baseline time, by workload key."""

    def learn(self, times_us: Mapping[str, float]) -> None:
        """Record a configuration that ran on all workloads that allow it."""
        logs = self._logs(times_us)
        self._whole.append(logs)
        self._best = min(self._best, sum(self._share(k) * v for k, v in logs.items()))
        for key, value in times_us.items():
            self.best_us[key] = min(self.best_us.get(key, value), value)

    def order(self, keys: Sequence[str]) -> list[str]:
        """Workload keys: the best predictor of all others first, then the cheapest."""
        if not self.cuts:
            return list(keys)
        cheap = sorted(keys, key=lambda key: self.baseline_us[key])
        known = self._table(cheap)
        if len(keys) < LEAST_WORKLOADS or len(known) < ENOUGH:
            return cheap
        spread = known.std(axis=0) > 0
        if not spread.all():
            return cheap
        likeness = np.corrcoef(known.T).min(axis=0)
        first = cheap[int(np.argmax(likeness))]
        return [first, *(key for key in cheap if key != first)]

    def estimate_if_hopeless(self, times_us: Mapping[str, float], rest: Sequence[str]) -> Estimate | None:
        """Estimate for a hopeless configuration; None if it may be best somewhere, or if that is unknown.

        Args:
            times_us: times so far by workload key, in the order of timing.
            rest: keys of the other workloads that allow it.
        """
        timed = list(times_us)
        if not (self.cuts and self.steady and rest) or len(timed) + len(rest) < LEAST_WORKLOADS:
            return None
        if any(us <= self.best_us.get(key, us) * NEAR for key, us in times_us.items()):
            return None
        known = self._table([*timed, *rest])
        if len(known) < max(ENOUGH, len(timed) + 3):
            return None
        logs = self._logs(times_us)
        at = np.array([logs[key] for key in timed])
        shares = np.array([self._share(key) for key in rest])
        x, y = known[:, : len(timed)], known[:, len(timed) :]
        mean, deviation = predicted(x, np.column_stack([y, y @ shares]), at)
        objective = sum(self._share(key) * logs[key] for key in timed) + mean[-1]
        gain = expected_improvement(self._best, objective, deviation[-1])
        for key, share, expected, spread in zip(rest, shares, mean, deviation, strict=False):
            best = math.log(self.best_us[key] / self.baseline_us[key])
            gain += share * expected_improvement(best, expected, spread)
        if gain > LEAST_TRIAL_GAIN:
            return None
        return Estimate(math.exp(max(objective, self._best)), self.draw() < BY_CHANCE)

    def _logs(self, times_us: Mapping[str, float]) -> dict[str, float]:
        return {key: math.log(us / self.baseline_us[key]) for key, us in times_us.items()}

    def _share(self, key: str) -> float:
        return self.weights[key] / sum(self.weights.values())

    def _table(self, keys: Sequence[str]) -> Floats:
        """[trials, keys]: trials that ran on all of these workloads."""
        rows = [[logs[key] for key in keys] for logs in tuple(self._whole) if all(k in logs for k in keys)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(keys))


def predicted(x: Floats, y: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of a new row of `y` at `at`, by a regression that is local in the first column.

    Args:
        x: [trials, columns], at least two more trials than columns.
        y: [trials, columns].
        at: a row of `x`.
    """
    count, terms = len(x), x.shape[1] + 1
    distance = np.abs(x[:, 0] - at[0])
    reach = np.sort(distance)[min(count - 1, max(ENOUGH, count // 2))] + NARROW
    weights = np.exp(-0.5 * (distance / reach) ** 2)
    design = np.column_stack([np.ones(count), x])
    here = np.concatenate([[1.0], at])
    inverse = np.linalg.inv(design.T @ (weights[:, None] * design) + RIDGE * np.eye(terms))
    slopes = inverse @ (design.T @ (weights[:, None] * y))
    residual = weights @ (y - design @ slopes) ** 2 / (weights.sum() * (1 - terms / count))
    spread = residual * (1.0 + here @ inverse @ here * weights.mean())
    return here @ slopes, np.sqrt(np.maximum(spread, 0.0))
