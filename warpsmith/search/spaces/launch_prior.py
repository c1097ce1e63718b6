"""Prior mean of a configuration before any trial, from threads per block and values that are not powers of
two.

Constraints mention such quantities only if their author thought of a limit; the launch always does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.kernels.launch import Launch
from warpsmith.search.spaces.array_expressions import Scope
from warpsmith.search.spaces.feasible_set import FeasibleSet, parameter_values
from warpsmith.search.spaces.vectorised_constraints import evaluate

Floats = NDArray[np.float64]

THREADS = (3.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
"""Base-2 logarithms of threads per block at which `EXPECTED` is given; linear between."""
EXPECTED = (0.8, 0.3, 0.0, -0.1, -0.1, 0.0, 0.0)
"""Expected slowness before any measurement, in standard deviations of the log time.

CUDA's guide to good practice recommends 128 to 256 threads as a start, at least 64, in whole warps. Large
blocks are not penalised, since some kernels need them. The heights were calibrated on recordings
(benchmarks/results/search/figures.md).
"""
IDLE_LANES = 1.5
"""Slowness per share of a block's lanes that no thread uses, in the same unit."""
UNEVEN = 0.15
"""Slowness per parameter whose value is a whole number but no power of two although other values of it are,
in the same unit: such tiles leave a remainder, and dividing by them takes more than a shift."""


@dataclass(frozen=True)
class SizedLaunch:
    """Launch quantities of every row of a set, as means over the workloads."""

    sizes: tuple[Floats, ...]
    """Base-2 logarithms of threads per block, blocks, and threads in total; [n] each."""
    expected: Floats
    """[n]: expected slowness; see `EXPECTED` and `UNEVEN`. 0 if the device has no warps."""


def launched(
    launch: Launch, feasible: FeasibleSet, scopes: Sequence[Mapping[str, Value]], warp: int
) -> SizedLaunch | None:
    """Evaluate a launch for every row.

    Args:
        scopes: one per workload: its dimensions and the device's limits.
        warp: threads that run in lockstep; 1 if kernels run on processor cores.

    Returns:
        None if an expression has no value for some row.
    """
    columns: Scope = {
        p.name: parameter_values(feasible.space, column)[feasible.codes[:, column]]
        for column, p in enumerate(feasible.space.parameters)
    }
    found = []
    for scope in scopes or ({},):
        names: Scope = {**scope, **columns}
        threads, blocks = _product(launch.block, names), _product(launch.grid, names)
        if threads is None or blocks is None:
            return None
        found.append((threads, blocks))
    shape = (len(feasible),)
    threads = np.mean([np.broadcast_to(np.log2(t), shape) for t, _ in found], axis=0)
    blocks = np.mean([np.broadcast_to(np.log2(b), shape) for _, b in found], axis=0)
    expected = np.mean([np.broadcast_to(_expected(t, warp), shape) for t, _ in found], axis=0)
    if warp > 1:
        expected = expected + UNEVEN * uneven_values(feasible)
    return SizedLaunch((threads, blocks, threads + blocks), expected)


def uneven_values(feasible: FeasibleSet) -> Floats:
    """[n]: number of a row's values that are no power of two although other values of the parameter are."""
    total = np.zeros(len(feasible))
    for column, parameter in enumerate(feasible.space.parameters):
        values = parameter.values
        if any(isinstance(v, str | bool) or v < 1 or v % 1 for v in values):
            continue
        uneven = np.array([int(v) & (int(v) - 1) != 0 for v in values])
        if not uneven.all():
            total += uneven[feasible.codes[:, column]]
    return total


def _product(parts: Sequence[Expression], names: Scope) -> Floats | None:
    result: Floats = np.ones(1)
    for part in parts:
        value = evaluate(part.tree, names)
        if value is None or np.any(value < 1):
            return None
        result = result * value
    return result


def _expected(threads: Floats, warp: int) -> Floats:
    if warp < 2:
        return np.zeros_like(threads)
    idle = 1.0 - threads / (warp * np.ceil(threads / warp))
    result: Floats = np.interp(np.log2(threads), THREADS, EXPECTED) + IDLE_LANES * idle
    return result
