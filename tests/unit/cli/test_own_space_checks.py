"""What is known before anything runs of a job's parameters, constraints, grids and equal dimensions."""

import time
from typing import Any

import pytest

from testbed.deadlines import stretched
from testbed.fakes import fake_ports
from warpsmith.device_checks.distinct_dimensions import distinct_dimensions
from warpsmith.device_checks.reference_check import check_reference
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.job_checks import parameters
from warpsmith.job_checks.all_findings import source_findings
from warpsmith.job_files.finding import Finding
from warpsmith.source.declarations.device_variables import unfilled_constants
from warpsmith.testing.jobs import SCALE_SOURCE, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession

BLUR = """
__kernel void blur(__global const float* x, __global float* y, const int w, const int h) {
  int c = get_global_id(0), r = get_global_id(1);
  float sum = 0.0f;
  for (int k = 0; k < 3; k++) sum += x[r * w + min(c + k, w - 1)];
  if (c < w && r < h) y[r * w + c] = sum;
}
"""
PAR = {"name": "BLOCK", "values": [32, 64, 128], "default": 64}
PER = {"name": "PER", "values": [1, 2, 4]}


def blur_job(grid: str = "ceil_div(w, 16)", returned: str = "x", w: int = 650, h: int = 480) -> Job:
    images = [
        {"name": n, "dtype": "float32", "role": r, "shape": ["h", "w"]}
        for n, r in (("x", "input"), ("y", "output"))
    ]
    sizes = [{"name": n, "dtype": "int32", "role": "scalar", "value": n} for n in "wh"]
    kernel = {
        "backend": "opencl",
        "source": BLUR,
        "entry": "blur",
        "arguments": [*images, *sizes],
        "launch": {"grid": [grid, "h"], "block": [16, 1]},
    }
    source = f"def reference(inputs, dims):\n    x = inputs['x']\n    return {{'y': {returned}}}\n"
    return scale_job(
        kernel=kernel,
        parameters=[],
        workloads=[{"dimensions": {"w": w, "h": h}}],
        reference={"kind": "numpy", "source": source},
    )


def told(job: Job) -> list[tuple[str, bool]]:
    """Fields, and which are errors."""
    return [(f.field, f.is_error) for f in source_findings(job)]


@pytest.mark.parametrize(
    ("expressions", "field", "words"),
    [
        (["BLOCK > 100000"], "constraints.0", "no configuration meets it on any workload: BLOCK > 100000"),
        (["PER < 9", "n > 999999"], "constraints.1", "no configuration meets it on any workload: n > 999999"),
        (["BLOCK > 64", "BLOCK < 128"], "constraints.1", "meets all 2 constraints"),
        (["BLOCK > 64"], "constraints.0", "the defaults (BLOCK=64, PER=1), which are your kernel as it is"),
    ],
)
def test_a_constraint_that_leaves_nothing_is_the_user_s(
    expressions: list[str], field: str, words: str
) -> None:
    job = scale_job(constraints=[{"expression": e} for e in expressions], parameters=[PAR, PER])
    found: list[Finding] = list(source_findings(job))
    assert [(f.field, f.is_error) for f in found] == [(field, True)]
    assert words in found[0].message


def test_what_could_not_be_looked_at_in_time_is_not_said_to_be_unmet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "LOOK_S", 0.0)
    job = scale_job(constraints=[{"expression": "BLOCK > 100000"}], parameters=[PAR, PER])
    (found,) = source_findings(job)
    assert found.message.startswith("the defaults (BLOCK=64, PER=1), which are your kernel as it is, break")


@pytest.mark.parametrize("expression", ["BLOCK >= 64", "n < 2000", "BLOCK <= device.max_threads_per_block"])
def test_a_constraint_that_leaves_one_workload_to_the_defaults_is_none(expression: str) -> None:
    assert told(scale_job(constraints=[{"expression": expression}])) == []


def test_a_baseline_refuses_what_no_limit_of_its_device_meets() -> None:
    job = scale_job(constraints=[{"expression": "BLOCK > device.max_threads_per_block"}])
    assert told(job) == []
    session = DeviceSession(job, fake_ports(lambda configuration, workload: 100.0)[0])
    refused = measure_baseline(session).refused
    session.close()
    assert refused.startswith("constraints.0: no configuration meets it on any workload: BLOCK > device")


@pytest.mark.parametrize("source", [SCALE_SOURCE, SCALE_SOURCE + "// UNUSED"])
def test_a_parameter_that_nothing_uses_is_found(source: str) -> None:
    more = {"name": "UNUSED", "values": [1, 2, 3]}
    kernel = scale_job().kernel.model_dump(mode="json", exclude_unset=True) | {"source": source}
    given: dict[str, Any] = {"kernel": kernel, "parameters": [PAR, PER, more]}
    assert told(scale_job(**given)) == [("parameters.2", False)]
    for used in ("#define X UNUSED\n", "#define X(a) UN##a\n"):
        assert told(scale_job(**(given | {"kernel": kernel | {"source": used + source}}))) == []
    assert told(scale_job(**given, constraints=[{"expression": "UNUSED < 3"}])) == []
    assert told(scale_job(**(given | {"kernel": kernel | {"options": ["-DX=UNUSED"]}}))) == []


@pytest.mark.parametrize("grid", ["w // 16", "max(1, w // 16)", "2 * (w // 32)", "(w - 1) // 16"])
def test_a_grid_that_drops_a_remainder_is_found(grid: str) -> None:
    assert told(blur_job(grid)) == [("kernel.launch.grid.0", False)]


@pytest.mark.parametrize(
    "grid", ["ceil_div(w, 16)", "(w + 15) // 16", "w // 16 + 1", "-(-w // 16)", "min(w // 16, 64)", "w // 13"]
)
def test_a_grid_that_covers_all_is_not(grid: str) -> None:
    assert told(blur_job(grid)) == []


def test_a_kernel_that_strides_by_its_grid_may_have_any() -> None:
    kernel = scale_job().kernel.model_dump(mode="json", exclude_unset=True)
    launch = {"grid": ["n // 96"], "block": [96]}
    assert told(scale_job(kernel=kernel | {"launch": launch}, parameters=[])) == []


@pytest.mark.parametrize(("w", "h"), [(640, 480), (512, 512), (64, 64)])
def test_a_reference_that_swaps_its_axes_fails_at_equal_extents_too(w: int, h: int) -> None:
    found = check_reference(blur_job(returned="x.T", w=w, h=h), {})
    assert found.finding is not None
    assert "'y' has shape" in found.finding.message
    assert check_reference(blur_job(w=w, h=h), {}).finding is None


def test_distinct_dimensions_divide_where_the_workload_s_do() -> None:
    own = Workload(dimensions={"w": 640, "h": 640})
    assert distinct_dimensions(blur_job(), own, 256) == {"w": 251, "h": 241}
    sizes = distinct_dimensions(blur_job("w // 16"), own, 256)
    assert sizes is not None
    assert sizes["w"] % 16 == 0
    assert sizes["w"] != sizes["h"]
    assert distinct_dimensions(blur_job(), Workload(dimensions={"w": 640, "h": 3}), 256) is None


def test_a_reference_that_relies_on_equal_extents_is_run_on_the_job_s_own() -> None:
    found = check_reference(blur_job(returned="x @ x", w=64, h=64), {})
    assert (found.finding, found.note) == (None, "ran, with h=64,w=64")


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        ("__constant__ float c[9];", 2),
        ("static __constant__ __align__(16) float c;", 2),
        ("/* a\nb */ __constant__ unsigned int c[2][3];", 3),
        ("__constant__ float c[2] = {1, 2};", None),
        ("__constant__ float other[9];", None),
    ],
)
def test_constant_memory_that_only_a_host_program_fills_is_found(declared: str, line: int | None) -> None:
    source = f"#define N 1\n{declared}\n__global__ void scale(const float* x, float* y, int n) {{\n"
    source += "  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] * (&c)[0];\n}\n"
    kernel = scale_job().kernel.model_dump(mode="json", exclude_unset=True)
    launch = {"grid": [1], "block": [64]}
    job = scale_job(
        kernel=kernel | {"source": source, "backend": "cuda", "launch": launch},
        parameters=[],
        workloads=[{"dimensions": {"n": 64}}],
    )
    found = [f for f in source_findings(job) if f.field == "kernel.source"]
    assert [(f.inner_line, f.is_error) for f in found] == ([] if line is None else [(line, False)])


@pytest.mark.parametrize(
    "text",
    ["__constant__ ", "__constant__ a ", "__constant__ x;\n", "__constant__ a[", "__constant__ __align__("],
)
def test_a_source_of_nothing_but_constants_is_read_in_a_moment(text: str) -> None:
    began = time.process_time()
    unfilled_constants(text * (200_000 // len(text)))
    unfilled_constants("__constant__ " + text.rsplit(maxsplit=1)[-1] + " a" * 100_000)
    assert time.process_time() - began < stretched(2.0)
