"""Every example job loads, and its reference is right."""

import math

import numpy as np
import pytest

from testbed.example_jobs import EXAMPLES, FAMILIES, NUMPY_TYPES, draw_inputs, expected, load_example, small
from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan, ScalarPlan, plan_workload

BACKENDS = ("cuda", "opencl")


def test_each_family_has_its_four_files() -> None:
    for family in FAMILIES:
        names = {p.name for p in (EXAMPLES / family).iterdir()}
        assert names == {f"{family}.cu", f"{family}.cl", "cuda.yaml", "opencl.yaml"}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_job_loads(family: str, backend: str) -> None:
    job = load_example(family, backend)
    assert job.kernel.backend.value == backend
    assert job.kernel.entry in job.kernel.text
    odd = [w for w in job.workloads if any(v % 8 for v in w.dimensions.values())]
    assert odd and len(odd) < len(job.workloads), "round and ragged shapes"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_reference_gives_every_mutated_argument(family: str, backend: str) -> None:
    job = small(load_example(family, backend), family)
    for workload in job.workloads:
        plan = plan_workload(job.kernel, workload, {}, seed=3)
        rng = np.random.default_rng(3)
        inputs = {
            a.name: rng.normal(size=a.shape) if isinstance(a, BufferPlan) else np.float64(a.value)
            for a in plan.arguments
            if isinstance(a, BufferPlan | ScalarPlan)
        }
        got = expected(job, inputs, workload.dimensions)
        for buffer in plan.mutated:
            assert got[buffer.name].shape == buffer.shape
            assert np.isfinite(got[buffer.name]).all()


def test_numpy_types_cover_the_opencl_examples() -> None:
    for family in FAMILIES:
        for argument in load_example(family, "opencl").kernel.arguments:
            assert argument.dtype in NUMPY_TYPES
            assert argument.dtype is not Dtype.BFLOAT16


def test_silu_reference_against_a_loop() -> None:
    job = small(load_example("silu_and_mul", "opencl"), "silu_and_mul")
    inputs = draw_inputs(plan_workload(job.kernel, job.workloads[1], {}, seed=5))
    dims = job.workloads[1].dimensions
    got = expected(job, inputs, dims)["out"]
    for t in range(dims["tokens"]):
        for i in range(dims["hidden"]):
            gate, up = float(inputs["input"][t, i]), float(inputs["input"][t, dims["hidden"] + i])
            assert math.isclose(got[t, i], gate / (1 + math.exp(-gate)) * up, rel_tol=1e-12)


def test_rmsnorm_reference_against_a_loop() -> None:
    job = small(load_example("fused_add_rmsnorm", "opencl"), "fused_add_rmsnorm")
    inputs = draw_inputs(plan_workload(job.kernel, job.workloads[1], {}, seed=5))
    dims = job.workloads[1].dimensions
    got = expected(job, inputs, dims)
    for t in range(dims["tokens"]):
        row = [float(a) + float(b) for a, b in zip(inputs["input"][t], inputs["residual"][t], strict=True)]
        rms = math.sqrt(math.fsum(v * v for v in row) / len(row) + float(inputs["eps"]))
        for i, v in enumerate(row):
            assert math.isclose(got["residual"][t, i], v, rel_tol=1e-12)
            assert math.isclose(got["input"][t, i], v / rms * float(inputs["weight"][i]), rel_tol=1e-9)


def test_softmax_reference_against_a_loop() -> None:
    job = small(load_example("softmax", "opencl"), "softmax")
    inputs = draw_inputs(plan_workload(job.kernel, job.workloads[1], {}, seed=5))
    got = expected(job, inputs, job.workloads[1].dimensions)["out"]
    for row, result in zip(inputs["input"], got, strict=True):
        top = max(float(v) for v in row)
        total = math.fsum(math.exp(float(v) - top) for v in row)
        for v, have in zip(row, result, strict=True):
            assert math.isclose(have, math.exp(float(v) - top) / total, rel_tol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_cuda_examples_compile_for_sm_90(family: str) -> None:
    kernel = load_example(family, "cuda").kernel
    assert compile_cuda(kernel.text, kernel.entry) == ""


def test_the_compiler_reports_a_bad_source() -> None:
    assert "undefined" in compile_cuda("__global__ void f(int* p) { *p = nothing; }", "f")
