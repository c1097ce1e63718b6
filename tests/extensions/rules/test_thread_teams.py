"""Loops that a warp or the whole grid shares: packs and kept rows, and what stays with its thread."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda_on_cpu import results
from tests.extensions.rules.test_production_style import job_of, reason, report
from tests.nvrtc_compile import compile_cuda, include_dir
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.extensions.rules.templater import make_template

GRID = """
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (long long i = first; i < n * rows; i += gridDim.x * blockDim.x)
    y[i] = 2.0f * x[i] + 1.0f;
}
"""
LANES = """
template <typename T, int WARPS> __global__ void k(const T* x, T* y, int n, int rows) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long row = (long long)blockIdx.y * WARPS + warp;
  if (row >= rows) return;
  for (long long d = (long long)blockIdx.x * 32 + lane; d < n; d += (long long)gridDim.x * 32) {
    T sum = T(0);
    for (int j = 0; j < 3; ++j) sum += x[row * n + d] * T(j);
    y[row * n + d] = sum;
  }
}
"""
WARP = """
#define LANES 32
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n, int rows) {
  const int warp = threadIdx.x / LANES;
  const int lane = threadIdx.x & (LANES - 1);
  const int row = blockIdx.x * 2 + warp;
  if (row >= rows) return;
  const float* p = x + row * n;
  float most = -1e30f;
  for (int i = lane; i < n; i += LANES) most = fmaxf(most, p[i]);
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
  for (int i = lane; i < n; i += LANES) y[row * n + i] = p[i] - most;
}
"""
GROUPS = """
namespace cg {
struct thread_block {
  __device__ int thread_rank() const { return threadIdx.x; }
  __device__ int size() const { return blockDim.x; }
};
template <int N> struct thread_block_tile {
  __device__ int thread_rank() const { return threadIdx.x % N; }
  __device__ int size() const { return N; }
};
__device__ thread_block this_thread_block() { return thread_block(); }
template <int N> __device__ thread_block_tile<N> tiled_partition(thread_block) {
  return thread_block_tile<N>();
}
}
"""
TILE = """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n, int rows) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int row = blockIdx.x * 2 + threadIdx.x / 32;
  if (row >= rows) return;
  const float* p = x + row * n;
  float most = -1e30f;
  for (int i = warp.thread_rank(); i < n; i += warp.size()) most = fmaxf(most, p[i]);
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
  for (int i = warp.thread_rank(); i < n; i += warp.size()) y[row * n + i] = p[i] - most;
}
"""
GROUP = """
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  const auto block = cg::this_thread_block();
  for (int i = block.thread_rank(); i < n; i += block.size()) y[blockIdx.x * n + i] = 2.0f * x[i];
}
"""
CASES: list[tuple[str, str, dict[str, Any], list[dict[str, int]]]] = [
    (GRID, "k", {"grid": [3], "block": [32]}, [{"WS_VEC": v} for v in (1, 2, 4)]),
    (
        LANES,
        "k<float, 4>",
        {"grid": ["ceil_div(n, 32)", "ceil_div(rows, 4)"], "block": [128]},
        [{"WS_VEC": v, "WS_ITEMS": t} for v in (1, 4) for t in (1, 2)],
    ),
    (
        WARP,
        "k",
        {"grid": ["ceil_div(rows, 2)"], "block": [64]},
        [
            {"WS_VEC": 4},
            {"WS_KEEP": 1, "WS_KEEP_PACK": 1},
            {"WS_KEEP": 2, "WS_KEEP_PACK": 4},
            {"WS_KEEP": 8, "WS_KEEP_PACK": 2},
        ],
    ),
    (
        GROUPS + TILE,
        "k",
        {"grid": ["ceil_div(rows, 2)"], "block": [64]},
        [{"WS_VEC": 4}, {"WS_KEEP": 2, "WS_KEEP_PACK": 4}],
    ),
    (GROUPS + GROUP, "k", {"grid": ["rows"], "block": [64]}, [{"WS_VEC": v} for v in (2, 4)]),
]


def defaults_of(found: TemplateReport) -> dict[str, int]:
    """Every parameter as the user has it."""
    return {p.name: int(p.baseline_value) for p in found.template.space.parameters}


@pytest.mark.parametrize(("source", "entry", "launch", "chosen"), CASES)
def test_their_iterations_are_taken_as_packs(
    source: str, entry: str, launch: dict[str, Any], chosen: list[dict[str, int]]
) -> None:
    found = report(source, entry, **launch)
    defaults = defaults_of(found)
    for values in chosen:
        assert set(values) <= set(defaults), found.declined
        configured = found.template.configured(defaults | values)
        assert compile_cuda(configured.source, configured.kernel.entry) == ""


@pytest.mark.parametrize(("source", "entry", "launch", "chosen"), CASES)
@pytest.mark.parametrize(("rows", "n"), [(1, 1), (3, 31), (5, 64), (2, 130), (7, 260)])
def test_every_element_is_computed_once(
    tmp_path: Path,
    source: str,
    entry: str,
    launch: dict[str, Any],
    chosen: list[dict[str, int]],
    rows: int,
    n: int,
) -> None:
    fields = job_of(source, entry, **launch).model_dump(mode="json")
    fields["workloads"] = [{"dimensions": {"rows": rows, "n": n}}]
    job = type(job_of(source)).model_validate(fields)
    made = make_template(job)
    defaults = defaults_of(made)
    found = results(job, [(made.template, defaults | v) for v in ({}, *chosen)], tmp_path)
    for one in found[1:]:
        np.testing.assert_array_equal(one["y"], found[0]["y"])


OWN = """
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  const int lane = threadIdx.x %% 32, warp = threadIdx.x / 32, block = blockIdx.x;
  const float mine = x[%s];
  for (int i = %s; i < n; i += %s) y[%s + i] = x[i] * mine;
}
"""
BLOCK_LOOP = ("threadIdx.x", "blockDim.x", "blockIdx.x * n")
WARP_LOOP = ("lane", "32", "(block * 4 + warp) * n")
GRID_LOOP = ("blockIdx.x * blockDim.x + threadIdx.x", "gridDim.x * blockDim.x", "0")


@pytest.mark.parametrize(
    ("own", "loop", "packs"),
    [
        ("threadIdx.x", BLOCK_LOOP, False),
        ("lane", BLOCK_LOOP, False),
        ("warp", BLOCK_LOOP, False),
        ("block", BLOCK_LOOP, True),
        ("threadIdx.y", BLOCK_LOOP, True),
        ("lane", WARP_LOOP, False),
        ("warp", WARP_LOOP, True),
        ("threadIdx.x / 64", WARP_LOOP, True),
        ("threadIdx.x / 16", WARP_LOOP, False),
        ("threadIdx.x >> 5", WARP_LOOP, True),
        ("block", GRID_LOOP, False),
        ("warp", GRID_LOOP, False),
        ("rows", GRID_LOOP, True),
    ],
)
def test_an_iteration_stays_with_its_thread_if_it_uses_what_only_that_thread_has(
    own: str, loop: tuple[str, str, str], packs: bool
) -> None:
    found = report(OWN % (own, *loop))
    assert ("WS_VEC" in defaults_of(found)) == packs, found.declined
    if not packs:
        assert "an iteration uses mine, of which every thread has another" in reason(found, "vector_width")


@pytest.mark.parametrize("source", [TILE, GROUP])
def test_cooperative_groups_of_the_toolkit_compile_in_packs(source: str) -> None:
    head = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
    found = report(head + source, grid=["ceil_div(rows, 2)"] if source is TILE else ["rows"], block=[64])
    configured = found.template.configured(defaults_of(found) | {"WS_VEC": 4})
    options = (f"-I{include_dir() / 'cccl'}",)
    assert compile_cuda(configured.source, configured.kernel.entry, options) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tile<32>", "tile<16>"),
        ("i < n; i += warp.size()) y", "i < n; i += block.size()) y"),
        ("p[i] - most", "p[i] - warp.thread_rank()"),
    ],
)
def test_other_groups_are_no_warp(old: str, new: str) -> None:
    source = TILE.replace(old, new).replace(
        "partition<32>", "partition<16>" if "16" in new else "partition<32>"
    )
    assert source != TILE
    found = report(GROUPS + source, grid=["ceil_div(rows, 2)"], block=[64])
    assert "WS_KEEP" not in defaults_of(found) or "rank()" in new
    values = {p.name: p.values for p in found.template.space.parameters}
    assert values.get("WS_KEEP_PACK", (1,)) == (1,)


@pytest.mark.parametrize(
    ("start", "step"),
    [
        ("threadIdx.x % 32", "64"),
        ("threadIdx.x % 16", "32"),
        ("threadIdx.x & 32", "32"),
        ("blockIdx.x * 32 + threadIdx.x % 32", "gridDim.y * 32"),
        ("blockIdx.x * 64 + threadIdx.x % 32", "gridDim.x * 64"),
        ("threadIdx.x", "blockDim.y"),
    ],
)
def test_other_starts_and_steps_are_no_team(start: str, step: str) -> None:
    found = report(OWN % ("rows", start, step, "0"))
    assert reason(found, "vector_width").startswith("no loop of the form")
