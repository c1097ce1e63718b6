"""Selects the trials whose energy is worth measuring, by predicting energy from time.

A run of the counter takes nearly a second on the device, a timing takes milliseconds. The relation of energy
to time is learnt per workload from measured trials; a trial whose time promises too little is skipped.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from warpsmith.search.models.expected_improvement import expected_improvement
from warpsmith.tuning.trials.pruner import BY_CHANCE, ENOUGH, Estimate, predicted

LEAST_ENERGY_GAIN = 0.005
"""Least relative gain that a measured trial must promise, in the objective and in the mean over workloads of
each one's own best together. Runs of one kernel differ by more (benchmarks/results/search/figures.md)."""
RUNS_DIFFER = 0.03
"""Least relative uncertainty of a prediction."""


@dataclass
class EnergyPruner:
    """Predicts energy from time per workload; decides whether a timed trial is worth an energy measurement.

    Args:
        weights: weights of all workloads of the job, by key.
        before: microseconds and millijoules of the baseline, by workload key.
        cuts: False: the energy of every trial is measured.
        draw: returns a number from 0 to 1 that selects trials at random; otherwise nothing would be learnt of
            slow configurations, and estimates could not be checked.
    """

    weights: Mapping[str, float]
    before: Mapping[str, tuple[float, float]]
    cuts: bool = True
    draw: Callable[[], float] = random.random
    _seen: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Logarithms of time and energy divided by the baseline's, by workload key."""
    _best: float = math.inf
    """Logarithm of the best objective."""

    @property
    def before_mj(self) -> dict[str, float]:
        """Millijoules per launch of the baseline, by workload key."""
        return {key: millijoules for key, (_, millijoules) in self.before.items()}

    def learn(self, found: Mapping[str, tuple[float, float]]) -> None:
        """Record a measured trial: microseconds and millijoules by workload key."""
        total = 0.0
        for key, pair in found.items():
            logs = self._logs(key, pair)
            self._seen.setdefault(key, []).append(logs)
            total += self._share(key) * logs[1]
        self._best = min(self._best, total)

    def estimate_if_hopeless(self, times_us: Mapping[str, float]) -> Estimate | None:
        """Estimate for a configuration that is not worth measuring; None: it is, or that is unknown.

        Args:
            times_us: times of all workloads that allow it, by key.
        """
        if not self.cuts or any(len(self._seen.get(key, ())) < ENOUGH for key in times_us):
            return None
        objective = spread = gain = 0.0
        for key, us in times_us.items():
            known = np.array(self._seen[key])
            at = math.log(us / self.before[key][0])
            means, deviations = predicted(known[:, :1], known[:, 1:], np.array([at]))
            mean, deviation = float(means[0]), max(float(deviations[0]), RUNS_DIFFER)
            share = self._share(key)
            objective, spread = objective + share * mean, spread + share * deviation
            gain += share * expected_improvement(float(known[:, 1].min()), mean, deviation)
        gain += expected_improvement(self._best, objective, spread)
        if gain > LEAST_ENERGY_GAIN:
            return None
        return Estimate(math.exp(max(objective, self._best)), self.draw() < BY_CHANCE)

    def _logs(self, key: str, pair: tuple[float, float]) -> tuple[float, float]:
        us, millijoules = (math.log(now / then) for now, then in zip(pair, self.before[key], strict=True))
        return us, millijoules

    def _share(self, key: str) -> float:
        return self.weights[key] / sum(self.weights.values())
