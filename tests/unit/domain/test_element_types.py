"""Booleans and eight-bit floats: drawn, transformed, compared as what they are."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import DEFAULT_TOLERANCES, EXACT
from warpsmith.domain.jobs.plan import BufferPlan, Family
from warpsmith.verify.compare import compare, passes
from warpsmith.verify.dtypes import (
    as_wanted,
    epsilon,
    largest,
    narrowed,
    numpy_dtype,
    reference_dtype,
    wanted_dtype,
    widened,
)
from warpsmith.verify.inputs import POOL_ELEMENTS, draw_buffer, draw_wide
from warpsmith.verify.tolerance import SMALLEST, default_tolerance

SIGNED = (Dtype.FLOAT8_E4M3FN, Dtype.FLOAT8_E4M3FNUZ, Dtype.FLOAT8_E5M2, Dtype.FLOAT8_E5M2FNUZ)
SHORT = (*SIGNED, Dtype.FLOAT8_E8M0FNU)


def every(dtype: Dtype) -> NDArray[Any]:
    """All 256 patterns."""
    return np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))


def drawn(dtype: Dtype, family: Family = Family.DECLARED, draw: Draw | None = None) -> NDArray[Any]:
    return draw_buffer(BufferPlan("x", dtype, Role.INPUT, (4096,), draw), 3, family=family)


@pytest.mark.parametrize("dtype", SHORT)
def test_tables_say_what_the_type_itself_says(dtype: Dtype) -> None:
    values = widened(every(dtype))
    finite = np.unique(values[np.isfinite(values)])
    assert finite.max() == largest(dtype)
    assert finite[np.searchsorted(finite, 1.0) + 1] - 1.0 == epsilon(dtype)
    if dtype in SIGNED:
        assert finite[finite > 0].min() == SMALLEST[dtype]
    np.testing.assert_array_equal(values, every(dtype).astype(np.float64))


@pytest.mark.parametrize("family", list(Family))
@pytest.mark.parametrize("dtype", SHORT)
def test_no_family_draws_what_is_no_number(dtype: Dtype, family: Family) -> None:
    even = Draw(distribution=Distribution.UNIFORM, low=-9e4, high=9e4)
    for draw in (None, Draw(mean=100.0, std=300.0), even):
        assert np.isfinite(widened(drawn(dtype, family, draw))).all()


def test_scales_are_positive_powers_of_two_in_every_family() -> None:
    for family in Family:
        values = widened(drawn(Dtype.FLOAT8_E8M0FNU, family))
        assert values.min() >= 0.25
        assert values.max() <= 4.0
        assert (np.log2(values) % 1 == 0).all()


@pytest.mark.parametrize("dtype", SIGNED)
def test_scaling_down_leaves_most_of_a_short_float(dtype: Dtype) -> None:
    values = widened(drawn(dtype, Family.SCALED_DOWN))
    assert np.mean(values != 0.0) > 0.9
    assert np.mean(np.abs(widened(drawn(dtype, Family.WIDE))) > 4.0) > 0.1


@pytest.mark.parametrize("dtype", SIGNED)
def test_one_step_passes_and_two_do_not(dtype: Dtype) -> None:
    finite = np.unique(widened(every(dtype))[np.isfinite(widened(every(dtype)))])
    steps = finite[(finite >= 1.0) & (finite < largest(dtype) / 4)]
    tolerance = default_tolerance(DEFAULT_TOLERANCES[dtype], dtype, 1.0, 1)
    index = np.searchsorted(finite, steps)
    assert passes(narrowed(finite[index + 1], dtype), steps, tolerance)
    assert not passes(narrowed(finite[index + 2], dtype), steps, tolerance)
    zero = np.zeros(1)
    assert passes(narrowed(zero + SMALLEST[dtype], dtype), zero, tolerance)


def test_scales_must_be_equal_and_stay_exact_at_every_size() -> None:
    want = np.array([0.5, 1.0, 2.0])
    assert default_tolerance(EXACT, Dtype.FLOAT8_E8M0FNU, 3.0, 100) == EXACT
    assert compare(narrowed(want, Dtype.FLOAT8_E8M0FNU), want, EXACT).wrong == 0
    assert compare(narrowed(2 * want, Dtype.FLOAT8_E8M0FNU), want, EXACT).wrong == 3


def test_numbers_beyond_a_short_float_are_its_largest() -> None:
    assert widened(narrowed(np.array([1e9, -1e9, 3.0]), Dtype.FLOAT8_E4M3FN)).tolist() == [448.0, -448.0, 3.0]
    assert np.isinf(narrowed(np.array([1e9]), Dtype.FLOAT16))[0]


def test_a_bool_is_drawn_as_nought_or_one_and_no_other_byte_is_true() -> None:
    assert set(drawn(Dtype.BOOL).tolist()) == {0, 1}
    assert set(drawn(Dtype.BOOL, Family.SPARSE).tolist()) == {0, 1}
    want = np.array([True, False, True])
    assert reference_dtype(Dtype.BOOL) == want.dtype
    left = np.array([1, 0, 0x73], np.uint8)
    report = compare(left, want, EXACT)
    assert (report.wrong, report.first_wrong) == (1, 2)
    assert compare(left[:2], want[:2], EXACT).wrong == 0


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BFLOAT16, *SHORT])
def test_short_floats_are_wanted_in_single_precision(dtype: Dtype) -> None:
    assert wanted_dtype(dtype) == np.float32
    rounded = as_wanted(np.full((2, 3), 1 / 3), dtype)
    assert rounded.shape == (6,)
    assert abs(rounded[0] - 1 / 3) < 2.0**-13 * epsilon(dtype)


def test_long_floats_and_integers_are_wanted_as_they_were_computed() -> None:
    for dtype in (Dtype.FLOAT32, Dtype.FLOAT64, Dtype.INT8, Dtype.UINT64, Dtype.BOOL):
        assert wanted_dtype(dtype) == reference_dtype(dtype)


def test_a_finite_number_is_wanted_as_a_finite_one() -> None:
    """An infinity is right only if the reference has one."""
    found = as_wanted(np.array([1e300, -1e300, np.inf, -np.inf, np.nan, 1.0]), Dtype.BFLOAT16)
    assert np.isfinite(found).tolist() == [True, True, False, False, False, True]
    assert found[0] > largest(Dtype.BFLOAT16)
    assert found[1] < -largest(Dtype.BFLOAT16)


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.FLOAT32, Dtype.INT32, Dtype.BOOL])
def test_wide_draws_are_the_same_numbers(dtype: Dtype, family: Family) -> None:
    for elements in (1000, POOL_ELEMENTS + 7):
        buffer = BufferPlan("x", dtype, Role.INPUT, (elements,), None)
        wide = draw_wide(buffer, 3, 1, family)
        assert wide.dtype == reference_dtype(dtype)
        np.testing.assert_array_equal(wide, draw_buffer(buffer, 3, 1, family))
