"""A launch with more threads than have work is said, with its field and the extent that would do."""

import re

import pytest

from testbed.fakes import fake_ports
from tests.extensions.scaffold.test_job_checks import N, X, Y, job_of
from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.scaffold.source_checks.idle_threads import idle_threads
from warpsmith.job_checks.all_findings import known_findings
from warpsmith.settings import Settings
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession

CHECKED = (
    "__kernel void add(__global const float *x, __global float *y, const int n) "
    "{ int i = get_global_id(0); if (i >= n) return; y[i] = 2.0f * x[i]; }"
)
CUDA = (
    'extern "C" __global__ void add(const float *x, float *y, int n) '
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2.0f * x[i]; }"
)
COUNTS = CHECKED.replace("y[i] = 2.0f * x[i];", "atomic_inc((volatile __global int *)y);")


def launched(source: str, grid: list[str], block: list[int | str], backend: str = "opencl") -> Job:
    return job_of(source, backend=backend, launch={"grid": grid, "block": block})


def said(job: Job) -> dict[str, str]:
    return {f.field: f.message for f in idle_threads(job, {})}


@pytest.mark.parametrize(("source", "backend"), [(CHECKED, "opencl"), (CUDA, "cuda")])
@pytest.mark.parametrize("grid", ["n", "4 * ceil_div(n, 64)"])
def test_a_grid_of_idle_blocks_is_said_with_the_grid_that_would_do(
    source: str, backend: str, grid: str
) -> None:
    job = launched(source, [grid], [64], backend)
    threads = {"n": 64000, "4 * ceil_div(n, 64)": 4096}[grid]
    words = f"of {threads} threads 1000 have work (n=1000); the grid ceil_div(n, 64) along x would do"
    assert said(job) == {"kernel.launch.grid.0": words}
    (found,) = [f for f in known_findings(job, Settings(_env_file=None)) if f.message == words]
    assert not found.is_error


@pytest.mark.parametrize(("source", "backend"), [(CHECKED, "opencl"), (CUDA, "cuda")])
def test_an_axis_that_the_kernel_never_asks_for_is_said(source: str, backend: str) -> None:
    found = said(launched(source, ["ceil_div(n, 64)", "1", "3"], [64, 1, 4], backend))
    assert list(found) == ["kernel.launch.grid.2", "kernel.launch.block.2"]
    for words in found.values():
        assert "of 12288 threads 1000 have work" in words
        assert "never asks for its place along z, so that all threads along it do the same" in words
        assert re.search(r"the (grid|block) 1 along z would do", words)


@pytest.mark.parametrize(
    "body",
    ["y[i] += x[i];", "__local float t[64]; t[i % 64] = x[i]; y[i] = t[i % 64];"],
)
def test_an_axis_is_said_where_the_rule_cannot_prove_that_once_is_enough(body: str) -> None:
    job = launched(CHECKED.replace("y[i] = 2.0f * x[i];", body), ["ceil_div(n, 64)"], [64, 1, 4])
    assert list(said(job)) == ["kernel.launch.block.2"]


@pytest.mark.parametrize(
    ("source", "grid", "block"),
    [
        (CHECKED, ["ceil_div(n, 64)"], [64]),
        (CHECKED, ["n // 64 + 1"], [64]),
        (CHECKED.replace("if (i >= n) return;", ""), ["n"], [64]),
        (CHECKED.replace("i >= n", "i >= get_global_size(0) / 2"), ["n"], [64]),
        (COUNTS, ["ceil_div(n, 64)"], [64, 1, 4]),
        (CHECKED.replace("add(", "other("), ["n"], [64]),
        (CHECKED, ["n"], ["64" + 13 * " + 9000000000000000 - 9000000000000000"]),
    ],
    ids=["right", "rounds up", "no check", "asks for the size", "counts its runs", "not found", "too long"],
)
def test_nothing_is_said_of_a_launch_that_is_meant_or_unclear(
    source: str, grid: list[str], block: list[int | str]
) -> None:
    assert said(launched(source, grid, block)) == {}


def test_a_launch_of_a_sequence_is_named() -> None:
    steps = [
        {"entry": "add", "arguments": ["x", "y", "n"], "launch": {"grid": [grid], "block": [64]}}
        for grid in ("ceil_div(n, 64)", "n")
    ]
    kernel = {"backend": "opencl", "source": CHECKED, "arguments": [X, Y, N], "launches": steps}
    job = scale_job(kernel=kernel, workloads=[{"dimensions": {"n": 1000}}], parameters=[])
    assert list(said(job)) == ["kernel.launches.1.launch.grid.0"]


def test_a_baseline_notes_idle_threads() -> None:
    def notes(grid: str) -> str:
        ports, _ = fake_ports(lambda configuration, workload: 100.0)
        launch = {"grid": [grid], "block": ["BLOCK"]}
        kernel = launched(CHECKED, ["n"], [64]).kernel.model_dump(mode="json") | {"launch": launch}
        session = DeviceSession(scale_job(kernel=kernel, workloads=[{"dimensions": {"n": 1000}}]), ports)
        found = measure_baseline(session)
        session.close()
        assert found.refused == ""
        return "\n".join(found.notes)

    assert "of 64000 threads 1000 have work" in notes("n")
    assert "have work" not in notes("ceil_div(n, BLOCK)")
