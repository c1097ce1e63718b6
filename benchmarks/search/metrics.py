"""How good a search was: best so far against the optimum, and the performance-over-evaluations score."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.search.spaces import WITHIN, RecordedSpace

BUDGETS = (25, 50, 100, 200)
SAMPLE_POINTS = 32
CUTOFF = 0.95
MAX_CUTOFF = 200
_CURVES: dict[str, NDArray[np.float64]] = {}
"""Of random search by space's name: it costs more than all else here."""


def best_so_far(trace: Sequence[float | None], length: int) -> NDArray[np.float64]:
    """Running minimum of the values of a search; the last one is kept to `length`."""
    values = np.array([math.inf if v is None else v for v in trace], np.float64)
    values = np.minimum.accumulate(values)[:length]
    return np.concatenate([values, np.full(length - values.size, values[-1] if values.size else math.inf)])


def random_curve(space: RecordedSpace, length: int) -> NDArray[np.float64]:
    """Expected best of n distinct random configurations, n = 1..length; failures count as the worst time."""
    times = space.sorted_times.copy()
    finite = times[np.isfinite(times)]
    times[~np.isfinite(times)] = finite[-1]
    count = times.size
    curve = np.empty(length)
    chance = np.ones(count)
    ranks = np.arange(count)
    for n in range(1, length + 1):
        # chance that the minimum of n draws has rank >= r, without replacement
        chance = chance * np.clip((count - ranks - (n - 1)) / (count - (n - 1)), 0.0, 1.0)
        weights = chance - np.append(chance[1:], 0.0)
        curve[n - 1] = float((weights * times).sum())
    return curve


def score(space: RecordedSpace, trace: NDArray[np.float64]) -> float:
    """1: the optimum at once; 0: random search; negative: worse. Mean over equidistant budgets.

    The range ends where random search has closed 95 % of the gap from the median to the optimum
    (Willemsen et al., FGCS 2024), or at 200 evaluations.
    """
    if space.name not in _CURVES:
        _CURVES[space.name] = random_curve(space, MAX_CUTOFF)
    curve = _CURVES[space.name]
    finite = space.sorted_times[np.isfinite(space.sorted_times)]
    goal = float(np.median(finite)) - CUTOFF * (float(np.median(finite)) - space.best)
    reached = np.flatnonzero(curve <= goal)
    end = int(reached[0]) + 1 if reached.size else MAX_CUTOFF
    points = np.unique(np.linspace(1, max(end, 2), SAMPLE_POINTS).round().astype(int)) - 1
    found = np.minimum(trace[points], float(finite[-1]))
    return float(np.mean((curve[points] - found) / (curve[points] - space.best)))


def summary(spaces: Sequence[RecordedSpace], traces: dict[str, list[list[float | None]]]) -> dict[str, Any]:
    """Figures of one method over all spaces.

    Args:
        traces: by space name, one trace a seed.
    """
    ratios: dict[str, list[float]] = {}
    within: dict[str, list[float]] = {}
    scores: dict[str, list[float]] = {}
    for space in spaces:
        runs = [best_so_far(t, max(BUDGETS)) for t in traces[space.name]]
        at = np.array([[run[b - 1] / space.best for b in BUDGETS] for run in runs])
        ratios[space.name] = [float(v) for v in np.median(at, axis=0)]
        within[space.name] = [float(v) for v in (at <= WITHIN).mean(axis=0)]
        scores[space.name] = [score(space, run) for run in runs]
    logs = np.log(np.array(list(ratios.values())))
    return {
        "ratio": [float(v) for v in np.exp(logs.mean(axis=0))],
        "within": [float(v) for v in np.array(list(within.values())).mean(axis=0)],
        "score": float(np.mean([np.mean(s) for s in scores.values()])),
        "by_space": {n: {"ratio": ratios[n], "within": within[n], "scores": scores[n]} for n in ratios},
    }
