"""The screen in float32 bounds no error too low, and a comparison with it says what one without says."""

import math
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Tolerance
from warpsmith.verify import compare as comparison
from warpsmith.verify import in_spans
from warpsmith.verify.compare import ErrorBudget, compare, passes
from warpsmith.verify.dtypes import numpy_dtype
from warpsmith.verify.error_screen import ErrorScreen

FLOATS = (Dtype.FLOAT16, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.FLOAT8_E4M3FN, Dtype.FLOAT64)
TOLERANCES = (
    Tolerance(rtol=1e-2, atol=1e-2),
    Tolerance(rtol=1e-5, atol=1e-6),
    Tolerance(rtol=1e-3, atol=2.0**-100),
    Tolerance(rtol=0.0, atol=0.1),
    Tolerance(rtol=1e-2, atol=0.0),
)
SPECIAL = (0.0, -0.0, 1e-300, -3e-45, 1e-38, 3.5e38, -1e300, math.inf, -math.inf, math.nan)


def outputs(dtype: Dtype, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """What a kernel left and what was wanted: sizes over many powers of ten, errors of all sizes."""
    rng = np.random.default_rng(seed)
    size = 5000
    want = rng.standard_normal(size) * 10.0 ** rng.uniform(-8, 4, size)
    with np.errstate(over="ignore", invalid="ignore"):
        off = want * (1 + rng.standard_normal(size) * 10.0 ** rng.uniform(-9, -1, size))
        got = off.astype(numpy_dtype(dtype))
    return got, want


def cases() -> Iterator[tuple[NDArray[Any], NDArray[Any], Tolerance]]:
    for number, dtype in enumerate(FLOATS):
        for tolerance in TOLERANCES:
            yield *outputs(dtype, number), tolerance


def test_no_error_is_larger_than_its_bound() -> None:
    told = 0
    for got, want, tolerance in cases():
        found = ErrorScreen(got.dtype, tolerance)
        for begin in range(0, got.size, 100):
            piece = slice(begin, begin + 100)
            error = comparison._errors(got[piece], want[piece], tolerance).max()
            bound = found.bound(got[piece], want[piece])
            assert bound >= error
            told += bound < math.inf
    assert told > 200, "it can tell of most short types"


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_pass_no_screen_that_they_should_not(dtype: Dtype, special: float) -> None:
    for place in ("got", "want", "both"):
        for tolerance in TOLERANCES:
            got, want = outputs(dtype, 7)
            with np.errstate(over="ignore", invalid="ignore"):
                if place != "want":
                    got[17] = np.float64(special).astype(got.dtype)
                if place != "got":
                    want[17] = special
            error = comparison._errors(got, want, tolerance).max()
            assert ErrorScreen(got.dtype, tolerance).bound(got, want) >= error


def without_screen() -> Any:
    return patch.object(ErrorScreen, "bound", lambda self, got, want: math.inf)


def test_a_report_is_the_same_with_and_without_it() -> None:
    with patch.object(in_spans, "CHUNK_ELEMENTS", 100):
        for got, want, tolerance in cases():
            for budget in (None, ErrorBudget(0.01, Dtype.FLOAT16), ErrorBudget(0.3, Dtype.FLOAT32)):
                screened = compare(got, want, tolerance, budget), passes(got, want, tolerance)
                with without_screen():
                    assert (compare(got, want, tolerance, budget), passes(got, want, tolerance)) == screened


def test_most_of_a_right_output_is_screened_off() -> None:
    want = np.random.default_rng(1).standard_normal(1 << 20)
    got = want.astype(np.float16)
    tolerance = Tolerance(rtol=1e-2, atol=1e-2)
    with (
        patch.object(in_spans, "CHUNK_ELEMENTS", 1 << 14),
        patch.object(comparison, "_errors", wraps=comparison._errors) as exact,
    ):
        report = compare(got, want, tolerance)
    assert 0 < report.max_error < 1
    assert exact.call_count < 20, "64 pieces, of which each is a record with a chance of one by its number"


def test_exact_integers_are_compared_as_they_are() -> None:
    want = np.arange(10)
    screen = ErrorScreen(np.dtype(np.int32), Tolerance(rtol=0.0, atol=0.0))
    assert screen.bound(want.astype(np.int32), want) == 0.0
    assert screen.bound((want + (want == 7)).astype(np.int32), want) == math.inf
