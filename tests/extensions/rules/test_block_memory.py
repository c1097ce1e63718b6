"""Blocks of other sizes: shared memory that fits them or grows with them, and grids that follow them."""

from pathlib import Path
from typing import Any

import pytest

from tests.extensions.rules.test_production_style import (
    WARP_SUM,
    check,
    job_of,
    names,
    reason,
    report,
)
from warpsmith.extensions.rules.templater import make_template

HEAD = 'extern "C" __global__ void k(const float* x, float* y, int n, int rows) {\n'
SUM = "  float s = 0.0f;\n  for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[blockIdx.x * n + i];\n"
SCALE = """
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = x[blockIdx.x * n + i] * s;
}
"""
WARPS = (
    WARP_SUM
    + """
#define LANES 32
__device__ float block_sum(float v, float* cells) {
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  v = warp_sum(v);
  if (lane == 0) cells[warp] = v;
  __syncthreads();
  v = lane < blockDim.x / LANES ? cells[lane] : 0.0f;
  return warp_sum(v);
}
"""
)
EIGHT_CELLS = WARPS + HEAD + "  __shared__ float cells[8];\n" + SUM + "  s = block_sum(s, cells);\n" + SCALE
IN_A_CALLEE = (
    WARPS.replace("float v, float* cells", "float v").replace(
        "const int warp", "static __shared__ float cells[LANES];\n  const int warp"
    )
    + HEAD
    + SUM
    + "  s = block_sum(s);\n"
    + "  __shared__ float scale;\n  if (threadIdx.x == 0) scale = 1.0f / (1.0f + fabsf(s));\n"
    + "  __syncthreads();\n  s = scale;\n"
    + SCALE
)
DYNAMIC = (
    WARP_SUM
    + HEAD
    + SUM
    + """
  extern __shared__ float cells[];
  s = warp_sum(s);
  if (threadIdx.x % 32 == 0) cells[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0.0f;
  for (int w = 0; w < blockDim.x / 32; ++w) s += cells[w];
"""
    + SCALE
)
WARPS_ALONG_Y = (
    WARP_SUM
    + HEAD
    + """
  const int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
  const int thread = lane + warp * 32, threads = warps * 32;
  const int rounds = (n + threads - 1) / threads;
  extern __shared__ float cells[];
  float s = 0.0f;
  for (int i = 0; i < rounds; i++)
    if (i * threads + thread < n) s += x[blockIdx.x * n + i * threads + thread];
  s = warp_sum(s);
  cells[warp] = s;
  __syncthreads();
  if (warp == 0) {
    s = warp_sum(lane < warps ? cells[lane] : 0.0f);
    cells[0] = s;
  }
  __syncthreads();
  s = cells[0];
  for (int i = 0; i < rounds; i++)
    if (i * threads + thread < n) y[blockIdx.x * n + i * threads + thread] = s;
}
"""
)
ROW_ALONG_Y = (
    HEAD
    + """
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row < rows)
    for (int i = threadIdx.x; i < n; i += 16) y[row * n + i] = 2.0f * x[row * n + i];
}
"""
)
ROWS_IN_TURN = (
    WARP_SUM
    + HEAD
    + """
  const int warps = blockDim.y, workers = gridDim.x * warps;
  const int worker = blockIdx.x * warps + threadIdx.y;
  for (int row = worker; row < rows; row += workers) {
    float s = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) s += x[row * n + i];
    s = warp_sum(s);
    for (int i = threadIdx.x; i < n; i += 32) y[row * n + i] = x[row * n + i] + s;
  }
}
"""
)
BY_WARPS: dict[str, Any] = {"block": [32, "ceil_div(n, 64)"], "shared_bytes": "ceil_div(n, 64) * 4"}


@pytest.mark.parametrize(
    ("source", "launch", "parameter"),
    [
        (EIGHT_CELLS, {}, "WS_BLOCK"),
        (IN_A_CALLEE, {}, "WS_BLOCK"),
        (DYNAMIC, {"shared_bytes": 16}, "WS_BLOCK"),
        (WARPS_ALONG_Y, BY_WARPS, "WS_BLOCK_Y"),
        (ROW_ALONG_Y, {"grid": ["ceil_div(rows, 4)"], "block": [16, 4]}, "WS_BLOCK_Y"),
        (ROWS_IN_TURN, {"grid": ["min(rows, 5)"], "block": [32, 4]}, "WS_BLOCK_Y"),
    ],
    ids=["eight cells", "in a callee", "dynamic", "warps along y", "a row along y", "rows in turn"],
)
def test_every_block_computes_what_the_kernel_does(
    source: str, launch: dict[str, Any], parameter: str, tmp_path: Path
) -> None:
    job = job_of(source, **launch)
    found = make_template(job)
    assert parameter in names(found)
    assert check(found, job, tmp_path) > 3


def test_a_small_array_limits_the_block() -> None:
    space = report(EIGHT_CELLS).template.space
    limit = next(c.expression for c in space.constraints if "256" in c.expression.text)
    device = {"device.max_threads_per_block": 1024, **space.defaults}
    assert [n for n in (128, 256, 512) if limit.evaluate(device | {"WS_BLOCK": n})] == [128, 256]


@pytest.mark.parametrize(
    ("source", "launch", "values", "size"),
    [
        (DYNAMIC, {"shared_bytes": 16}, {"WS_BLOCK": 1024}, 128),
        (DYNAMIC, {"shared_bytes": 16}, {"WS_BLOCK": 32}, 16),
        (WARPS_ALONG_Y, BY_WARPS, {"WS_BLOCK_Y": 32}, 128),
        (WARPS_ALONG_Y, BY_WARPS, {"WS_BLOCK_Y": 0}, 8),
        (WARPS_ALONG_Y, BY_WARPS | {"shared_bytes": 32}, {"WS_BLOCK_Y": 16}, 256),
    ],
)
def test_dynamic_shared_memory_grows_with_the_block(
    source: str, launch: dict[str, Any], values: dict[str, int], size: int
) -> None:
    template = report(source, **launch).template
    assert template.kernel.launch.shared_bytes.evaluate({"n": 96, "rows": 12, **values}) == size
    assert any("max_shared_per_block" in c.expression.text for c in template.space.constraints)


def test_an_extent_that_is_not_read_stays() -> None:
    launch = report(ROW_ALONG_Y, grid=["ceil_div(rows, 4)"], block=[16, 4]).template.kernel.launch
    assert [e.text for e in launch.block] == ["16", "WS_BLOCK_Y"]
    assert "ceil_div(rows, WS_BLOCK_Y)" in launch.grid[0].text


@pytest.mark.parametrize(
    ("source", "launch", "why"),
    [
        (EIGHT_CELLS.replace("lane < blockDim.x / LANES", "lane < 4"), {}, "a fixed number of warps"),
        (
            DYNAMIC.replace("extern __shared__ float cells[]", "__shared__ float cells[4]").replace(
                "w < blockDim.x / 32", "w < 4"
            ),
            {},
            "a loop with a fixed number of iterations",
        ),
        (EIGHT_CELLS.replace("cells[warp] = v", "cells[threadIdx.x] = v"), {}, "not indexed by warp"),
        (EIGHT_CELLS.replace("block_sum(s, cells)", "unknown_sum(s, cells)"), {}, "is not clear"),
        (EIGHT_CELLS.replace("cells[8]", "cells[sizeof(float)]"), {}, "how many elements"),
        (
            DYNAMIC.replace("cells[threadIdx.x / 32] = s", "cells[threadIdx.x * threadIdx.x] = s"),
            {"shared_bytes": 65536},
            "outgrows the block",
        ),
        (
            ROW_ALONG_Y.replace("if (row", "y[blockIdx.x] = 0; if (row"),
            {"grid": ["ceil_div(rows, 4)"], "block": [16, 4]},
            "`blockIdx.x` is used by itself",
        ),
        (
            ROWS_IN_TURN.replace("row += workers", "row += gridDim.x * 4"),
            {"grid": ["min(rows, 5)"], "block": [32, 4]},
            "cannot follow the block",
        ),
    ],
)
def test_the_block_stays_if_shared_memory_or_the_grid_would_not_fit(
    source: str, launch: dict[str, Any], why: str
) -> None:
    assert why in reason(report(source, **launch), "block_size")


def test_threads_that_exchange_values_stay_as_wide_as_they_are() -> None:
    source = WARPS_ALONG_Y.replace("warps * 32;", "warps * blockDim.x;")
    assert "WS_BLOCK_X" not in names(report(source, **BY_WARPS))


REDUCTION = (
    "#include <cub/cub.cuh>\n"
    + HEAD
    + SUM
    + """
  using Reduction = cub::BlockReduce<float, 512>;
  __shared__ typename Reduction::TempStorage store;
  __shared__ float total;
  s = Reduction(store).Sum(s, blockDim.x);
  if (threadIdx.x == 0) total = s;
  __syncthreads();
  s = total;
"""
    + SCALE
)


def test_storage_of_a_reduction_limits_the_block() -> None:
    space = report(REDUCTION).template.space
    assert any("WS_BLOCK <= 512" in c.expression.text for c in space.constraints)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Sum(s, blockDim.x)", "Sum(s)", "is not told how many threads"),
        ("cub::BlockReduce<float, 512>", "cub::BlockReduce<float, sizeof(s)>", "for how many threads"),
        ("typename Reduction::TempStorage", "cg_state", "how large shared object"),
    ],
)
def test_storage_of_an_unclear_size_keeps_the_block(old: str, new: str, why: str) -> None:
    assert why in reason(report(REDUCTION.replace(old, new)), "block_size")
