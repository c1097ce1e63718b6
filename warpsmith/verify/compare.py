"""Compares a kernel's output with the expected one."""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Tolerance
from warpsmith.verify.dtypes import epsilon, widened
from warpsmith.verify.error_screen import ErrorScreen
from warpsmith.verify.in_spans import in_spans, pieces

Array = NDArray[np.generic]

SAFE_SUM = 1e-200
"""Least sum of squares beside which squares lost to underflow count for nothing."""
BUDGET_FACTOR = 2.0
"""Allowed error of a candidate, as a multiple of the error of the user's kernel."""
BUDGET_ULPS = 2.0
"""Further allowed error in units in the last place: a short sum in another order costs as much."""
BUDGET_SUM = 1.25
"""`BUDGET_ULPS` for a sum of n terms, in units in the last place of float32 times the root of n. Independent
roundings of a plain sum add up as the root of n, not as n (Higham and Mary, A New Approach to Probabilistic
Rounding Error Analysis, SIAM J. Sci. Comput. 41, 2019). Of sums of 64 to 16,384 normal terms their root mean
square is 0.15 of this unit at the typical size, and the largest of 16,384 is 1.1 to 1.6, at sums that are
larger than typical. Sums in float16 are wrong by 8,000."""
STRAYS, STRAY_FACTOR = 2, 2.0
"""Number of elements that may exceed the budget by chance, and the factor up to which they may. On other
inputs, the largest of 1199 errors of the same kernel (sums of 5000 numbers) is more than twice as large in
1.3 % of cases."""
SAMPLE_DEVIATIONS = 3.0
"""Standard deviations of a random count by which a sample may have more misses than the share."""
SHARE_ROUNDING = 1e-12
"""Relative error of a share that was computed from a count."""


@dataclass(frozen=True)
class ErrorBudget:
    """Required exactness of a candidate, within the tolerance."""

    baseline_error: float
    """Largest error of the user's own kernel, in units of the tolerance."""
    dtype: Dtype
    """Type whose last place counts: at the element's size, or at the typical size if that is larger."""
    terms: float = 1.0
    """Number of terms of the longest sum."""
    stray_share: float = 0.0
    """Share of the elements that may exceed the budget, however far."""

    @property
    def rounding(self) -> float:
        """Further allowed error, relative to that size: sums are assumed to be computed in float32 at least,
        so that a short type has no more for them."""
        step = epsilon(self.dtype)
        summed = BUDGET_SUM * min(step, epsilon(Dtype.FLOAT32)) * math.sqrt(self.terms)
        return max(BUDGET_ULPS * step, summed)


@dataclass(frozen=True)
class ErrorReport:
    """Errors of an output against its reference."""

    max_error: float
    """Largest |got - want| / (atol + rtol |want|), or |got - want| / within of elements that the tolerance's
    share is for; infinite if NaN or infinity does not match."""
    wrong: int
    """Number of elements beyond the tolerance."""
    first_wrong: int | None
    detail: str
    over_budget: int = 0
    """Number of elements within the tolerance but over the error budget; 0 if they may be chance, or if
    others are wrong."""


def compare(
    got: Array, want: Array, tolerance: Tolerance, budget: ErrorBudget | None = None, *, is_part: bool = False
) -> ErrorReport:
    """Compare flat arrays element by element, in pieces so that memory stays small.

    An element passes when |got - want| <= atol + rtol |want|. NaN passes only if NaN is wanted, infinity only
    if the same infinity is wanted; with a tolerance of zero the elements must be equal. Of the others, the
    tolerance's share may miss by at most `within`; all of them are wrong if there are more.

    Args:
        is_part: the arrays are part of an output, in which a share may by chance be larger.

    Raises:
        ValueError: the lengths differ.
    """
    if got.shape != want.shape:
        raise ValueError(f"{got.shape} elements against {want.shape}")
    typical = functools.cache(lambda: root_mean_square(want))
    parts = in_spans(got.size, lambda span: _compared(got, want, tolerance, budget, typical, span))
    worst, wrong, missed = (
        max(p.worst for p in parts),
        sum(p.wrong for p in parts),
        sum(p.missed for p in parts),
    )
    first = next((p.first for p in parts if p.first is not None), None)
    too_many = missed > allowed_misses(tolerance, got.size, is_part=is_part)
    if too_many:
        first = min(p for p in (first, *(p.first_missed for p in parts)) if p is not None)
        wrong += missed
    over, far = sum(p.over for p in parts), sum(p.far for p in parts)
    by_chance = 0.0 if budget is None else budget.stray_share * got.size
    if wrong or over <= by_chance or (over <= STRAYS and not far):
        over = 0
    detail = ""
    if first is not None:
        detail = f"element {first} is {got[first]!s}, wanted {want[first]!s}"
        detail += f"; {wrong} of {got.size} compared are wrong, {_in_words(worst, tolerance, got)}"
        if too_many:
            allowed = allowed_misses(tolerance, got.size, is_part=is_part)
            detail += f"; {missed} miss by up to {tolerance.within:g}, {allowed} may"
    elif over and budget is not None:
        detail = f"error {worst:.3g} tolerances where the user's kernel has {budget.baseline_error:.3g}"
    return ErrorReport(worst, wrong, first, detail, over)


@dataclass
class _Compared:
    """Errors of a span of an output, added to its report."""

    worst: float = 0.0
    wrong: int = 0
    first: int | None = None
    missed: int = 0
    """Number of elements beyond the tolerance and within what its share may be off."""
    first_missed: int | None = None
    over: int = 0
    far: int = 0


def _compared(
    got: Array,
    want: Array,
    tolerance: Tolerance,
    budget: ErrorBudget | None,
    typical: Callable[[], float],
    span: slice,
) -> _Compared:
    found, screen = _Compared(), ErrorScreen(got.dtype, tolerance)
    within = math.inf if budget is None else BUDGET_FACTOR * budget.baseline_error
    for piece in pieces(span):
        if same_bits(got[piece], want[piece]):
            continue
        if screen.bound(got[piece], want[piece]) <= min(found.worst, within, 1.0):
            continue  # it would change nothing of the report
        error = _errors(got[piece], want[piece], tolerance)
        if tolerance.share:
            missed = _missed(got[piece], want[piece], error, tolerance)
            count = int(np.count_nonzero(missed))
            if count and found.first_missed is None:
                found.first_missed = piece.start + int(np.argmax(missed))
            found.missed += count
        found.worst = max(found.worst, float(error.max(initial=0.0)))
        bad = error > 1.0
        count = int(np.count_nonzero(bad))
        if count and found.first is None:
            found.first = piece.start + int(np.argmax(bad))
        found.wrong += count
        if budget is not None and not found.wrong and found.worst > within:
            allowed = _allowed(want[piece], tolerance, budget, typical())
            found.over += int(np.count_nonzero(error > allowed))
            found.far += int(np.count_nonzero(error > STRAY_FACTOR * allowed))
    return found


def _in_words(worst: float, tolerance: Tolerance, got: Array) -> str:
    if tolerance.atol or tolerance.rtol:
        return f"largest error {worst:.3g} tolerances"
    return "integers must be equal" if got.dtype.kind in "iub" else "and rtol and atol are 0"


def passes(got: Array, want: Array, tolerance: Tolerance) -> bool:
    """True if no element of a whole output is wrong (see `compare`); ends at the first wrong piece."""
    most = allowed_misses(tolerance, got.size)
    return misses(got, want, tolerance, most) <= most


def misses(got: Array, want: Array, tolerance: Tolerance, most: float = math.inf) -> float:
    """Number of elements that need the tolerance's share; infinite if one is wrong or more than `most` do."""
    screen, count = ErrorScreen(got.dtype, tolerance), 0
    for piece in pieces(slice(0, got.size)):
        if screen.bound(got[piece], want[piece]) <= 1.0:
            continue
        error = _errors(got[piece], want[piece], tolerance)
        if tolerance.share:
            count += int(np.count_nonzero(_missed(got[piece], want[piece], error, tolerance)))
        if count > most or not (error <= 1.0).all():
            return math.inf
    return count


def allowed_misses(tolerance: Tolerance, elements: int, *, is_part: bool = False) -> int:
    """Number of elements that may miss by `within`: the share, and three standard deviations in a sample."""
    expected = tolerance.share * elements
    # A share that was made of a count must give that count.
    return math.floor(
        expected * (1 + SHARE_ROUNDING) + (SAMPLE_DEVIATIONS * math.sqrt(expected) if is_part else 0.0)
    )


def root_mean_square(values: Array) -> float:
    """Root mean square of the finite elements; 0 if there are none."""
    squares = sum(itertools.chain.from_iterable(in_spans(values.size, partial(_squares, values))))
    if math.isfinite(squares) and squares > SAFE_SUM:
        return math.sqrt(squares / values.size)
    # NaN, infinity, or squares beyond the range of a float64: the elements are selected and scaled.
    whole = slice(0, values.size)
    largest = max((float(_finite(values[p]).max(initial=0.0)) for p in pieces(whole)), default=0.0)
    if not largest:
        return 0.0
    total, count = 0.0, 0
    for piece in pieces(whole):
        finite = _finite(values[piece]) / largest
        total += float(finite @ finite)
        count += finite.size
    return largest * math.sqrt(total / count)


def same_bits(got: Array, want: Array) -> bool:
    """True if flat arrays are equal to the last bit; costs a tenth of a comparison."""
    if got.dtype != want.dtype:
        return False
    return np.array_equal(got.view(np.uint8), want.view(np.uint8))


def _squares(values: Array, span: slice) -> list[float]:
    """Sums of squares by piece; infinite or NaN if they cannot be represented."""
    with np.errstate(over="ignore", invalid="ignore"):
        return [float(np.square(widened(values[p])).sum()) for p in pieces(span)]


def _finite(values: Array) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        wide = widened(values)
        result: NDArray[np.float64] = np.abs(wide[np.isfinite(wide)])
    return result


def _allowed(want: Array, tolerance: Tolerance, budget: ErrorBudget, typical: float) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        size = np.abs(widened(want))
        last_place = budget.rounding * np.maximum(size, typical)
        allowed = BUDGET_FACTOR * budget.baseline_error + last_place / (
            tolerance.atol + tolerance.rtol * size
        )
    result: NDArray[np.float64] = np.nan_to_num(allowed, nan=np.inf, posinf=np.inf)
    return result


def _missed(got: Array, want: Array, error: NDArray[np.float64], tolerance: Tolerance) -> NDArray[np.bool_]:
    """Elements that need the tolerance's share; their errors become units of `within`, at most 1."""
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(widened(got) - widened(want))
    # A comparison with NaN is false, so NaN is never one of them.
    missed: NDArray[np.bool_] = (error > 1.0) & (off <= tolerance.within)
    error[missed] = off[missed] / tolerance.within
    return missed


def _errors(got: Array, want: Array, tolerance: Tolerance) -> NDArray[np.float64]:
    if got.dtype.kind in "iub" and tolerance.atol == 0 and tolerance.rtol == 0:
        return np.where(got == want, 0.0, np.inf)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        a, b = widened(got), widened(want)
        difference = np.abs(a - b)
        error: NDArray[np.float64] = difference / (tolerance.atol + tolerance.rtol * np.abs(b))
    if math.isfinite(error.max(initial=0.0)):
        return error
    finite = np.isfinite(a) & np.isfinite(b)
    error = np.where(difference == 0.0, 0.0, error)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    result: NDArray[np.float64] = np.where(finite, error, np.where(same, 0.0, np.inf))
    return result
