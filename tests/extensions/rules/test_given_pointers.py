"""Kernels that move the pointers they are given, add up fields, and whose block is a template argument."""

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
struct two { float a, b; };
template <int threads, bool scaled, int kind>
__global__ void k(const float* x, float* y, int n, int rows) {
  const int row = blockIdx.x, t = threadIdx.x;
  x += row * n;
  if constexpr (scaled && kind == 1) {
    y += row * n;
  } else if constexpr (!scaled || kind > 1) {
    y[t + 5] = 3.0f;
  }
  two sums = {0.0f, 0.0f};
  for (int i = t; i < n; i += threads) {
    const float v = x[i];
    sums.a += v;
    sums.b += v * v;
  }
  __shared__ float first[32], second[32];
  sums.a = warp_sum(sums.a);
  sums.b = warp_sum(sums.b);
  first[t / 32] = sums.a;
  second[t / 32] = sums.b;
  __syncthreads();
  float mean = 0.0f, square = 0.0f;
  for (int w = 0; w < blockDim.x / 32; ++w) { mean += first[w]; square += second[w]; }
  mean /= n;
  const float scale = rsqrtf(square / n - mean * mean + 1e-5f);
  for (int i = t; i < n; i += threads) {
    if constexpr (scaled || kind < 0) {
      y[i] = (x[i] - mean) * scale;
    } else {
      printf("other");
    }
  }
}
"""
)


def test_a_row_is_kept_and_packed(tmp_path: Path) -> None:
    job = job_of(NORM, "k<128, true, 1>")
    found = make_template(job)
    assert names(found) >= {"WS_BLOCK", "WS_KEEP", "WS_VEC"}
    assert found.template.kernel.entry == "k<WS_BLOCK, true, 1>"
    assert check(found, job, tmp_path) > 8


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("two sums =", "x += 1;\n  two sums =", ""),
        (
            "float mean = 0.0f, square",
            "x += 1;\n  float mean = 0.0f, square",
            "where 'x' points is not clear",
        ),
        ("sums.b += v * v", "sums.b += v * sums.a", "sums carries a value"),
        ("sums.b += v * v", "sums.a += v * v", "sums carries a value"),
        ("sums.b += v * v;", "sums.b += v * v;\n    x += 0;", "where 'x' points is not clear"),
    ],
)
def test_a_row_is_not_kept_if_its_place_or_its_sums_are_unclear(old: str, new: str, why: str) -> None:
    found = report(NORM.replace(old, new), "k<128, true, 1>")
    said = reason(found, "row_in_registers")
    assert why in said
    assert (said == "") is (why == "")


def test_an_argument_that_is_a_number_by_chance_is_no_block() -> None:
    source = NORM.replace("blockDim.x / 32", "threads / 32")
    assert "no two loops" in reason(report(source, "k<128, true, 1>"), "row_in_registers")
