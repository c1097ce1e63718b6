"""Launches with more threads than have work: the launch that would do, and reasons to leave one as it is."""

from typing import Any

import pytest

from testbed.kernels.kernel_kinds import KINDS
from testbed.kernels.kernel_styles import STYLES, written
from tests.extensions.rules.test_declines import HEAD as DECLARED
from tests.extensions.rules.test_declines import names, over_rows, report
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import LaunchSize, evaluated_launch, launch_size
from warpsmith.extensions.rules.analysis.launch.working_threads import enough, needs, too_much
from warpsmith.extensions.rules.templater import first_draft, make_template
from warpsmith.testing.jobs import DEVICE

HEAD = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
LEAVES = HEAD + "  if (i >= n) return;\n  y[i] = 2.0f * x[i];\n"
SIZES = {"rows": 4, "n": 1024}


def tight(
    body: str, head: str = DECLARED, workload: dict[str, int] | None = None, **launch: Any
) -> LaunchSize | str:
    """The launch that would do where the grid is the global size, unless another one is given; the reason if
    there is none."""
    given = {"grid": ["n"]} | launch
    job = over_rows(body, head, workload or SIZES, **given)
    draft = first_draft(job)
    found = needs(draft)
    if isinstance(found, str):
        return found
    much = too_much(draft, found, job.workloads, {})
    if much is None:
        return "all blocks have work"
    would_do = enough(draft.kernel.launch, found, much[1].idle_axes)
    return evaluated_launch(would_do, job.workloads[0].scope())


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
def test_of_a_grid_given_as_the_global_size_few_blocks_have_work(body: str) -> None:
    found = tight(body)
    assert isinstance(found, LaunchSize)
    assert found.grid == (8, 1, 1)


@pytest.mark.parametrize(
    ("grid", "n", "blocks"),
    [
        ("ceil_div(18 * n, 5 * 128)", 1000, 8),
        ("ceil_div(n, 32)", 1000, 8),
        ("ceil_div(4 * n, 128)", 1000, 8),
    ],
)
def test_a_host_program_that_launches_a_multiple(grid: str, n: int, blocks: int) -> None:
    found = tight(LEAVES, workload={"rows": 4, "n": n}, grid=[grid])
    assert isinstance(found, LaunchSize)
    assert found.grid[0] == blocks


@pytest.mark.parametrize("grid", ["ceil_div(n, 128)", "n // 128 + 1", "ceil_div(n, 128) + 1"])
def test_a_grid_that_rounds_up_is_as_its_author_means_it(grid: str) -> None:
    assert tight(LEAVES, grid=[grid]) == "all blocks have work"


@pytest.mark.parametrize("threads", [32, 64, 256, 512])
def test_another_block_has_as_many_threads_if_the_grid_has_another_form(threads: int) -> None:
    found = report(LEAVES, workload=SIZES, deny=("elements_per_thread", "index_packs"), grid=["n"])
    assert "WS_BLOCK" in names(found)
    kernel = found.template.configured({**found.template.space.defaults, "WS_BLOCK": threads})
    size = launch_size(kernel, Workload(dimensions=SIZES), DEVICE)
    assert size.grid[0] * threads == 1024 * 128


def test_blocks_that_leave_at_once_have_no_work_by_their_own_index() -> None:
    body = "  const int row = blockIdx.x;\n  if (row >= n) return;\n"
    body += "  for (int j = threadIdx.x; j < 64; j += blockDim.x) y[row * 64 + j] = x[row * 64 + j];\n"
    found = tight(body, grid=["n * 128"])
    assert isinstance(found, LaunchSize)
    assert found.grid[0] == 1024


def test_a_third_axis_that_the_kernel_never_reads_repeats_the_same_work() -> None:
    found = tight(LEAVES, grid=["ceil_div(n, 128)", 1, 3], block=[128, 1, 4])
    assert isinstance(found, LaunchSize)
    assert (found.grid, found.block) == ((8, 1, 1), (128, 1, 1))


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
    assert isinstance(tight(body, head), str)


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
    assert isinstance(tight(body, head, grid=["ceil_div(n, 128)"], block=[128, 1, 4]), str)


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
