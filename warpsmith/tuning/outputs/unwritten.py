"""Elements of an output that a launch left as they were filled before it."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.jobs.job import Tolerance
from warpsmith.verify.dtypes import widened
from warpsmith.verify.run_report import Array

Places = Callable[[], NDArray[np.int64]]
"""Gives the indices, in the whole buffer, of the compared elements."""
UNWRITTEN = "never written"
REACH = 4.0
"""Factor below the fill bytes' value at which nothing near them is within the tolerance."""
NO_CHANCE = 1e-3
"""Expected number of right elements that equal the fill, below which one such element is none of them."""
CHANCE, CHANCE_FACTOR = 3, 4
"""Above that, so many elements and so many times the expected number may be right."""


def unwritten(got: Array, want: Array, poison: bytes, where: Places) -> Array:
    """Indices, in the whole buffer, of elements that still hold the fill bytes."""
    if not poison or not got.size:
        return np.arange(0)
    places = where()
    with np.errstate(invalid="ignore"):  # a comparison of signalling NaNs warns
        found: Array = places[_hold(got, poison, places, 0) & (got != want)]
    return found


def hidden_unwritten(got: Array, want: Array, tolerance: Tolerance, poison: bytes, where: Places) -> Array:
    """Find elements of an output within the tolerance that still hold the fill.

    A kernel that is its own reference leaves fill bytes there as well. What is expected is then as large as
    they are, and so is a tolerance that follows it. Types of one byte have no such tolerance.
    """
    width = got.dtype.itemsize
    if not poison or not got.size or got.dtype.kind in "iub" or width == 1:
        return np.arange(0)
    with np.errstate(invalid="ignore", over="ignore"):
        filled = widened(np.frombuffer(poison * 2, got.dtype))
        largest = max(float(want.max()), -float(want.min()))
        reach = largest * (1 + tolerance.rtol) + tolerance.atol + tolerance.within
        if REACH * reach < np.abs(filled).min():
            return np.arange(0)
    found = unwritten(got, want, poison, where)
    if not found.size:
        return found
    # Right elements near the fill have each value of their lower half equally often.
    near = np.count_nonzero(_hold(got, poison, where(), width // 2)) - found.size
    expected = near / 256 ** (width // 2)
    allowed = 0.0 if expected < NO_CHANCE else CHANCE + CHANCE_FACTOR * expected
    return found if found.size > allowed else np.arange(0)


def _hold(got: Array, poison: bytes, places: NDArray[np.int64], first_byte: int) -> NDArray[np.bool_]:
    """Mask of elements that hold the fill in their bytes from this one on."""
    width = got.dtype.itemsize
    filled = np.frombuffer(poison * -(-width // len(poison)) * 2, np.uint8)
    phases = np.stack([filled[p : p + width] for p in range(0, max(len(poison), width), width)])
    raw = np.ascontiguousarray(got).view(np.uint8).reshape(-1, width)[:, first_byte:]
    held: NDArray[np.bool_] = (raw == phases[places % len(phases), first_byte:]).all(axis=1)
    return held
