"""Edge cases: the same in every process, within declared ranges, and as their kinds are named."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan, Family
from warpsmith.verify.edge_cases import EDGE_CASES, KINDS, EdgeCase, changed_scalar
from warpsmith.verify.inputs import draw_buffer

FREE = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (4, 64), None)


def _drawn(kind: EdgeCase, buffer: BufferPlan = FREE, seed: int = 7) -> NDArray[Any]:
    return draw_buffer(buffer, seed, KINDS.index(kind), Family.EDGE_CASE).reshape(buffer.shape)


def test_an_edge_case_is_the_same_again_and_another_with_another_seed() -> None:
    for variant in range(EDGE_CASES):
        one, again, other = (draw_buffer(FREE, seed, variant, Family.EDGE_CASE) for seed in (7, 7, 8))
        assert np.array_equal(one, again, equal_nan=True)
        assert not np.array_equal(one, other, equal_nan=True)


def test_kinds_are_what_their_names_say() -> None:
    assert (np.diff(_drawn(EdgeCase.FALLING), axis=1) <= 0).all()
    assert (np.diff(_drawn(EdgeCase.CONSTANT_ROWS), axis=1) == 0).all()
    assert (_drawn(EdgeCase.NEGATIVE) <= 0).all()
    assert np.abs(_drawn(EdgeCase.HUGE)).max() > 2.0**21
    assert np.abs(_drawn(EdgeCase.TINY)).max() < 2.0**-40
    whole = _drawn(EdgeCase.WHOLE)
    assert (whole == np.floor(whole)).all()
    assert np.isnan(_drawn(EdgeCase.NOT_A_NUMBER)).any()
    assert np.isinf(_drawn(EdgeCase.INFINITE)).any()
    other = BufferPlan("y", Dtype.FLOAT32, Role.INPUT, (4, 64), None)
    assert np.array_equal(_drawn(EdgeCase.EQUAL), _drawn(EdgeCase.EQUAL, other))
    assert not np.array_equal(_drawn(EdgeCase.PLAIN), _drawn(EdgeCase.PLAIN, other))


@pytest.mark.parametrize("kind", KINDS)
def test_a_declared_range_is_kept(kind: EdgeCase) -> None:
    draw = Draw(distribution=Distribution.INTEGERS, low=3, high=9)
    values = _drawn(kind, BufferPlan("i", Dtype.INT32, Role.INPUT, (4, 64), draw))
    assert values.min() >= 3
    assert values.max() < 9


def test_integers_without_a_range_leave_the_usual_one() -> None:
    free = BufferPlan("i", Dtype.INT32, Role.INPUT, (4, 64), None)
    drawn = np.concatenate([_drawn(EdgeCase.INTEGERS, free, seed).ravel() for seed in range(8)])
    assert drawn.min() < -128
    assert drawn.max() > 30_000


def test_a_scalar_gets_another_value_in_its_edge_cases_only() -> None:
    scalars = KINDS.index(EdgeCase.SCALARS)
    lots = [scalars + EDGE_CASES * lot for lot in range(20)]
    assert {changed_scalar(0.2, False, variant, "alpha") for variant in lots}.isdisjoint({0.2})
    assert changed_scalar(0.2, False, 0, "alpha") == 0.2
    assert {changed_scalar(1, True, variant, "stride") for variant in lots} == {0, 2, 3}
    assert changed_scalar(1, True, scalars + len(KINDS), "stride") == 1, "a round that leaves integers alone"
