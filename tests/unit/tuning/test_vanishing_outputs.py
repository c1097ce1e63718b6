"""Inputs on which zeros would pass as an output refuse nobody for that output."""

import numpy as np
import pytest

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.outputs.output_checks import CheckedRun, CheckResult, CheckRules, check_run
from warpsmith.verify.edge_cases import KINDS, EdgeCase
from warpsmith.verify.run_report import RunReport

N = 4096
TINY = np.full(N, 1.5e-40)


def judged(
    want: np.ndarray,
    got: np.ndarray,
    family: Family = Family.EDGE_CASE,
    kind: EdgeCase = EdgeCase.BALANCED,
    *,
    dtype: Dtype = Dtype.FLOAT32,
    further: tuple[np.ndarray, np.ndarray] | None = None,
    job: Job | None = None,
) -> CheckResult:
    """What a launch is worth that left `got` for `want`; `further` is a second output."""
    pairs = {"y": (got, want)} | ({} if further is None else {"z": further})
    buffers = tuple(BufferPlan(name, dtype, Role.OUTPUT, (N,), None) for name in pairs)
    variant = KINDS.index(kind) if family is Family.EDGE_CASE else 0
    plan = WorkloadPlan("n=4096", buffers, 1, family, variant)
    report = RunReport({n: made for n, (made, _) in pairs.items()}, (), ())
    expected = {n: wanted for n, (_, wanted) in pairs.items()}
    return check_run(CheckedRun(CheckRules(job or scale_job()), plan, report, expected, None))


NAN = np.full(N, np.nan, np.float32)
KERNEL = scale_job(reference={"kind": "kernel"})


@pytest.mark.parametrize("family", [Family.EDGE_CASE, Family.SCALED_DOWN, Family.SPIKE])
def test_an_output_that_underflows_refuses_nobody(family: Family) -> None:
    assert judged(TINY, NAN, family) == 0.0


def test_one_element_that_tells_makes_the_output_tell() -> None:
    want = TINY.copy()
    want[N - 1] = 1.0
    assert isinstance(judged(want, NAN), Rejected)


def test_a_further_output_that_tells_is_judged() -> None:
    right = np.ones(N, np.float32)
    assert judged(TINY, NAN, further=(right, np.ones(N))) == 0.0
    assert isinstance(judged(TINY, NAN, further=(2 * right, np.ones(N))), Rejected)


def test_a_workload_s_own_distribution_is_always_judged() -> None:
    assert isinstance(judged(TINY, NAN, Family.DECLARED), Rejected)


@pytest.mark.parametrize("family", [Family.ZEROS, Family.SPARSE, Family.EDGE_CASE, Family.SCALED_DOWN])
def test_zeros_that_a_reference_in_float64_gives_must_be_met(family: Family) -> None:
    assert isinstance(judged(np.zeros(N), NAN, family), Rejected)


def test_zeros_of_the_user_s_kernel_may_be_an_underflow_where_a_scale_is_small() -> None:
    assert judged(np.zeros(N), NAN, Family.EDGE_CASE, job=KERNEL) == 0.0
    assert judged(np.zeros(N), NAN, Family.SCALED_DOWN, job=KERNEL) == 0.0
    assert isinstance(judged(np.zeros(N), NAN, Family.ZEROS, job=KERNEL), Rejected)


def test_results_that_cancel_or_are_far_below_zero_must_be_met() -> None:
    assert isinstance(judged(np.full(N, 1e-17), NAN, kind=EdgeCase.FAR_BELOW), Rejected)
    assert isinstance(judged(np.full(N, 1e-17), NAN, kind=EdgeCase.EQUAL), Rejected)
    assert judged(np.full(N, 1e-17), NAN, kind=EdgeCase.TINY) == 0.0


def test_integers_do_not_underflow() -> None:
    zeros = np.zeros(N, np.int64)
    assert isinstance(judged(zeros, np.ones(N, np.int32), dtype=Dtype.INT32, job=KERNEL), Rejected)


def test_not_a_number_made_of_finite_inputs_refuses_nobody() -> None:
    want = np.ones(N)
    want[7] = np.nan
    right = np.ones(N, np.float32)
    assert not isinstance(judged(want, right), Rejected)
    asked = scale_job().model_copy(update={"non_finite": True})
    assert isinstance(judged(want, right, job=asked), Rejected)
    assert isinstance(judged(want, right, Family.SPIKE), Rejected)


def test_elements_beside_a_not_a_number_are_judged() -> None:
    want = np.ones(N)
    want[7] = np.nan
    wrong = np.ones(N, np.float32)
    wrong[8] = 2.0
    assert isinstance(judged(want, wrong), Rejected)
    wrong[8] = np.nan
    assert isinstance(judged(want, wrong), Rejected)
