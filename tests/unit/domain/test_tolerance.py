"""Default tolerances go by what an output holds and how long its sums are; a job's own holds as it is."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import DEFAULT_TOLERANCES, EXACT, Tolerance
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.outputs.output_checks import tolerance_of
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.verify.compare import compare, root_mean_square
from warpsmith.verify.tolerance import SMALLEST, default_tolerance, longest_sum, passing_atol, typical_size

FLOAT32 = DEFAULT_TOLERANCES[Dtype.FLOAT32]


def plan_of(*shapes: tuple[str, Role, tuple[int, ...]], dtype: Dtype = Dtype.FLOAT32) -> WorkloadPlan:
    return WorkloadPlan("w", tuple(BufferPlan(n, dtype, r, s, None) for n, r, s in shapes), 1)


def test_the_length_of_sums_is_read_from_the_extents() -> None:
    a, b = ("a", Role.INPUT, (64, 300)), ("b", Role.INPUT, (300, 32))
    matrices = plan_of(a, b, ("c", Role.OUTPUT, (64, 32)))
    assert longest_sum(matrices, matrices.buffers[2]) == pytest.approx(300)
    rows = plan_of(a, ("y", Role.OUTPUT, (64,)))
    assert longest_sum(rows, rows.buffers[1]) == 300
    dot = plan_of(("x", Role.INPUT, (500,)), ("z", Role.INPUT, (500,)), ("y", Role.OUTPUT, (1,)))
    assert longest_sum(dot, dot.buffers[2]) == 500
    drawn = plan_of(("y", Role.OUTPUT, (7,)))
    assert longest_sum(drawn, drawn.buffers[0]) == 1


def test_sums_of_float32_pass_near_zero_where_the_fixed_tolerance_refuses_them() -> None:
    rng = np.random.default_rng(3)
    refused = 0
    for terms in (256, 1024, 4096):
        a, b = rng.standard_normal((2, 96, terms)).astype(np.float32)
        want = a.astype(np.float64) @ b.astype(np.float64).T
        got = np.zeros(want.shape, np.float32)
        for i in range(terms):
            got += np.outer(a[:, i], b[:, i])
        size = typical_size(want.ravel())
        tolerance = default_tolerance(FLOAT32, Dtype.FLOAT32, size, terms)
        assert compare(got.ravel(), want.ravel(), tolerance).max_error < 0.7
        refused += compare(got.ravel(), want.ravel(), FLOAT32).wrong
        less = (a[:, :-1] @ b[:, :-1].T).ravel()
        assert compare(less, want.ravel(), tolerance).wrong > 0.9 * want.size
    assert refused > 0


@pytest.mark.parametrize(("terms", "lanes"), [*product((64, 256, 2048), (1, 4, 32)), (8192, 4), (8192, 32)])
def test_sums_over_sorted_inputs_pass_in_any_order(terms: int, lanes: int) -> None:
    """Their partial sums are large and cancel. 8192 of them one by one may reach 1.1 tolerances."""
    rng = np.random.default_rng(terms + lanes)
    shapes = (("a", Role.INPUT, (256, terms)), ("x", Role.INPUT, (terms,)), ("y", Role.OUTPUT, (256,)))
    plan = replace(plan_of(*shapes), family=Family.SORTED)
    allowed = 0.0
    for _ in range(10):
        a, x = rng.standard_normal((256, terms)), rng.standard_normal(terms)
        declared = a @ x
        a, x = np.sort(a.ravel()).reshape(a.shape).astype(np.float32), np.sort(x).astype(np.float32)
        want = a.astype(np.float64) @ x.astype(np.float64)
        products = (a * x).reshape(256, lanes, -1)
        parts = np.add.accumulate(products, axis=2)[:, :, -1]
        got = np.add.accumulate(parts, axis=1)[:, -1]
        growth = root_mean_square(want) / root_mean_square(declared)
        known = CheckedCase(
            dimensions={}, sizes={"y": typical_size(declared)}, growth={"y": growth} if growth > 1 else {}
        )
        tolerance = tolerance_of(scale_job(), plan, plan.buffers[2], known)
        assert compare(got, want, tolerance).max_error < 1
        allowed = max(allowed, tolerance.atol / max(typical_size(declared), root_mean_square(want)))
        without_last = want - a[:, -1].astype(np.float64) * x[-1]
        assert compare(without_last, want, tolerance).wrong > 200
    assert allowed <= FLOAT32.rtol / 2 + FLOAT32.atol


@pytest.mark.parametrize("dtype", list(DEFAULT_TOLERANCES), ids=str)
@pytest.mark.parametrize("terms", [1, 256, 10**5, 10**9])
@pytest.mark.parametrize("size", [1.0, 16.0, 1e4, 1e20])
def test_an_element_of_typical_size_keeps_the_tolerance_of_its_type(
    dtype: Dtype, terms: float, size: float
) -> None:
    """Or a mistake that was caught there would pass."""
    base = DEFAULT_TOLERANCES[dtype]
    found = default_tolerance(base, dtype, size, terms)
    for element in (size, 3 * size):
        assert found.atol + found.rtol * element <= (base.atol + base.rtol * element) * (1 + 1e-12)
    assert found.atol <= base.atol + base.rtol / 2 * size
    assert found.rtol >= base.rtol / 2


@pytest.mark.parametrize("dtype", list(DEFAULT_TOLERANCES), ids=str)
def test_smaller_outputs_get_less_and_never_nothing(dtype: Dtype) -> None:
    base = DEFAULT_TOLERANCES[dtype]
    small = default_tolerance(base, dtype, 1e-3, 1)
    assert small.atol == pytest.approx(max(1e-3 * base.atol, SMALLEST.get(dtype, 0.0)), rel=1)
    assert small.rtol == base.rtol
    assert default_tolerance(base, dtype, 0.0, 1).atol > 0
    assert default_tolerance(base, dtype, 1.0, 1) == base


def test_few_large_elements_do_not_hide_what_the_others_are() -> None:
    values = np.random.default_rng(1).standard_normal(10_000)
    plain = typical_size(values)
    assert plain == pytest.approx(1.0, rel=0.05)
    values[::100] = 1e6
    assert typical_size(values) < 8 * plain
    values[:] = 0.0
    values[::50] = 2.0
    assert typical_size(values) == pytest.approx(2.0 / math.sqrt(50))
    assert typical_size(np.zeros(5)) == 0.0
    assert typical_size(np.array([np.nan, np.inf, 2.0]), np.array([])) == 2.0


def test_a_single_sum_near_zero_is_judged_by_another_draw_as_well() -> None:
    assert typical_size(np.array([1e-4]), np.array([20.0])) == pytest.approx(20 / math.sqrt(2), rel=0.01)


def test_the_tolerance_of_a_job_holds_as_it_is() -> None:
    plan = plan_of(("x", Role.INPUT, (4096,)), ("y", Role.OUTPUT, (4096,)))
    known = CheckedCase(dimensions={"n": 4096}, sizes={"y": 1000.0})
    given = Tolerance(rtol=1e-6, atol=1e-7)
    job = scale_job(tolerances={"y": given.model_dump()})
    assert tolerance_of(job, plan, plan.buffers[1], known) == given
    assert tolerance_of(scale_job(), plan, plan.buffers[1], known).atol > FLOAT32.atol
    older = CheckedCase(dimensions={"n": 4096})
    assert tolerance_of(scale_job(), plan, plan.buffers[1], older) == FLOAT32
    whole = plan_of(("y", Role.OUTPUT, (4,)), dtype=Dtype.INT32)
    assert tolerance_of(scale_job(), whole, whole.buffers[0], known) == EXACT


def test_the_tolerance_that_would_pass_does() -> None:
    rng = np.random.default_rng(2)
    want = rng.standard_normal(1000)
    got = want + 3.14e-5 * rng.standard_normal(1000)
    atol = passing_atol(got, want, 1e-6)
    assert compare(got, want, Tolerance(rtol=1e-6, atol=atol)).wrong == 0
    assert compare(got, want, Tolerance(rtol=1e-6, atol=atol * 0.8)).wrong > 0
    assert passing_atol(want, want, 0.0) == 0.0
    got[3] = np.nan
    assert passing_atol(got, want, 1e-6) == math.inf


@pytest.mark.parametrize("scale", [1e-170, 1e-101, 1.0, 1e160])
def test_a_root_mean_square_holds_at_any_scale(scale: float) -> None:
    values = np.random.default_rng(5).standard_normal(300_000)
    wanted = scale * float(np.sqrt(np.mean(values**2)))
    assert root_mean_square(values * scale) == pytest.approx(wanted, rel=1e-12)
    mixed = np.concatenate([values * scale, [np.nan, np.inf, -np.inf]])
    assert root_mean_square(mixed) == pytest.approx(wanted, rel=1e-12)


def test_a_root_mean_square_of_half_needs_no_wider_input() -> None:
    values = np.full(200_000, 60000.0, np.float16)
    assert root_mean_square(values) == pytest.approx(float(values[0]))
    assert root_mean_square(np.zeros(9, np.float16)) == 0.0
    assert root_mean_square(np.array([], np.float16)) == 0.0
