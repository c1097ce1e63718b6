"""Comparison of what a kernel wrote with what it should have written."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.job import Tolerance
from warpsmith.domain.kernel import Dtype
from warpsmith.verify.dtypes import epsilon

Array = NDArray[np.generic]

CHUNK_ELEMENTS = 1 << 22
BUDGET_FACTOR = 2.0
"""How many times the error of the user's kernel a candidate may have, besides one unit in the last place."""


@dataclass(frozen=True)
class ErrorReport:
    """How far an output is from its reference."""

    max_error: float
    """Largest |got - want| / (atol + rtol |want|); infinite where NaN or infinity does not match."""
    wrong: int
    """Elements beyond the tolerance."""
    first_wrong: int | None
    detail: str


def compare(got: Array, want: Array, tolerance: Tolerance) -> ErrorReport:
    """Compare flat arrays element by element, in pieces so that memory stays small.

    An element passes when |got - want| <= atol + rtol |want|. NaN passes only where NaN is wanted,
    infinity only where the same infinity is; with a tolerance of zero the elements must be equal.

    Raises:
        ValueError: the lengths differ.
    """
    if got.shape != want.shape:
        raise ValueError(f"{got.shape} elements against {want.shape}")
    worst, wrong, first, detail = 0.0, 0, None, ""
    for begin in range(0, got.size, CHUNK_ELEMENTS):
        piece = slice(begin, begin + CHUNK_ELEMENTS)
        error = _errors(got[piece], want[piece], tolerance)
        worst = max(worst, float(error.max(initial=0.0)))
        bad = error > 1.0
        count = int(np.count_nonzero(bad))
        if count and first is None:
            index = int(np.argmax(bad))
            first = begin + index
            detail = f"element {first} is {got[piece][index]!s}, wanted {want[piece][index]!s}"
        wrong += count
    if wrong:
        detail += f"; {wrong} of {got.size} compared are wrong, largest error {worst:.3g} tolerances"
    return ErrorReport(worst, wrong, first, detail)


def over_budget(
    got: Array, want: Array, tolerance: Tolerance, baseline_error: float, dtype: Dtype
) -> ErrorReport:
    """Elements with more error than the user's own kernel may be thought to have.

    Allowed is `BUDGET_FACTOR` times the baseline's largest error, in units of the tolerance, and one
    unit in the last place of `dtype`. `max_error` is in units of the tolerance.
    """
    wrong, first, worst = 0, None, 0.0
    ulp = epsilon(dtype)
    for begin in range(0, got.size, CHUNK_ELEMENTS):
        piece = slice(begin, begin + CHUNK_ELEMENTS)
        error = _errors(got[piece], want[piece], tolerance)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            size = np.abs(want[piece].astype(np.float64))
            allowed = BUDGET_FACTOR * baseline_error + ulp * size / (tolerance.atol + tolerance.rtol * size)
        bad = error > np.nan_to_num(allowed, nan=np.inf, posinf=np.inf)
        worst = max(worst, float(error.max(initial=0.0)))
        count = int(np.count_nonzero(bad))
        if count and first is None:
            first = begin + int(np.argmax(bad))
        wrong += count
    detail = f"error {worst:.3g} tolerances where the user's kernel has {baseline_error:.3g}"
    return ErrorReport(worst, wrong, first, detail if wrong else "")


def _errors(got: Array, want: Array, tolerance: Tolerance) -> NDArray[np.float64]:
    if got.dtype.kind in "iu" and tolerance.atol == 0 and tolerance.rtol == 0:
        return np.where(got == want, 0.0, np.inf)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # A kernel may leave signalling NaNs, of which the conversion would warn.
        a, b = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        difference = np.abs(a - b)
        error = difference / (tolerance.atol + tolerance.rtol * np.abs(b))
    error = np.where(difference == 0.0, 0.0, error)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    result: NDArray[np.float64] = np.where(finite, error, np.where(same, 0.0, np.inf))
    return result
