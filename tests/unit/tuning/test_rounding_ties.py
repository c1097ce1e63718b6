"""How many integers a right kernel may round to the other side."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Tolerance
from warpsmith.domain.jobs.plan import BufferPlan, WorkloadPlan, moved
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.outputs.rounding_ties import (
    BY_CHANCE,
    allowed_share,
    own_misses,
    rounds_floats,
    ties_of,
)
from warpsmith.verify.inputs import draw_buffer, draw_wide
from warpsmith.verify.run_report import Array

N = 10_000


def plan_of(inputs: Dtype = Dtype.FLOAT32, output: Dtype = Dtype.INT8) -> WorkloadPlan:
    x = BufferPlan("x", inputs, Role.INPUT, (N,), None)
    q = BufferPlan("q", output, Role.OUTPUT, (N,), None)
    return WorkloadPlan("n=1", (x, q), seed=7)


def drawn(plan: WorkloadPlan) -> Any:
    return draw_wide(plan.buffers[0], plan.seed)


def expected_ties(plan: WorkloadPlan, function: np.ufunc | None, factor: float = 25.0) -> dict[str, float]:
    def reference(of: WorkloadPlan) -> dict[str, Array]:
        x = drawn(of)
        made = np.argsort(x) if function is None else function(x * factor).astype(np.int64)
        return {"q": made}

    return ties_of(plan, plan.mutated, reference(plan), lambda share: reference(moved(plan, share)))


def test_moved_floats_lie_within_their_share_and_integers_stay() -> None:
    plan = plan_of()
    own, other = drawn(plan), drawn(moved(plan, 2.0**-10))
    apart = np.abs(other - own) / np.abs(own)
    assert 0.9 * 2.0**-10 < apart.max() <= 2.0**-10 * (1 + 1e-9)
    buffer = plan.buffers[0]
    in_float32 = draw_buffer(replace(buffer, moved=2.0**-10), plan.seed)
    assert in_float32.dtype == np.float32
    np.testing.assert_allclose(in_float32.astype(np.float64), other, rtol=1e-6)
    integers = plan_of(Dtype.INT32)
    np.testing.assert_array_equal(drawn(integers), drawn(moved(integers, 2.0**-10)))


def test_a_rounded_value_has_ties_in_the_measure_of_its_size() -> None:
    small, large = (expected_ties(plan_of(), np.rint, factor)["q"] for factor in (25.0, 2500.0))
    assert 0 < small < 0.001 * N
    assert 30 * small < large < 300 * small


def test_what_is_added_to_inputs_that_are_far_smaller_has_ties_that_moving_them_does_not_show() -> None:
    x = 2.0**-14 * np.random.default_rng(3).uniform(-4.0, 4.0, N)
    factors = np.random.default_rng(4).uniform(-1.0, 1.0, N)

    def bins(share: float) -> dict[str, Array]:
        return {"q": np.floor((x * (1.0 + share * factors) + 4.0) * 33.0 - 3e-4).astype(np.int64)}

    plan = plan_of()
    assert ties_of(plan, plan.mutated, bins(0.0), bins) == {}
    found = ties_of(plan, plan.mutated, bins(0.0), bins, rounded={"q"})["q"]
    in_float32 = np.floor((np.float32(x) + np.float32(4.0)) * np.float32(33.0) - np.float32(3e-4))
    assert 0 < np.count_nonzero(in_float32 != bins(0.0)["q"]) <= allowed_share(found, N) * N
    assert found < 0.001 * N


def test_values_on_the_very_middle_are_ties() -> None:
    # Halves, so that each product with an odd number may be rounded to either side.
    plan = plan_of()
    want = {"q": np.arange(N)}

    def reference(share: float) -> dict[str, Array]:
        return {"q": want["q"] + (np.arange(N) % 2)}

    assert ties_of(plan, plan.mutated, want, reference)["q"] >= N


def test_what_no_rounding_decides_is_exact() -> None:
    assert expected_ties(plan_of(), np.sign) == {}
    assert expected_ties(plan_of(), np.signbit) == {}
    assert rounds_floats(scale_job(), plan_of(inputs=Dtype.INT32)) == []
    assert rounds_floats(scale_job(), plan_of(output=Dtype.FLOAT32)) == []
    assert rounds_floats(scale_job(), plan_of(output=Dtype.BOOL)) == []
    given = scale_job().model_copy(update={"tolerances": {"q": Tolerance(rtol=0, atol=0)}})
    assert rounds_floats(given, plan_of()) == []


@pytest.mark.parametrize("expected", [1e-4, 0.01, 0.5, 3.0, 40.0, 499.0, 501.0, 2e4])
def test_more_ties_than_allowed_are_less_likely_than_one_in_a_million(expected: float) -> None:
    draws = np.random.default_rng(0).poisson(expected, 200_000)
    most = round(allowed_share(expected, 10**9) * 10**9)
    assert draws.max() <= most + 1
    assert np.count_nonzero(draws > most) <= 2
    if expected >= 0.5:
        assert most <= expected + 6 * np.sqrt(expected) + 4, "no more than chance explains"
    assert allowed_share(0.0, N) == 0.0
    assert BY_CHANCE == 1e-6


@pytest.mark.parametrize(
    ("misses", "by", "found"), [(0, 1, False), (20, 1, True), (20, 2, False), (600, 1, False)]
)
def test_a_kernel_s_own_steps_count_where_they_are_few_and_single(misses: int, by: int, found: bool) -> None:
    want = np.arange(N)
    got = want.copy()
    got[:misses] += by
    share = own_misses(scale_job(), plan_of(), {"q": got}, {"q": want})
    assert bool(share) is found
    if found:
        assert misses / N < share["q"] < 2 * misses / N
