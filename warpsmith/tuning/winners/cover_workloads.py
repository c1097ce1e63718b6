"""Chooses the few configurations that together serve all workloads best: a p-median problem over log
times."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_SETS = 20_000
"""Limit on the sets that are enumerated; beyond it, the best set found by exchanges is taken."""


def choose_few(times: Floats, baseline: Floats, weights: Floats, count: int) -> list[int]:
    """At most `count` rows of `times` with the lowest weighted mean log time, ascending.

    A workload is served by the fastest of the chosen rows, or by the baseline if that is faster.

    Args:
        times: [configurations, workloads], positive; infinity if it cannot serve the workload.
        baseline: [workloads], positive.
        weights: [workloads].
    """
    logs = weights * np.log(np.minimum(times, baseline) / baseline)
    useful = _undominated(logs)
    logs = logs[useful]
    count = min(count, len(useful))
    if math.comb(len(useful), count) <= MOST_SETS:
        sets = itertools.combinations(range(len(useful)), count)
        chosen = min(sets, key=lambda rows: _cost(logs, rows), default=())
    else:
        chosen = _exchanged(logs, count)
    return sorted(useful[i] for i in chosen)


def _undominated(logs: Floats) -> list[int]:
    """Rows that serve some workload better than every other row does, in order of their sums."""
    kept: list[int] = []
    for row in np.argsort(logs.sum(axis=1), kind="stable"):
        if logs[row].min(initial=0.0) < 0 and not any((logs[k] <= logs[row]).all() for k in kept):
            kept.append(int(row))
    return kept


def _cost(logs: Floats, rows: Sequence[int]) -> float:
    return float(logs[list(rows)].min(axis=0, initial=0.0).sum())


def _exchanged(logs: Floats, count: int) -> tuple[int, ...]:
    """Greedy choice, improved by the best single exchange as long as there is one."""
    chosen: list[int] = []
    rows = range(logs.shape[0])
    while len(chosen) < count:
        chosen.append(min((r for r in rows if r not in chosen), key=lambda r: _cost(logs, [*chosen, r])))
    while True:
        exchanges = (
            [*chosen[:i], r, *chosen[i + 1 :]] for i in range(count) for r in rows if r not in chosen
        )
        best = min(exchanges, key=lambda s: _cost(logs, s))
        if _cost(logs, best) >= _cost(logs, chosen) - 1e-12:
            return tuple(chosen)
        chosen = best
