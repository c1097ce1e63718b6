"""Energy in a search: which trials are worth a run of the counter, and the energy of those that are.

A run takes nearly a second of the device, where a timing takes milliseconds. How energy follows time is
learnt, workload by workload, from the trials that were metered; one whose time promises too little is not.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from warpsmith.tuning.trials.pruner import BY_CHANCE, ENOUGH, Estimate, expected_gain, predicted

LEAST_GAIN = 0.005
"""Relative gain, of the objective and of the mean over workloads of each one's own best together, that a
metered trial must promise. Runs of one kernel differ by more (benchmarks/results/search/figures.md)."""
RUNS_DIFFER = 0.03
"""No prediction is better than this."""


@dataclass
class EnergyPruner:
    """Hears of every trial that was metered, and judges those that were only timed.

    Args:
        weights: by workload key, of all workloads of the job.
        before: of the baseline by workload key: microseconds and millijoules.
        cuts: whether anything is left unmetered.
        draw: a number from 0 to 1, for what is metered by chance: nothing would be learnt of slow
            configurations otherwise, and nobody would see whether estimates are right.
    """

    weights: Mapping[str, float]
    before: Mapping[str, tuple[float, float]]
    cuts: bool = True
    draw: Callable[[], float] = random.random
    _seen: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By workload key, logarithms of time and energy over the baseline's."""
    _best: float = math.inf
    """Logarithm of the best objective."""

    @property
    def before_mj(self) -> dict[str, float]:
        """Millijoules of a launch of the baseline, by workload key."""
        return {key: millijoules for key, (_, millijoules) in self.before.items()}

    def learn(self, found: Mapping[str, tuple[float, float]]) -> None:
        """A trial was metered: microseconds and millijoules by workload key."""
        total = 0.0
        for key, pair in found.items():
            logs = self._logs(key, pair)
            self._seen.setdefault(key, []).append(logs)
            total += self._share(key) * logs[1]
        self._best = min(self._best, total)

    def estimate_if_hopeless(self, times_us: Mapping[str, float]) -> Estimate | None:
        """What is expected of a configuration that is not worth its runs; None: it is, or nobody knows.

        Args:
            times_us: by workload key, of all workloads that allow it.
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
            gain += share * expected_gain(float(known[:, 1].min()), mean, deviation)
        gain += expected_gain(self._best, objective, spread)
        if gain > LEAST_GAIN:
            return None
        return Estimate(math.exp(max(objective, self._best)), self.draw() < BY_CHANCE)

    def _logs(self, key: str, pair: tuple[float, float]) -> tuple[float, float]:
        us, millijoules = (math.log(now / then) for now, then in zip(pair, self.before[key], strict=True))
        return us, millijoules

    def _share(self, key: str) -> float:
        return self.weights[key] / sum(self.weights.values())
