"""Which elements of an output count: what a job may say, and which elements it is then."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.device import Ceilings
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.compared_elements import MaskPlan
from warpsmith.domain.jobs.job import CacheState, Job
from warpsmith.domain.jobs.memory import all_bytes
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan, plan_workload
from warpsmith.measure.roofline import floor_of
from warpsmith.search.spaces.array_expressions import ArrayWalker
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.lessons.kernel_fingerprint import fingerprint
from warpsmith.verify.element_masks import MOST_RANGES, ElementMask, counted_report, element_masks
from warpsmith.verify.inputs import draw_buffer
from warpsmith.verify.run_report import RunReport

LENGTHS = {"name": "lengths", "dtype": "int32", "role": "input", "shape": ["rows"]}
MASK = {"name": "mask", "dtype": "bool", "role": "input", "shape": ["rows", "columns"]}


def job(kept: Any, role: str = "output", *inputs: dict[str, Any], **changes: Any) -> Job:
    """y[rows, 2 columns] of x[rows, columns]."""
    arguments = [
        {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "columns"]},
        *(inputs or (LENGTHS,)),
        {"name": "y", "dtype": "float32", "role": role, "shape": ["rows", "2 * columns"], "kept": kept},
    ]
    kernel = scale_job().kernel.model_dump(mode="json") | {"arguments": arguments}
    kernel |= {"launch": {"grid": [1], "block": [1]}}
    fields: dict[str, Any] = {
        "kernel": kernel,
        "workloads": [{"dimensions": {"rows": 4, "columns": 6}}],
        "parameters": [],
    }
    return scale_job(**(fields | changes))


def elements(kept: str, *inputs: dict[str, Any]) -> ElementMask:
    made = job(kept, "output", *inputs)
    return element_masks(plan_workload(made.kernel, made.workloads[0], {}, seed=3))["y"]


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (
            "i2 < columns",
            "unknown name 'i2' (known: indices i0, i1; dimensions columns, rows; inputs lengths",
        ),
        ("i1 < x", "unknown name 'x'"),
        ("i1 < y", "unknown name 'y'"),
        ("i1 <", "is not a valid expression"),
        ("__import__('os')", "only these functions may be called"),
        ("i1 < 'a'", "cannot be evaluated"),
        ("'a'", "gives a word, not a number"),
    ],
)
def test_a_wrong_condition_is_refused_with_its_field(kept: str, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        job(kept)
    assert words in str(caught.value)
    assert "kept" in str(caught.value)


def test_only_what_is_compared_has_elements_that_count() -> None:
    with pytest.raises(ValidationError, match="input x is not compared; kept is for outputs and inouts"):
        job("i1 < columns", "output", {**LENGTHS, "name": "x", "kept": "i0 < 2"})
    assert job("i1 < columns", "inout").kernel.arguments[2].kept == Expression("i1 < columns")


def test_a_name_that_stands_for_two_things_is_refused() -> None:
    with pytest.raises(ValidationError, match="'rows' is a dimension or parameter and an input; rename one"):
        job("i1 < rows", "output", {**LENGTHS, "name": "rows"})
    named = [{"dimensions": {"rows": 4, "columns": 6, "i1": 1}}]
    with pytest.raises(ValidationError, match="'i1' is an index and a dimension or parameter; rename one"):
        job("i1 < columns", workloads=named)


def test_an_input_says_it_for_the_first_indices() -> None:
    with pytest.raises(
        ValidationError, match=r"mask has the extents \[4, 6\]; needed are .* \[4, 12\], or 1"
    ):
        job("mask", "output", MASK)
    assert job("mask", "output", {**MASK, "shape": ["rows", 1]})
    with pytest.raises(ValidationError, match=r"lengths has the extents \[6\]"):
        job("i1 < lengths", "output", {**LENGTHS, "shape": ["columns"]})


def test_energy_would_have_the_overwriting_in_it() -> None:
    cuda = job("i1 < columns").kernel.model_dump(mode="json") | {"backend": "cuda"}
    with pytest.raises(
        ValidationError, match="y has `kept`, and overwriting it between launches would count"
    ):
        job("i1 < columns", kernel=cuda, objective={"metric": "energy"})


@pytest.mark.parametrize(
    "kept",
    [
        "i1 < columns",
        "i1 < lengths and i0 != 2",
        "(i0 * 12 + i1) % 5 in (0, 3)",
        "min(i0, i1) + 1 <= ceil_div(lengths, 40) or i1 // 2 == i0 if rows > 2 else 0",
        "(i0 < 2) + (i1 < 7) == 2",
        "next_pow2(i1) >= 8",
        "0 <= i1 - i0 < abs(lengths - 60)",
    ],
)
def test_all_elements_at_once_are_as_each_alone(kept: str) -> None:
    made = job(kept)
    plan = plan_workload(made.kernel, made.workloads[0], {}, seed=3)
    lengths = draw_buffer(plan.buffers[1], plan.seed)
    want = [
        bool(
            Expression(kept).evaluate(
                {"i0": i, "i1": j, "rows": 4, "columns": 6, "lengths": int(lengths.tolist()[i])}
            )
        )
        for i in range(4)
        for j in range(12)
    ]
    found = element_masks(plan)["y"]
    assert found.at().tolist() == want
    assert found.count == sum(want)
    assert 0 < found.count < 48, "else it says little"


def test_an_element_without_an_answer_counts() -> None:
    assert elements("5 % (i1 - 3) == 0").at().reshape(4, 12)[:, 3].all()


def test_other_inputs_make_other_elements_count() -> None:
    made = job("i1 < lengths", "output", {**LENGTHS, "draw": {"distribution": "integers", "high": 12}})
    one, other = (plan_workload(made.kernel, made.workloads[0], {}, seed=s) for s in (3, 4))
    assert element_masks(one)["y"].at().tolist() != element_masks(other)["y"].at().tolist()


@pytest.mark.parametrize("shape", [(3, 5, 700_001), (2_000_003,), (1, 1, 3_000_000), (70_000, 3, 7)])
def test_boxes_cover_large_outputs(shape: tuple[int, ...]) -> None:
    condition = MaskPlan(Expression(f"(i0 + i{len(shape) - 1}) % 3 < 2"), (), ())
    y = BufferPlan("y", Dtype.FLOAT32, Role.OUTPUT, shape, None, kept=condition, in_part=True)
    found = element_masks(WorkloadPlan("w", (y,), 1))["y"]
    first, last = np.indices(shape, sparse=True)[0], np.indices(shape, sparse=True)[-1]
    want = np.broadcast_to((first + last) % 3 < 2, shape).reshape(-1)
    assert np.array_equal(found.at(), want)
    start, stop = 65_530, min(65_550 + 3 * 65_536, want.size)
    assert found.within([(start, stop)]) == [(int(want[:start].sum()), int(want[:stop].sum()))]
    assert np.array_equal(found.places([(start, stop)]), start + np.flatnonzero(want[start:stop]))


@pytest.mark.parametrize("kept", ["i1 < 6", "(i0 * 7 + i1 * 13) % 11 == 0", "i0 >= 0", "i0 == 399999"])
def test_a_sample_is_of_what_counts(kept: str) -> None:
    shape = (400_000, 12)
    y = BufferPlan("y", Dtype.FLOAT32, Role.OUTPUT, shape, None, kept=MaskPlan(Expression(kept), (), ()))
    found = element_masks(WorkloadPlan("w", (y,), 1))["y"]
    ranges = found.sample(12, np.random.default_rng(1), 65_536)
    assert len(ranges) <= MOST_RANGES
    assert all(a < b for a, b in ranges)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(ranges))
    inside = found.at(ranges).sum()
    assert inside == sum(b - a for a, b in found.within(ranges))
    assert inside >= min(found.count, 40_000)
    places = found.places(ranges)
    assert {found.places()[0], found.places()[-1]} <= {places[0], places[-1]}


def test_what_does_not_count_is_not_in_a_report() -> None:
    found, whole = elements("i1 < columns"), np.arange(48)
    kept = {"y": found}
    report = counted_report(
        RunReport({"y": whole}, (), (), {"y": whole[10:30]}, {"y": [(10, 30)]}), None, kept
    )
    assert report.outputs["y"].tolist() == [i for i in range(48) if i % 12 < 6]
    assert report.repeated is not None
    want = [i for i in range(10, 30) if i % 12 < 6]
    assert report.repeated["y"].tolist() == want
    assert report.where_repeated("y", report.outputs["y"]).tolist() == want
    part = counted_report(RunReport({"y": whole[4:20]}, (), ()), {"y": [(4, 8), (8, 20)]}, kept)
    assert part.outputs["y"].tolist() == [i for i in range(4, 20) if i % 12 < 6]


def test_nothing_is_left_where_nothing_counts() -> None:
    found = elements("i0 < 0")
    assert (found.count, found.of(np.arange(48)).size) == (0, 0)
    assert found.sample(12, np.random.default_rng(0), 100) == [(0, 1)]


def test_a_floor_is_of_what_must_be_written() -> None:
    ceilings = Ceilings(hot_bytes_per_s=2e12, cold_bytes_per_s=1e12, flops_per_s=1e13, launch_us=1.0)
    x = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (10**7,), None)
    plan = WorkloadPlan("w", (x, BufferPlan("y", Dtype.FLOAT32, Role.OUTPUT, (10**7,), None)), 1)
    whole, half = (floor_of(plan, ceilings, CacheState.COLD, shares=s) for s in (None, {"y": 0.5}))
    assert half.us == pytest.approx(whole.us / 2)
    assert half.least_us == pytest.approx(whole.least_us / 2)


def test_a_worker_needs_memory_to_know_what_counts() -> None:
    made, plain = job("i1 < columns"), job(None)
    assert all_bytes(made).host > all_bytes(plain).host


def test_kernels_whose_elements_all_count_are_known_as_before() -> None:
    plain = job(None).kernel
    assert fingerprint(plain) != fingerprint(job("i1 < columns").kernel)
    assert fingerprint(job("i1 < columns").kernel) != fingerprint(job("i1 < rows").kernel)


@pytest.mark.parametrize("value", [-3, 0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 2**40 + 1, 7.9])
def test_arrays_have_the_powers_of_two_of_numbers(value: float) -> None:
    text = Expression("next_pow2(a)")
    assert ArrayWalker({"a": np.array([value])}).visit(text.tree) == text.evaluate({"a": value})


def test_families_keep_what_counts_within_the_draw() -> None:
    """Lengths that would go beyond the declared range say something else than the kernel reads."""
    draw = Draw(distribution=Distribution.INTEGERS, low=0, high=13)
    lengths = BufferPlan("lengths", Dtype.INT32, Role.INPUT, (4,), draw)
    condition = MaskPlan(Expression("i1 < lengths"), (), ("lengths",))
    y = BufferPlan("y", Dtype.FLOAT32, Role.OUTPUT, (4, 12), None, kept=condition)
    for family in (Family.SCALED_UP, Family.SPIKE, Family.ZEROS, Family.REPEATED):
        plan = WorkloadPlan("w", (lengths, y), 7, family)
        drawn = draw_buffer(lengths, 7, 0, family)
        assert element_masks(plan)["y"].count == sum(int(n) for n in drawn.tolist())
