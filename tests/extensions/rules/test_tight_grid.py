"""Launches with more threads than have work: the grid that would do, and every reason not to take it."""

from pathlib import Path
from typing import Any

import pytest

from testbed.example_jobs import OpenClCase, run_opencl
from testbed.kernels.kernel_kinds import KINDS
from testbed.kernels.kernel_styles import STYLES, written
from tests.extensions.rules.test_declines import names, reason, report
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import LaunchSize, launch_size
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.extensions.rules.templater import make_template
from warpsmith.testing.jobs import DEVICE

HEAD = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
LEAVES = HEAD + "  if (i >= n) return;\n  y[i] = 2.0f * x[i];\n"
SIZES = {"rows": 4, "n": 1024}


def made(body: str, head: str = "", **launch: Any) -> TemplateReport:
    """The template of a launch whose grid is the global size, unless another one is given."""
    given = {"grid": ["n"]} | launch
    heads = {} if not head else {"head": head}
    return report(body, workload=SIZES, deny=("elements_per_thread", "index_packs"), **heads, **given)


def sizes(found: TemplateReport, workload: dict[str, int] | None = None, **chosen: int) -> LaunchSize:
    """The launch in numbers, with the other parameters at their defaults."""
    template = found.template
    kernel = template.configured({**template.space.defaults, **chosen})
    return launch_size(kernel, Workload(dimensions=workload or SIZES), DEVICE)


@pytest.mark.parametrize(
    "body",
    [
        LEAVES,
        HEAD + "  if (i < n) y[i] = x[i];\n",
        HEAD + "  if (i < n && x[i] > 0) { y[i] = x[i]; }\n  return;\n",
        HEAD
        + "  int m = n;\n  if (m <= i) return;\n  __syncthreads();\n  atomicAdd(&y[blockIdx.x], x[i]);\n",
    ],
)
def test_a_grid_given_as_the_global_size_may_have_the_blocks_that_have_work(body: str) -> None:
    found = made(body)
    assert reason(found, "tight_grid") == ""
    assert sizes(found).grid == (1024, 1, 1)
    assert sizes(found, WS_GRID=1).grid == (8, 1, 1)
    assert next(p for p in found.template.space.parameters if p.name == "WS_GRID").usual == 1


@pytest.mark.parametrize(
    ("grid", "n", "posted", "tight"),
    [
        ("ceil_div(18 * n, 5 * 128)", 1000, 29, 8),
        ("ceil_div(n, 32)", 1000, 32, 8),
        ("ceil_div(4 * n, 128)", 1000, 32, 8),
        ("ceil_div(4 * n, 128)", 1, 1, 1),
    ],
)
def test_a_host_program_that_launches_a_multiple(grid: str, n: int, posted: int, tight: int) -> None:
    found = made(LEAVES, grid=[grid])
    workload = {"rows": 4, "n": n}
    assert sizes(found, workload).grid[0] == posted
    assert sizes(found, workload, WS_GRID=1).grid[0] == tight
    assert sizes(found, workload, WS_GRID=1, WS_BLOCK=64).grid[0] == -(-n // 64)


@pytest.mark.parametrize("grid", ["ceil_div(n, 128)", "n // 128 + 1", "ceil_div(n, 128) + 1"])
def test_a_grid_that_rounds_up_is_as_its_author_means_it(grid: str) -> None:
    assert "all blocks of the launch have work" in reason(made(LEAVES, grid=[grid]), "tight_grid")


@pytest.mark.parametrize("threads", [32, 64, 256, 512])
def test_another_block_has_as_many_threads_if_the_grid_has_another_form(threads: int) -> None:
    found = made(LEAVES)
    assert "WS_BLOCK" in names(found)
    size = sizes(found, WS_BLOCK=threads)
    assert size.grid[0] * threads == 1024 * 128
    assert sizes(found, WS_BLOCK=threads, WS_GRID=1).grid[0] * threads == 1024


def test_blocks_that_leave_at_once_are_left_out_by_their_own_index() -> None:
    body = "  const int row = blockIdx.x;\n  if (row >= n) return;\n"
    body += "  for (int j = threadIdx.x; j < 64; j += blockDim.x) y[row * 64 + j] = x[row * 64 + j];\n"
    found = made(body, grid=["n * 128"])
    assert reason(found, "tight_grid") == ""
    assert sizes(found).grid[0] == 1024 * 128
    assert sizes(found, WS_GRID=1).grid[0] == 1024


def test_a_third_axis_that_the_kernel_never_reads_repeats_the_same_work() -> None:
    found = made(LEAVES, grid=["ceil_div(n, 128)", 1, 3], block=[128, 1, 4])
    assert reason(found, "tight_grid") == ""
    assert (sizes(found).grid[2], sizes(found).block[2]) == (3, 4)
    tight = sizes(found, WS_GRID=1)
    assert (tight.grid, tight.block) == ((8, 1, 1), (128, 1, 1))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (HEAD + "  if (i < n) atomicAdd(&y[i], x[i]);\n", "it calls atomicAdd"),
        (HEAD + "  if (i < n) y[i] += x[i];\n", "y is both read and written"),
        (
            HEAD
            + "  __shared__ float s[128];\n  if (i < n) { s[threadIdx.x] = x[i]; y[i] = s[threadIdx.x]; }\n",
            "share memory",
        ),
    ],
)
def test_repeated_work_that_is_no_repetition_is_left_as_it_is(body: str, why: str) -> None:
    assert why in reason(made(body, grid=["ceil_div(n, 128)"], block=[128, 1, 4]), "tight_grid")


@pytest.mark.parametrize(
    "body",
    [
        HEAD + "  y[0] = 1;\n  if (i >= n) return;\n  y[i] = x[i];\n",
        HEAD + "  if (i < n) y[i] = x[i]; else y[0] = 1;\n",
        HEAD + "  if (i < n) y[i] = x[i];\n  y[0] = 1;\n",
        HEAD + "  __syncthreads();\n  if (i < n) y[i] = x[i];\n",
        HEAD + "  atomicAdd(&y[0], 1.0f);\n  if (i < n) y[i] = x[i];\n",
        HEAD + '  asm volatile("st.global.f32 [%0], 0;" :: "l"(y));\n  if (i < n) y[i] = x[i];\n',
        HEAD + "  seen = 1;\n  if (i < n) y[i] = x[i];\n",
        HEAD + "  ++seen;\n  if (i < n) y[i] = x[i];\n",
        HEAD + "  if (i < n) y[i] = x[i];\n  seen += 1;\n",
        HEAD + "  for (int j = i; j < n; j += gridDim.x * blockDim.x) y[j] = x[j];\n",
        HEAD + "  if (i >= n) return;\n  y[i] = x[i] * gridDim.x;\n",
        HEAD + "  if (i >= n) return;\n  y[i] = x[i] * BLOCKS;\n",
        HEAD + "  if (i >= n) return;\n  y[i] = x[i] * blocks();\n",
        HEAD + "  if (i >= n) return;\n  dim3 g = gridDim;\n  y[i] = x[i] * g.x;\n",
        HEAD + "  if (i >= n) return;\n  y[i] = other(x[i]);\n",
        HEAD + "  if (i >= (int)x[0]) return;\n  y[i] = x[i];\n",
    ],
)
def test_a_check_that_is_not_the_whole_of_it_leaves_the_launch_as_it_is(body: str) -> None:
    head = "#define BLOCKS gridDim.x\n__device__ int seen;\n__device__ int blocks() { return gridDim.x; }\n"
    head += 'extern "C" __global__ void k(const float* x, float* y, int n) {\n'
    found = made(body, head)
    assert reason(found, "tight_grid")
    assert "WS_GRID" not in names(found)


@pytest.mark.parametrize(
    "body",
    [
        HEAD + "  if (i < n) y[i] = x[i] + threadIdx.z;\n",
        HEAD + "  if (i < n) y[i] = x[i] + Z;\n",
        HEAD + "  if (i < n) y[i] = x[i] + depth();\n",
        HEAD + "  uint3 t = threadIdx;\n  if (i < n) y[i] = x[i] + t.z;\n",
    ],
)
def test_an_axis_that_is_read_anywhere_is_kept(body: str) -> None:
    head = "#define Z threadIdx.z\n__device__ int depth() { return blockDim.z; }\n"
    head += 'extern "C" __global__ void k(const float* x, float* y, int n) {\n'
    found = made(body, head, grid=["ceil_div(n, 128)"], block=[128, 1, 4])
    assert "WS_GRID" not in names(found)


def test_blocks_that_wait_for_each_other_keep_their_number() -> None:
    assert "cluster, cooperative" in reason(made(LEAVES, cooperative=True), "tight_grid")


def test_the_grid_that_has_work_gives_the_same_results(tmp_path: Path) -> None:
    kind = next(k for k in KINDS if k.name == "a grid that is the global size, and a third axis")
    job = written(kind, STYLES[0], "as written", "opencl").job
    template = make_template(job).template
    cases = []
    for chosen in ({}, {"WS_GRID": 1}, {"WS_GRID": 1, "WS_BLOCK_X": 32, "WS_ITEMS": 4}):
        kernel = template.configured({**template.space.defaults, **chosen})
        cases += [OpenClCase(str(chosen), job, kernel, w) for w in job.workloads]
    assert run_opencl(cases, tmp_path) == []


@pytest.mark.parametrize(
    "head",
    [
        "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void k",
        "__attribute__((work_group_size_hint(64, 1, 1))) __kernel void k",
    ],
)
def test_an_attribute_is_no_call(head: str) -> None:
    kind = next(k for k in KINDS if k.name == "a grid that is the global size, and a third axis")
    job = written(kind, STYLES[0], "as written", "opencl").job
    source = job.kernel.text.replace(
        f"__kernel void {job.kernel.entry}", head.replace(" k", f" {job.kernel.entry}")
    )
    assert head.split("((")[1][:10] in source
    found = make_template(job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": source})}))
    assert not [d for d in found.declined if "definition is not in the source" in d.reason]
