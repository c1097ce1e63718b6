"""How much room roundings have in outputs that cancel."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Tolerance
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.outputs.rounding_room import may_cancel, room_of

Array = NDArray[np.floating]

ROWS, COLUMNS = 16, 1024
X = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (ROWS, COLUMNS), None)
Y = BufferPlan("y", Dtype.FLOAT32, Role.OUTPUT, (ROWS, COLUMNS), None)
PLAN = WorkloadPlan("rows=16", (X, Y), seed=7, family=Family.SORTED)
NORMAL = np.random.default_rng(5).standard_normal(ROWS * COLUMNS).reshape(ROWS, COLUMNS)


def normed(x: Array) -> Array:
    wide = x - x.mean(axis=1, keepdims=True)
    made: Array = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True))
    return made


def normed_in_float32(x: Array) -> Array:
    """With sums in order, as one thread has them."""
    single = x - np.cumsum(x, axis=1, dtype=np.float32)[:, -1:] / np.float32(COLUMNS)
    made: Array = single / np.sqrt(np.mean(single**2, axis=1, keepdims=True))
    return made


def room(x: Array, function: Callable[[Array], Array]) -> float:
    factors = np.random.default_rng(6).uniform(-1.0, 1.0, x.shape)

    def moved(share: float) -> dict[str, Array]:
        return {"y": function(x * (1.0 + share * factors)).reshape(-1)}

    return room_of(PLAN, may_cancel(scale_job(), PLAN), moved(0.0), moved)["y"]


@pytest.mark.parametrize("spread", [2.0**-6, 2.0**-8, 2.0**-10])
def test_a_mean_that_cancels_has_room_for_its_own_roundings(spread: float) -> None:
    rows = (1.5 + spread * NORMAL).astype(np.float32)
    apart = np.abs(normed_in_float32(rows) - normed(rows.astype(np.float64))).max()
    assert 1e-5 < apart < room(rows.astype(np.float64), normed)


def test_what_does_not_cancel_has_no_more_room_than_its_tolerance() -> None:
    assert room(NORMAL, normed) < 1e-4
    assert room(NORMAL, lambda x: 2 * x) < 2e-4
    assert room(NORMAL, np.zeros_like) == 0.0


def test_a_few_elements_that_jump_give_no_room() -> None:
    def jumping(x: Array) -> Array:
        return x + (np.abs(x) > 1.0)

    assert room(NORMAL, jumping) < 8 * room(NORMAL, lambda x: x)
    assert room(NORMAL, lambda x: np.where(x > 1e-3, x, np.inf)) < 1e-3


def test_a_job_s_own_inputs_and_tolerances_stay_as_they_are() -> None:
    assert may_cancel(scale_job(), replace(PLAN, family=Family.DECLARED)) == []
    given = scale_job().model_copy(update={"tolerances": {"y": Tolerance(rtol=0, atol=0)}})
    assert may_cancel(given, PLAN) == []
