"""Elements of an output that a launch left as they were filled before it."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.job import Tolerance
from warpsmith.verify.dtypes import widened
from warpsmith.verify.run_report import Array

UNWRITTEN = "never written"
CHANCE = 16
"""Number of elements that may equal the fill by chance."""
CHANCE_FACTOR = 2
"""The same as a multiple of those that equal another fill, whose values are as near to any right one."""
REACH = 4.0
"""Factor below the fill bytes' value at which nothing near them is within the tolerance."""


def unwritten(got: Array, want: Array, poison: bytes, where: Callable[[], NDArray[np.int64]]) -> Array:
    """Indices, in the whole buffer, of elements that still hold the fill bytes.

    Args:
        where: gives the indices of the compared elements.
    """
    if not poison or not got.size:
        return np.arange(0)
    places = where()
    width = got.dtype.itemsize
    filled = np.frombuffer(poison * -(-width // len(poison)) * 2, np.uint8)
    phases = np.stack([filled[p : p + width] for p in range(0, max(len(poison), width), width)])
    raw = np.ascontiguousarray(got).view(np.uint8).reshape(-1, width)
    with np.errstate(invalid="ignore"):  # a comparison of signalling NaNs warns
        alike: Array = (raw == phases[places % len(phases)]).all(axis=1) & (got != want)
    found: Array = places[alike]
    return found


def hidden_unwritten(
    got: Array, want: Array, tolerance: Tolerance, poison: bytes, where: Callable[[], NDArray[np.int64]]
) -> Array:
    """The same of an output that is within the tolerance.

    A kernel that is its own reference leaves fill bytes there as well. What is expected is then as large as
    they are, and so is a tolerance that follows it. Types of one byte have no such tolerance.
    """
    if not poison or not got.size or got.dtype.kind in "iub" or got.dtype.itemsize == 1:
        return np.arange(0)
    with np.errstate(invalid="ignore", over="ignore"):
        filled = widened(np.frombuffer(poison * 2, got.dtype))
        largest = max(float(want.max()), -float(want.min()))
        reach = largest * (1 + tolerance.rtol) + tolerance.atol + tolerance.within
        if REACH * reach < np.abs(filled).min():
            return np.arange(0)
    found = unwritten(got, want, poison, where)
    if found.size <= CHANCE:
        return np.arange(0)
    beside = bytes(byte ^ 1 if at % 2 == 0 else byte for at, byte in enumerate(poison))
    by_chance = unwritten(got, want, beside, where).size
    return found if found.size > CHANCE + CHANCE_FACTOR * by_chance else np.arange(0)
