"""Rules on HIP kernels: older names of coordinates, and warps of 32 or 64 threads."""

from typing import Any

import pytest

from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import Configuration
from warpsmith.extensions.rules.analysis.threads.warp_width import WARP
from warpsmith.extensions.rules.templater import make_template
from warpsmith.job_files.jobfile import parse_job

SCALE = """#include <hip/hip_runtime.h>
__global__ void f(const float* x, float* y, int n) {
  int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""
ROWS = """__global__ void f(const float* x, float* y, int n) {
  __shared__ float part[32];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
  for (int o = warpSize / 2; o > 0; o /= 2) sum += __shfl_down(sum, o);
  if (threadIdx.x % warpSize == 0) part[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (int w = 0; w < blockDim.x / warpSize; w++) all += part[w];
    y[blockIdx.x] = all;
  }
}
"""
WARPS = """__global__ void f(const float* x, float* y, int n) {
  int row = blockIdx.x * (blockDim.x / warpSize) + threadIdx.x / warpSize;
  if (row >= n) return;
  float sum = 0;
  for (int i = threadIdx.x % warpSize; i < n; i += warpSize) sum += x[row * n + i];
  for (int o = warpSize / 2; o > 0; o /= 2) sum += __shfl_down(sum, o);
  if (threadIdx.x % warpSize == 0) y[row] = sum;
}
"""


def job(source: str, grid: str, backend: Backend = Backend.HIP) -> Job:
    buffer: dict[str, Any] = {"dtype": "float32"}
    arguments = [
        buffer | {"name": "x", "role": "input", "shape": ["n", "n"]},
        buffer | {"name": "y", "role": "output", "shape": ["n"]},
        {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
    ]
    launch = {"grid": [grid], "block": [256]}
    fields = {"backend": backend, "source": source, "entry": "f", "arguments": arguments, "launch": launch}
    return parse_job({"name": "hip", "kernel": fields, "workloads": [{"dimensions": {"n": 1024}}]})


def test_older_names_of_coordinates_are_coordinates() -> None:
    made = make_template(job(SCALE, "ceil_div(n, 256)")).template
    assert {"WS_BLOCK", "WS_ITEMS"} <= {p.name for p in made.space.parameters}
    assert "hipThreadIdx_x" not in made.kernel.text


@pytest.mark.parametrize(("width", "sizes"), [(32, [32, 64, 96, 256]), (64, [64, 256])])
def test_a_block_holds_whole_warps_of_the_device(width: int, sizes: list[int]) -> None:
    space = make_template(job(ROWS, "n")).template.space
    device = {"device.warp_size": width, "device.max_threads_per_block": 1024}
    device |= {"device.max_threads_per_multiprocessor": 2048}

    def fits(block: int) -> bool:
        values: Configuration = {**space.defaults, "WS_BLOCK": block}
        return all(c.expression.evaluate({**device, **values}) for c in space.constraints)

    assert [n for n in (16, 32, 64, 96, 256) if fits(n)] == sizes


def test_a_grid_that_counts_warps_stays_where_their_width_is_the_device_s() -> None:
    """`ceil_div(n, 8)` is right for warps of 32 alone, and so would be any that follows from it."""
    of_hip = make_template(job(WARPS, "ceil_div(n, 8)"))
    of_cuda = make_template(
        job(WARPS.replace("__shfl_down(", "__shfl_down_sync(~0u, "), "ceil_div(n, 8)", Backend.CUDA)
    )
    assert "WS_BLOCK" in {p.name for p in of_cuda.template.space.parameters}
    assert "WS_BLOCK" not in {p.name for p in of_hip.template.space.parameters}
    (why,) = [d.reason for d in of_hip.declined if d.rule == "block_size"]
    assert "width is the device's" in why


def test_a_last_lane_of_32_fixes_the_block_of_hip_alone() -> None:
    text = ROWS.replace("threadIdx.x % warpSize == 0", f"threadIdx.x % warpSize == {WARP - 1}")
    cuda = text.replace("__shfl_down(", "__shfl_down_sync(~0u, ")
    names = [
        {p.name for p in make_template(j).template.space.parameters}
        for j in (job(text, "n"), job(cuda, "n", Backend.CUDA))
    ]
    assert ["WS_BLOCK" in found for found in names] == [False, True]
