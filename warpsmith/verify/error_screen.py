"""An upper bound of the errors of a piece, in float32: a tenth of the time of the errors themselves."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.jobs.job import Tolerance
from warpsmith.verify.dtypes import has_table, singles_into

ROUNDING = 2.0**-24
"""Largest relative error of one operation in float32."""
OPERATIONS = 8
"""More than the roundings of an error that is computed in float32."""
LEAST_ATOL, MOST_ATOL = 2.0**-120, 2.0**120
"""Absolute tolerances beside which what float32 cannot represent is negligible or shows as infinite."""
LEAST_RTOL = 1e-5
"""Relative tolerance below which the rounding of what is wanted counts for too much."""


class ErrorScreen:
    """Bounds errors of outputs of one type under one tolerance; infinity where it cannot tell.

    An error is |got - want| / (atol + rtol |want|). In float32 it comes out too small by at most a relative
    part, from its operations, and by the rounding of `want` divided by rtol |want|.
    """

    def __init__(self, dtype: "np.dtype[Any]", tolerance: Tolerance) -> None:
        self._tolerance = tolerance
        exact = dtype.kind in "iub" and not tolerance.atol and not tolerance.rtol
        single = dtype == np.float32 or has_table(dtype)
        fits = LEAST_ATOL <= tolerance.atol <= MOST_ATOL and LEAST_RTOL <= tolerance.rtol <= 1.0
        self._exact, self._single = exact, single and fits
        self._got = self._want = np.empty(0, np.float32)

    def bound(self, got: NDArray[Any], want: NDArray[Any]) -> float:
        """At least the largest error of a piece."""
        if self._exact:
            return 0.0 if np.array_equal(got, want) else math.inf
        if not self._single:
            return math.inf
        if self._got.size != got.size:
            self._got, self._want = np.empty(got.size, np.float32), np.empty(got.size, np.float32)
        error, size = self._got, self._want
        singles_into(error, got)
        singles_into(size, want)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore", under="ignore"):
            np.subtract(error, size, out=error)
            np.abs(error, out=error)
            np.abs(size, out=size)
            np.multiply(size, np.float32(self._tolerance.rtol), out=size)
            np.add(size, np.float32(self._tolerance.atol), out=size)
            np.divide(error, size, out=error)
            largest = float(error.max(initial=0.0))
        if not math.isfinite(largest):
            return math.inf
        rounded = ROUNDING / self._tolerance.rtol
        return (largest + rounded) * (1.0 + OPERATIONS * ROUNDING)
