"""Comparison, inputs and sampled ranges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.fakes import fake_ports
from testbed.repetitions import examples
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import DEFAULT_TOLERANCES, EXACT, Tolerance
from warpsmith.domain.jobs.memory import WIDE_BYTES
from warpsmith.domain.jobs.plan import BufferPlan, ScalarPlan, WorkloadPlan
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.verify import in_spans
from warpsmith.verify.checked_ranges import sample_ranges
from warpsmith.verify.compare import STRAY_FACTOR, STRAYS, ErrorBudget, compare, passes
from warpsmith.verify.dtypes import largest, numpy_dtype, reference_dtype, widened
from warpsmith.verify.inputs import POOL_ELEMENTS, TILE_ELEMENTS, draw_buffer, draw_inputs

LOOSE = Tolerance(rtol=0.5, atol=1.0)
ODD = [0.0, -0.0, 1.0, 1.5, 2.0, -3.0, 1e-3, 1e300, -1e300, math.inf, -math.inf, math.nan]
NUMBERED = (Distribution.NORMAL, Distribution.UNIFORM, Distribution.INTEGERS, Distribution.CONSTANT)
"""Distributions of which every element is a number of its own, within the draw's bounds."""
NUMBERS = st.one_of(st.sampled_from(ODD), st.floats(allow_nan=True, allow_infinity=True))


def _buffer(elements: int, dtype: Dtype = Dtype.FLOAT32, draw: Draw | None = None) -> BufferPlan:
    return BufferPlan("x", dtype, Role.INPUT, (elements,), draw)


def _naive_passes(got: float, want: float, tolerance: Tolerance) -> bool:
    if math.isnan(got) or math.isnan(want):
        return math.isnan(got) and math.isnan(want)
    if math.isinf(got) or math.isinf(want):
        return got == want
    if got == want:
        return True
    limit = tolerance.atol + tolerance.rtol * abs(want)
    return limit > 0 and abs(got - want) / limit <= 1.0


@pytest.mark.parametrize(
    ("got", "want", "passes"),
    [
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.nan, math.inf, False),
        (math.inf, math.inf, True),
        (-math.inf, -math.inf, True),
        (math.inf, -math.inf, False),
        (1e30, math.inf, False),
        (math.inf, 1e30, False),
        (0.0, -0.0, True),
    ],
)
def test_nan_and_infinity_pass_only_where_they_are_wanted(got: float, want: float, passes: bool) -> None:
    report = compare(np.array([got], np.float32), np.array([want]), LOOSE)
    assert (report.wrong == 0) is passes
    assert report.first_wrong == (None if passes else 0)
    assert (report.max_error == 0.0) is passes
    assert passes or math.isinf(report.max_error)


def test_the_edge_of_the_tolerance_belongs_to_it() -> None:
    tolerance = Tolerance(rtol=0.25, atol=0.5)
    want = np.array([2.0, 2.0, 2.0, 2.0])
    got = np.array([3.0, 1.0, 3.0 + 2**-50, 1.0 - 2**-50])
    report = compare(got, want, tolerance)
    assert report.wrong == 2
    assert report.first_wrong == 2
    assert report.max_error == pytest.approx(1.0)
    assert "element 2" in report.detail


@pytest.mark.parametrize(
    ("elements", "factor", "over"),
    [(STRAYS, 0.99, 0), (STRAYS + 1, 0.99, STRAYS + 1), (1, 1.01, 1), (STRAYS + 1, 0.49, 0)],
)
def test_few_elements_may_exceed_the_error_budget_and_not_by_far(
    elements: int, factor: float, over: int
) -> None:
    want, tolerance = np.ones(100), Tolerance(rtol=0.0, atol=1e-2)
    budget = ErrorBudget(0.1, Dtype.FLOAT32)
    allowed = (2 * 0.1 + budget.rounding / tolerance.atol) * tolerance.atol
    got = want.copy()
    got[:elements] += factor * STRAY_FACTOR * allowed
    assert compare(got, want, tolerance, budget).over_budget == over


def test_integers_are_exact_beyond_what_a_double_holds() -> None:
    want = np.array([2**63 - 1, 2**53 + 1, -(2**63)], np.int64)
    got = np.array([2**63 - 2, 2**53, -(2**63)], np.int64)
    assert compare(want, want, EXACT).wrong == 0
    report = compare(got, want, EXACT)
    assert (report.wrong, report.first_wrong) == (2, 0)
    unsigned = np.array([2**64 - 1], np.uint64)
    assert compare(unsigned - np.uint64(1), unsigned, EXACT).wrong == 1


def test_an_integer_output_is_not_equal_modulo_its_width() -> None:
    assert compare(np.array([-1], np.int32), np.array([2**32 - 1], np.int64), EXACT).wrong == 1
    assert compare(np.array([255], np.uint8), np.array([255], np.uint64), EXACT).wrong == 0


def test_zero_tolerance_on_floats_means_equal() -> None:
    assert compare(np.array([1.0, 0.0]), np.array([1.0, 0.0]), EXACT).wrong == 0
    report = compare(np.array([np.nextafter(1.0, 2.0)]), np.array([1.0]), EXACT)
    assert report.wrong == 1
    assert math.isinf(report.max_error)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="elements"):
        compare(np.zeros(3), np.zeros(4), LOOSE)


def test_nothing_compared_is_nothing_wrong() -> None:
    report = compare(np.zeros(0), np.zeros(0), LOOSE)
    assert (report.wrong, report.first_wrong, report.max_error) == (0, None, 0.0)


@pytest.mark.parametrize("place", [0, 6, 7, 8, 13, 14, 20])
def test_a_wrong_element_is_found_at_every_border_of_a_piece(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_spans, "CHUNK_ELEMENTS", 7)
    want = np.arange(21.0)
    got = want.copy()
    got[place] += 100.0
    got[20] += 100.0
    report = compare(got, want, LOOSE)
    assert report.first_wrong == place
    assert report.wrong == (1 if place == 20 else 2)
    assert f"of {want.size} compared" in report.detail


@examples(150)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20),
    st.sampled_from([EXACT, LOOSE, Tolerance(rtol=1e-4, atol=1e-5), Tolerance(rtol=0, atol=0.5)]),
)
def test_comparison_agrees_with_a_plain_loop(pairs: list[tuple[float, float]], tolerance: Tolerance) -> None:
    got, want = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    wrong = [i for i, (a, b) in enumerate(pairs) if not _naive_passes(a, b, tolerance)]
    report = compare(got, want, tolerance)
    assert report.wrong == len(wrong)
    assert report.first_wrong == (wrong[0] if wrong else None)
    assert (report.max_error > 1.0) is bool(wrong)


@pytest.mark.parametrize("dtype", list(Dtype))
def test_inputs_are_a_function_of_seed_name_and_variant(dtype: Dtype) -> None:
    buffer = _buffer(5000, dtype)
    first = draw_buffer(buffer, 7, 0)
    assert first.dtype == numpy_dtype(dtype)
    assert first.dtype.itemsize == dtype.size_bytes
    assert first.tobytes() == draw_buffer(buffer, 7, 0).tobytes()
    other_name = BufferPlan("z", dtype, Role.INPUT, (5000,), None)
    for different in (draw_buffer(buffer, 8, 0), draw_buffer(buffer, 7, 1), draw_buffer(other_name, 7, 0)):
        alike = np.mean(widened(different) == widened(first))
        assert alike < (0.6 if dtype in (Dtype.BOOL, Dtype.FLOAT8_E8M0FNU) else 0.1)
    assert reference_dtype(dtype).itemsize <= WIDE_BYTES


def test_outputs_are_not_drawn_and_every_input_is() -> None:
    arguments = (
        BufferPlan("a", Dtype.FLOAT16, Role.INPUT, (3, 4), None),
        BufferPlan("b", Dtype.INT32, Role.INOUT, (5,), None),
        BufferPlan("c", Dtype.FLOAT32, Role.OUTPUT, (5,), None),
        ScalarPlan("n", Dtype.INT32, 5),
    )
    drawn = draw_inputs(WorkloadPlan("k", arguments, seed=3))
    assert {name: array.shape for name, array in drawn.items()} == {"a": (12,), "b": (5,)}


@pytest.mark.parametrize("elements", [POOL_ELEMENTS, POOL_ELEMENTS + 1, 5 * POOL_ELEMENTS + 12345])
def test_big_inputs_repeat_with_no_period(elements: int) -> None:
    values = draw_buffer(_buffer(elements), 11)
    assert values.size == elements
    for period in (1, 2, 4096, TILE_ELEMENTS, POOL_ELEMENTS // 2, POOL_ELEMENTS, 2 * POOL_ELEMENTS):
        if period < elements:
            same = np.mean(values[period:] == values[:-period])
            # A tile drawn from a place that overlaps an earlier one repeats a part, never the whole.
            assert same < 0.5, period
    wide = values.astype(np.float64)
    assert abs(float(np.mean(wide))) < 0.02
    assert abs(float(np.std(wide)) - 1.0) < 0.02


def test_distributions_are_what_was_asked_for() -> None:
    def draw(**fields: object) -> np.ndarray:
        return draw_buffer(_buffer(200_000, Dtype.FLOAT64, Draw.model_validate(fields)), 5).astype(float)

    normal = draw(distribution=Distribution.NORMAL, mean=3.0, std=0.5)
    assert abs(normal.mean() - 3.0) < 0.01
    assert abs(normal.std() - 0.5) < 0.01
    uniform = draw(distribution=Distribution.UNIFORM, low=-2.0, high=4.0)
    assert uniform.min() >= -2.0
    assert uniform.max() < 4.0 + 1e-6
    assert abs(uniform.mean() - 1.0) < 0.02
    integers = draw(distribution=Distribution.INTEGERS, low=2, high=6)
    assert set(np.unique(integers)) == {2.0, 3.0, 4.0, 5.0}
    assert set(draw(distribution=Distribution.CONSTANT, low=1.5)) == {1.5}


def test_integers_default_to_small_non_negative_values() -> None:
    values = draw_buffer(_buffer(100_000, Dtype.INT8), 1)
    assert (values.min(), values.max()) == (0, 127)


@examples(200)
@given(st.integers(1, 500_000), st.integers(1, 100_000), st.integers(0, 2**32), st.integers(256, 70_000))
def test_ranges_cover_the_edges_and_stay_within(elements: int, row: int, seed: int, budget: int) -> None:
    ranges = sample_ranges(elements, row, np.random.default_rng(seed), budget)
    covered = np.zeros(elements, bool)
    last = -1
    for start, stop in ranges:
        assert last < start < stop <= elements
        last = stop
        covered[start:stop] = True
    assert covered[0]
    assert covered[-1]
    # The end of the first row, the beginning of the second and of the last.
    if row <= elements:
        assert covered[row - 1]
        assert covered[elements - row]
    if row < elements:
        assert covered[row]
    if elements > 4 * budget:
        assert covered.sum() <= 2 * budget


def test_ranges_differ_from_call_to_call_and_small_outputs_are_whole() -> None:
    assert sample_ranges(1000, 10, np.random.default_rng(0), 1000) == [(0, 1000)]
    rng = np.random.default_rng(0)
    assert sample_ranges(10**7, 4096, rng, 65_536) != sample_ranges(10**7, 4096, rng, 65_536)


def test_ends_of_random_rows_are_looked_at() -> None:
    row, rows = 1000, 2000
    ranges = sample_ranges(row * rows, row, np.random.default_rng(1), 65_536)
    ends = {(stop - 1) // row for start, stop in ranges if start < (stop // row) * row <= stop}
    assert len(ends) > 50


FLOATS = list(DEFAULT_TOLERANCES)


def _rounded(values: np.ndarray, dtype: Dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(numpy_dtype(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_right_answer_rounded_to_its_type_passes(dtype: Dtype) -> None:
    want = np.random.default_rng(1).normal(0, 30, 100_000)
    report = compare(_rounded(want, dtype), want, DEFAULT_TOLERANCES[dtype])
    assert (report.wrong, report.first_wrong) == (0, None)
    assert report.max_error < 0.5


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 64.0])
def test_an_answer_beyond_the_tolerance_of_its_type_fails(dtype: Dtype, scale: float) -> None:
    tolerance = DEFAULT_TOLERANCES[dtype]
    want = np.random.default_rng(2).normal(0, min(scale, largest(dtype) / 16), 1000)
    limit = tolerance.atol + tolerance.rtol * np.abs(want)
    wrong = want + np.where(np.arange(1000) % 3 == 0, 2.0 * limit, 0.0)
    report = compare(_rounded(wrong, dtype), want, tolerance)
    assert report.wrong == 334
    assert report.first_wrong == 0
    assert 1.0 < report.max_error < 4.0


@pytest.mark.parametrize(
    ("coarse", "dtype"), [(Dtype.BFLOAT16, Dtype.FLOAT16), (Dtype.BFLOAT16, Dtype.FLOAT32)]
)
def test_an_answer_computed_in_a_coarser_type_fails(coarse: Dtype, dtype: Dtype) -> None:
    want = np.random.default_rng(3).normal(0, 30, 10_000)
    coarser = _rounded(_rounded(want, coarse).astype(np.float64), dtype)
    assert compare(coarser, want, DEFAULT_TOLERANCES[dtype]).wrong > 1000


@pytest.mark.parametrize("dtype", [d for d in FLOATS if np.isinf(_rounded(np.array([math.inf]), d))[0]])
def test_nan_and_infinity_keep_their_rules_in_every_type(dtype: Dtype) -> None:
    want = np.array([math.nan, math.inf, -math.inf, 1.0, math.nan, math.inf, 0.0])
    got = _rounded(np.array([math.nan, math.inf, -math.inf, math.nan, 1.0, -math.inf, math.inf]), dtype)
    report = compare(got, want, DEFAULT_TOLERANCES[dtype])
    assert (report.wrong, report.first_wrong) == (4, 3)
    assert math.isinf(report.max_error)


def test_an_overflow_of_a_narrow_type_is_no_infinity_that_was_wanted() -> None:
    want = np.array([1e5, 65504.0, -1e5])
    report = compare(_rounded(want, Dtype.FLOAT16), want, DEFAULT_TOLERANCES[Dtype.FLOAT16])
    assert (report.wrong, report.first_wrong) == (2, 0)
    assert compare(_rounded(want, Dtype.BFLOAT16), want, DEFAULT_TOLERANCES[Dtype.BFLOAT16]).wrong == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_bits_can_be_compared_without_a_warning(dtype: Dtype) -> None:
    """Poison is random: signalling NaNs and subnormals are among it."""
    bits = np.random.default_rng(4).integers(0, 256, 8 * 65_536, np.uint8)
    got = bits.view(numpy_dtype(dtype))
    nan = np.uint8(0x80 if dtype.value.endswith("fnuz") else 0x7F)
    signalling = {1: nan, 2: np.uint16(0x7F81 if dtype is Dtype.BFLOAT16 else 0x7C01)}
    signalling[4] = np.uint32(0x7F800001)
    word = signalling.get(dtype.size_bytes, np.uint64(0x7FF0000000000001))
    got = np.concatenate([got, np.full(1, word).view(numpy_dtype(dtype))])
    report = compare(got, np.zeros(got.size), DEFAULT_TOLERANCES[dtype])
    assert report.wrong > got.size // 2
    assert compare(got[-1:], np.array([math.nan]), DEFAULT_TOLERANCES[dtype]).wrong == 0


def test_secret_seeds_are_drawn_afresh_and_give_other_inputs() -> None:
    ports, _ = fake_ports(lambda kernel, workload: 1.0)
    seeds = {DeviceSession(scale_job(), ports).inputs.seed for _ in range(32)}
    assert len(seeds) == 32
    drawn = [draw_buffer(_buffer(1000), seed) for seed in seeds]
    assert len({d.tobytes() for d in drawn}) == 32
    # Neighbouring seeds are as far apart as any two.
    near = np.corrcoef(
        draw_buffer(_buffer(10_000), 7).astype(float), draw_buffer(_buffer(10_000), 8).astype(float)
    )
    assert abs(near[0, 1]) < 0.05


@pytest.mark.parametrize("dtype", [d for d in Dtype if d.is_float])
@pytest.mark.parametrize("distribution", NUMBERED)
def test_every_family_draws_finite_values_of_every_float_type(
    dtype: Dtype, distribution: Distribution
) -> None:
    draw = Draw(distribution=distribution, mean=5.0, std=0.5, low=2.0, high=9.0)
    values = draw_buffer(_buffer(4096, dtype, draw), 3).astype(np.float64)
    assert np.isfinite(values).all()
    assert values.min() >= 1.9
    assert values.max() <= 9.0
    assert bool(np.ptp(values) == 0) is (distribution is Distribution.CONSTANT)


def test_the_references_type_holds_every_value_of_the_arguments_type() -> None:
    for dtype in Dtype:
        narrow, wide = numpy_dtype(dtype), reference_dtype(dtype)
        if dtype.is_float:
            assert wide == np.float64
            continue
        if dtype is Dtype.BOOL:
            assert wide == np.bool_
            continue
        limits = np.iinfo(narrow.name)
        extremes = np.array([limits.min, limits.max], narrow)
        assert [int(v) for v in extremes.astype(wide)] == [limits.min, limits.max]


def test_an_output_smaller_than_a_row_or_of_one_element_is_whole() -> None:
    assert sample_ranges(1, 1, np.random.default_rng(0), 65_536) == [(0, 1)]
    ranges = sample_ranges(100_000, 10**9, np.random.default_rng(0), 65_536)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 100_000


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BFLOAT16], ids=str)
def test_two_byte_floats_are_looked_up_as_they_convert(dtype: Dtype) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(dtype))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(widened(every), every.astype(np.float64))


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf, 0.0])
@pytest.mark.parametrize("tolerance", [Tolerance(atol=0.0, rtol=0.1), Tolerance(atol=0.1, rtol=0.0)], ids=str)
def test_what_is_not_finite_is_judged_beside_what_is(special: float, tolerance: Tolerance) -> None:
    want = np.array([1.0, special, 2.0])
    assert compare(want.copy(), want, tolerance).max_error == 0.0
    assert compare(want.astype(np.float32), want, tolerance).max_error == 0.0
    got = np.array([1.05, special, 2.5])
    report = compare(got, want, tolerance)
    assert (report.wrong, report.first_wrong) == (1, 2)
    got = np.array([1.0, 1.0, 2.0])
    assert compare(got, want, tolerance).wrong == 1
    assert compare(want, got, tolerance).wrong == 1
    assert not passes(got, want, tolerance)
    assert passes(want.astype(np.float32), want, tolerance)
