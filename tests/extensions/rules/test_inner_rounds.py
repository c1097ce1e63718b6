"""Loads in a short loop inside an iteration become wide: right on the CPU, or left as they are."""

import re
from pathlib import Path

import pytest

from tests.cuda_on_cpu import results
from tests.extensions.rules.test_production_style import check, job_of, report
from warpsmith.extensions.rules.templater import make_template

ROW = """
template <int TOPK> __global__ void k(const float* x, float* y, int n, int rows) {
  const int row = blockIdx.x;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < TOPK; ++e) sum += x[((row + e) % rows) * n + i];
    y[row * n + i] = sum;
  }
}
"""
GRID = """
template <int TOPK> __global__ void k(const float* __restrict__ x, float* y, int n, int rows) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.y;
  for (int64_t d = (int64_t)blockIdx.x * 32 + lane; d < n; d += (int64_t)gridDim.x * 32) {
    float sum = 0.0f;
    const int64_t base = (int64_t)row % (rows - TOPK) * n + d;
    for (int e = 1; e < TOPK; ++e) {
      const float v = __ldg(&x[base + (int64_t)e * n]);
      sum += v * e;
    }
    y[row * n + d] = sum;
  }
}
"""


@pytest.mark.parametrize(
    ("source", "grid", "block", "packs"),
    [
        (ROW, ["rows"], [64], "ws_pack_0[3]"),
        (GRID, ["ceil_div(n, 32)", "rows"], [32], "ws_pack_0[2]"),
    ],
    ids=["row", "grid"],
)
def test_what_short_loops_read_is_loaded_together(
    source: str, grid: list[str], block: list[int], packs: str, tmp_path: Path
) -> None:
    job = job_of(source, "k<3>", grid=grid, block=block)
    found = make_template(job)
    assert packs in found.template.kernel.text
    assert check(found, job, tmp_path) > 5


def test_a_row_that_is_not_aligned_is_read_element_by_element(tmp_path: Path) -> None:
    job = job_of(ROW.replace("* n + i];\n    y", "* (n - 1) + i];\n    y"), "k<3>", block=[64])
    found = make_template(job)
    assert "ws_pack_0[3]" in found.template.kernel.text
    defaults = {name: int(value) for name, value in found.template.space.defaults.items()}
    one, packed = results(job, [(found.template, defaults | {"WS_VEC": v}) for v in (1, 4)], tmp_path)
    assert one["y"].tolist() == packed["y"].tolist()


def test_blocks_that_packs_leave_without_work_are_not_launched() -> None:
    found = report(GRID, "k<3>", grid=["ceil_div(n, 32)", "rows"], block=[32])
    assert "ceil_div(ceil_div(n, 32), WS_VEC)" in found.template.kernel.launch.grid[0].text
    other = GRID.replace("y[row * n + d] = sum", "y[row * n + d] = sum + blockIdx.x")
    found = report(other, "k<3>", grid=["ceil_div(n, 32)", "rows"], block=[32])
    assert "WS_VEC" not in found.template.kernel.launch.grid[0].text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("e < TOPK", "e < rows"),
        ("e < TOPK", "e < 64"),
        ("sum += x", "if (sum < 9.0f) sum += x"),
        ("sum += x", "if (sum > 9.0f) break; else sum += x"),
        ("#pragma unroll\n", "#pragma unroll 1\n"),
        ("    y[row * n + i] = sum;", "    if (sum > 1.0f) y[row * n + i] = sum;"),
        ("* n + i];\n", "* n + i * 2];\n"),
        ("const float* x", "float* x"),
    ],
    ids=["unknown", "many", "may not read", "ends early", "not unrolled", "may not write", "apart", "const"],
)
def test_other_loops_load_as_before(old: str, new: str) -> None:
    assert old in ROW
    text = report(ROW.replace(old, new), "k<3>", block=[64]).template.kernel.text
    wide = re.search(r"ws_pack_\d\[3\]", text) is not None
    assert wide is (old in ("const float* x", "    y[row * n + i] = sum;"))


def test_a_buffer_that_is_written_is_read_as_before() -> None:
    text = report(
        ROW.replace("y[row * n + i] = sum", "y[row * n + i] = sum; y[i] = x[i]"), "k<3>"
    ).template.kernel.text
    assert "ws_pack_0[3]" not in text
