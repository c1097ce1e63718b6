"""What a configuration lets expect before anything ran: by threads of a block and by numbers that are uneven.

Constraints speak of such quantities only where their author thought of a limit; the launch always does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.kernel import Launch
from warpsmith.search.feasible_set import FeasibleSet, parameter_values
from warpsmith.search.vectorised_constraints import Scope, evaluate

Floats = NDArray[np.float64]

THREADS = (3.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
"""Logarithms to base 2 of a block's threads, at which `EXPECTED` is given; straight lines between."""
EXPECTED = (0.8, 0.3, 0.0, -0.1, -0.1, 0.0, 0.0)
"""How much slower than others, in standard deviations of the log time, before anything was measured.

CUDA's guide to good practice: 128 to 256 threads are a good start, 64 the least, whole warps. Nothing is
held against large blocks: some kernels want them. How much that is worth was judged on recordings
(benchmarks/results/search/figures.md).
"""
IDLE_LANES = 1.5
"""The same, times the share of a block's lanes that no thread uses."""
UNEVEN = 0.15
"""The same, for every parameter whose value is a whole number and no power of two, where others of its values
are: such tiles leave a rest, and dividing by them takes more than a shift."""


@dataclass(frozen=True)
class Launched:
    """Of every row of a set, the mean over the workloads."""

    sizes: tuple[Floats, ...]
    """Logarithms to base 2: threads of a block, blocks, threads in all."""
    expected: Floats
    """How much slower than others; see `EXPECTED` and `UNEVEN`. 0 where the device has no warps."""


def launched(
    launch: Launch, feasible: FeasibleSet, scopes: Sequence[Mapping[str, Value]], warp: int
) -> Launched | None:
    """Evaluate a launch for every row.

    Args:
        scopes: one per workload: its dimensions and the device's limits.
        warp: threads that run together; 1 where kernels run on processor cores.

    Returns:
        None where an expression has no value for some row.
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
    return Launched((threads, blocks, threads + blocks), expected)


def uneven_values(feasible: FeasibleSet) -> Floats:
    """Of every row, how many of its values are no power of two where others of the parameter's are."""
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
