"""Loops by rounds over packs of a class: their loads are kept in registers, or there is a reason why not."""

from pathlib import Path

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

NORM = (
    WARP_SUM
    + """
template <typename T, int N> struct pack_t {
  T lane[N];
  __device__ void fill(float v) { for (int j = 0; j < N; ++j) lane[j] = v; }
  __device__ void load(const T* p) { for (int j = 0; j < N; ++j) lane[j] = p[j]; }
  __device__ void store(T* p) const { for (int j = 0; j < N; ++j) p[j] = lane[j]; }
  __device__ T& operator[](int j) { return lane[j]; }
};
template <int N, typename T>
__global__ void k(T* x, T* y, int n, int rows) {
  const int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
  const int thread = lane + warp * 32, threads = warps * 32;
  const int rounds = (n + N * threads - 1) / (N * threads);
  extern __shared__ float cells[];
  float s = 0.0f;
  for (int i = 0; i < rounds; i++) {
    pack_t<T, N> in;
    in.fill(0.0f);
    if ((i * threads + thread) * N < n) {
      in.load(x + blockIdx.x * n + i * threads * N + thread * N);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) s += in[j] * in[j];
  }
  s = warp_sum(s);
  cells[warp] = s;
  __syncthreads();
  s = 0.0f;
  for (int w = 0; w < warps; ++w) s += cells[w];
#pragma unroll 1
  for (int r = 0; r < rounds; r++) {
    pack_t<T, N> again, out;
    again.fill(0.0f);
    if ((r * threads + thread) * N < n) {
      again.load(x + blockIdx.x * n + r * threads * N + thread * N);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) out[j] = again[j] / (1.0f + s);
    if ((r * threads + thread) * N < n) out.store(y + blockIdx.x * n + r * threads * N + thread * N);
  }
}
"""
)
LAUNCH = {"block": [32, "ceil_div(n, 128)"], "shared_bytes": "ceil_div(n, 128) * 4"}


@pytest.mark.parametrize("lanes", [2, 1])
def test_what_a_round_loads_is_kept(lanes: int, tmp_path: Path) -> None:
    job = job_of(NORM, f"k<{lanes}, float>", **LAUNCH)
    found = make_template(job)
    assert names(found) >= {"WS_BLOCK_Y", "WS_KEEP"}
    text = found.template.kernel.text
    assert "again = ws_round_object_0[ws_round];" in text
    assert check(found, job, tmp_path) > 6


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("again.load(x + blockIdx.x * n + r", "again.load(x + blockIdx.x * n + 1 + r"),
        ("again.fill(0.0f)", "again.fill(1.0f)"),
        ("pack_t<T, N> again, out;", "pack_t<T, N> out; pack_t<float, N> again;"),
        ("    if ((r * threads + thread) * N < n) {", "    if ((r * threads + thread) * N <= n) {"),
        ("    if ((r * threads + thread) * N < n) {", "    {"),
        ("s = warp_sum(s);", "s = warp_sum(s); x[0] += 0;"),
        ("s = warp_sum(s);", "s = warp_sum(s); n -= 0;"),
        ("s = warp_sum(s);", 's = warp_sum(s); asm volatile("griddepcontrol.wait;");'),
        ("r < rounds; r++", "r < rounds + 0; r++"),
        ("r < rounds; r++", "r < rounds; r += 2"),
        ("int r = 0;", "int r = 1;"),
        ("T* x, T* y", "volatile T* x, T* y"),
    ],
)
def test_a_load_that_may_give_something_else_is_made_again(old: str, new: str) -> None:
    assert old in NORM
    found = report(NORM.replace(old, new), "k<2, float>", **LAUNCH)
    assert "WS_KEEP" not in names(found)
    assert "no two loops" in reason(found, "row_in_registers")


def test_loops_by_rounds_that_load_other_things_are_named() -> None:
    source = NORM.replace("again.fill(0.0f)", "again.fill(1.0f)")
    said = reason(report(source, "k<2, float>", **LAUNCH), "row_in_registers")
    assert said.endswith("; no two loops by rounds load the same objects")


def test_a_round_that_may_end_early_is_not_kept() -> None:
    source = NORM.replace("again.fill(0.0f);", "again.fill(0.0f);\n    if (s < 0) break;")
    assert "may end early" in reason(report(source, "k<2, float>", **LAUNCH), "row_in_registers")
