"""What a refusal says of an output that is wrong."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job, Tolerance
from warpsmith.domain.jobs.plan import BufferPlan, WorkloadPlan
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.outputs.output_checks import CheckedRun, CheckRules, check_run
from warpsmith.tuning.outputs.unwritten import CHANCE, hidden_unwritten, unwritten
from warpsmith.verify.dtypes import numpy_dtype
from warpsmith.verify.run_report import Ranges, RunReport

PATTERN = b"\x12\x71\x34\xf3"
N = 4096


def refusal(
    got: np.ndarray,
    want: np.ndarray,
    *,
    job: Job | None = None,
    own: bool = True,
    ranges: Ranges | None = None,
    dtype: Dtype = Dtype.FLOAT32,
    shape: tuple[int, ...] = (N,),
) -> str:
    """The words with which an output is refused."""
    plan = WorkloadPlan("n=4096", (BufferPlan("y", dtype, Role.OUTPUT, shape, None),), 1)
    spans = None if ranges is None else {"y": ranges}
    if ranges is not None:
        got = np.concatenate([got[a:b] for a, b in ranges])
    report = RunReport({"y": got}, (), (), poison={"y": PATTERN})
    rules = CheckRules(job or scale_job(), own_globals=None if own else frozenset())
    found = check_run(CheckedRun(rules, plan, report, {"y": want}, spans))
    assert isinstance(found, Rejected)
    return found.reason


def filled(dtype: Any, elements: int = N) -> np.ndarray:
    """What a buffer holds before the launch."""
    width = np.dtype(dtype).itemsize * elements
    return np.frombuffer((PATTERN * width)[:width], dtype)


def drawn() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(N)


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.FLOAT16, Dtype.FLOAT64, Dtype.BFLOAT16, Dtype.INT8])
def test_elements_that_nobody_wrote_are_counted_and_named(dtype: Dtype) -> None:
    want = (drawn() * 20).astype(numpy_dtype(dtype))
    got = filled(numpy_dtype(dtype)).copy()
    got[: N - 10] = want[: N - 10]
    if dtype is not Dtype.INT8:  # one of 256 values may be right by chance
        words = refusal(got, want.astype(np.float64), dtype=dtype)
        assert "10 of 4096 elements were never written, the first is element 4086" in words
        assert "its role is inout" in words
    assert set(unwritten(got, want, PATTERN, lambda: np.arange(N))) <= set(range(N - 10, N))
    assert len(unwritten(got, want, PATTERN, lambda: np.arange(N))) >= 8


def test_a_sample_of_an_output_knows_where_its_elements_lie() -> None:
    want = drawn()
    got = want.astype(np.float16)
    got[101:104] = filled(np.float16)[101:104]
    words = refusal(got, want, ranges=[(3, 20), (101, 200)], dtype=Dtype.FLOAT16)
    assert "3 of 116 elements were never written, the first is element 101" in words


def test_a_candidate_is_told_what_it_left_and_not_how_to_declare_it() -> None:
    want = drawn()
    got = want.astype(np.float32)
    got[7] = filled(np.float32)[7]
    words = refusal(got, want, own=False)
    assert "1 of 4096 elements were never written" in words
    assert "inout" not in words
    got[0] += 1.0
    assert "besides, element 0 is" in refusal(got, want, own=False)


def test_an_error_of_rounding_names_the_tolerance_that_would_pass() -> None:
    want = drawn()
    got = want.astype(np.float32)
    got[9] += 3e-4
    given = scale_job(tolerances={"y": {"rtol": 1e-6, "atol": 1e-6}})
    assert "atol 0.0003 would pass, the job's is 1e-06 (rtol 1e-06)" in refusal(got, want, job=given)
    assert "would pass, the default here is 1e-05" in refusal(got, want)
    assert "would pass" not in refusal(got, want, own=False)
    got[9] += 1.0
    assert "would pass" not in refusal(got, want)


def test_a_tolerance_of_zero_is_called_one() -> None:
    want = drawn()
    job = scale_job(tolerances={"y": {"rtol": 0, "atol": 0}})
    words = refusal(want.astype(np.float32), want, job=job)
    assert "and rtol and atol are 0" in words
    assert "inf" not in words


def test_where_nearly_all_is_wrong_reference_and_declared_type_are_asked_about() -> None:
    want = drawn()
    words = refusal((want + 3).astype(np.float16), want, dtype=Dtype.FLOAT16)
    assert "does reference.source compute what the kernel does, and is y float16 in the source" in words
    got = want.astype(np.float16)
    got[:100] += 3
    assert "in the source" not in refusal(got, want, dtype=Dtype.FLOAT16)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_reference_that_is_not_finite_is_named_and_not_the_kernel(bad: float) -> None:
    want = drawn()
    got = want.astype(np.float32)
    want[: N // 2] = bad
    words = refusal(got, want)
    assert f"reference.source gives NaN or infinity in {N // 2} of {N} elements" in words
    assert "as declared" not in words
    assert "the kernel gives NaN or infinity in" in refusal(want.astype(np.float32), drawn())


@pytest.mark.parametrize(("factor", "shown"), [(9.0, "9"), (1 / 9, "1/9"), (-1.0, "-1"), (0.3456, "0.3456")])
def test_a_factor_between_kernel_and_reference_is_named(factor: float, shown: str) -> None:
    want = drawn()
    words = refusal((factor * want).astype(np.float32), want)
    assert f"the kernel's result is {shown} times the reference's everywhere" in words
    assert "as declared" not in words


def test_a_reference_with_its_axes_swapped_is_named() -> None:
    want = drawn()
    got = want.reshape(32, 128).T.ravel().astype(np.float32)
    for shape in ((32, 128), (128, 32)):
        assert "with its axes swapped" in refusal(got, want, shape=shape)
    assert "swapped" not in refusal(got, want)


def test_a_kernel_that_is_its_own_reference_has_none_to_blame() -> None:
    own = scale_job(reference={"kind": "kernel"})
    assert "reference" not in refusal((9 * drawn()).astype(np.float32), drawn(), job=own)


def test_an_output_of_arbitrary_bits_is_refused_without_a_warning() -> None:
    """Bits that a kernel leaves may be signalling NaNs and infinities, which arithmetic warns of."""
    got = np.full((64, 64), 0x7FA00001, np.uint32).view(np.float32)
    got[1:] = np.inf
    want = np.full(N, np.inf)
    with np.errstate(all="raise"):
        words = refusal(got.ravel(), np.where(np.arange(N) % 2, want, 1.0), shape=(64, 64))
    assert "NaN" in words


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.FLOAT64, Dtype.BFLOAT16])
def test_what_nobody_wrote_is_no_answer_although_it_is_within_the_tolerance(dtype: Dtype) -> None:
    """A kernel that is its own reference leaves fill bytes there as well, and they set the scale."""
    want = (drawn() * 20).astype(numpy_dtype(dtype))
    want[N - 40 :] = filled(numpy_dtype(dtype), 40) * 8
    got = want.copy()
    got[N - 40 :] = filled(numpy_dtype(dtype), 40)
    wide = Tolerance(rtol=1.0, atol=0.0)
    job = scale_job().model_copy(update={"tolerances": {"y": wide}})
    words = refusal(got, want, job=job, dtype=dtype)
    assert "40 of 4096 elements were never written, the first is element 4056" in words


def test_a_right_element_that_equals_the_fill_is_no_such_element() -> None:
    tolerance = Tolerance(rtol=1e-5, atol=1e-5)
    everywhere = filled(np.float32)

    def found(got: np.ndarray, want: np.ndarray) -> int:
        return int(hidden_unwritten(got, want, tolerance, PATTERN, lambda: np.arange(N)).size)

    assert not found(everywhere, everywhere.astype(np.float64))
    assert not found(drawn().astype(np.float32), drawn())
    large = (np.random.default_rng(0).standard_normal(1 << 20) * 1e4).astype(np.float16)
    got = large
    want = got.astype(np.float64) * 1.0001
    assert unwritten(got, want, PATTERN, lambda: np.arange(got.size)).size > CHANCE
    assert not hidden_unwritten(got, want, tolerance, PATTERN, lambda: np.arange(got.size)).size
    byte = got.astype(ml_dtypes.float8_e4m3fn)
    assert not hidden_unwritten(byte, want, tolerance, PATTERN, lambda: np.arange(got.size)).size
