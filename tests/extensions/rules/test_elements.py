"""Elements per thread: where it applies, and every reason to decline."""

from typing import Any

import pytest

from tests.extensions.rules.test_declines import names, reason
from tests.extensions.rules.test_declines import report as report_of
from warpsmith.domain.jobs.rewriter import TemplateReport

INDEX = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
GUARD = "  if (i >= n) return;\n"


def report(body: str, **launch: Any) -> TemplateReport:
    """What the rules make of a kernel; packs of the same elements are left out."""
    return report_of(body, deny=("index_packs",), **launch)


@pytest.mark.parametrize(
    "body",
    [
        INDEX + GUARD + "  y[i] = x[i];\n",
        INDEX + "  if (n <= i) { return; }\n  y[i] = x[i];\n",
        INDEX + "  if (i < n) y[i] = x[i];\n",
        INDEX + "  const float two = 2.0f;\n  if (i < n && n > 3) { y[i] = two * x[i]; }\n",
        "  int i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\n" + GUARD + "  y[i] = x[i];\n",
    ],
)
def test_guarded_elements_are_repeated(body: str) -> None:
    found = report(body, grid=["ceil_div(rows * n, 128)"])
    template = found.template
    assert reason(found, "elements_per_thread") == ""
    assert "(blockIdx.x * WS_ITEMS + ws_item)" in template.kernel.text
    assert template.kernel.launch.grid[0].text == "ceil_div(ceil_div(rows * n, WS_BLOCK), WS_ITEMS)"
    assert template.space.defaults["WS_ITEMS"] == 1


def test_a_return_after_the_guard_goes_on_with_the_next_element() -> None:
    found = report(INDEX + GUARD + "  if (x[i] > 0) { y[i] = 1; return; }\n  y[i] = x[i];\n")
    body = found.template.kernel.text
    assert "return" not in body
    assert body.count("continue;") == 2


@pytest.mark.parametrize(
    "body",
    [
        INDEX + "  y[i] = x[i];\n",
        INDEX + "  float v = x[i];\n" + GUARD + "  y[i] = v;\n",
        INDEX + "  if (i < n) y[i] = x[i]; else y[0] = 1;\n",
        INDEX + "  if (i < n) y[i] = x[i];\n  y[0] = 1;\n",
        INDEX + "  if (i >= n && n > 3) return;\n  y[i] = x[i];\n",
        INDEX + "  if (i < n || n > 3) y[i] = x[i];\n",
        INDEX + "  if (i < (int)x[0]) y[i] = x[i];\n",
        INDEX + "  if (x[i] > 0 && i < n) y[i] = 1;\n",
        INDEX + GUARD + "  y[i] = x[i] * gridDim.x;\n",
        "  y[0] = 1;\n" + INDEX + GUARD + "  y[i] = 1;\n",
        "  short i = blockIdx.x * blockDim.x + threadIdx.x;\n" + GUARD + "  y[i] = 1;\n",
    ],
)
def test_where_no_check_keeps_the_last_elements_from_memory_the_blocks_must_divide_evenly(body: str) -> None:
    found = report(body, grid=["ceil_div(rows * n, 128)"])
    assert reason(found, "elements_per_thread") == ""
    conditions = [c.expression.text for c in found.template.space.constraints]
    assert any("% WS_ITEMS == 0" in c for c in conditions)


@pytest.mark.parametrize("check", ["i < n", "i <= n - 1", "n > i", "(i + 2) < (n + 1)", "i == 0"])
def test_a_check_that_the_launch_covers_needs_no_condition(check: str) -> None:
    found = report(INDEX + f"  if ({check}) y[i] = x[i];\n", grid=["ceil_div(n, 128)"])
    assert "WS_ITEMS" in names(found)
    assert not any("WS_ITEMS" in c.expression.text for c in found.template.space.constraints)


@pytest.mark.parametrize("check", ["i <= n", "i < n + 1", "(i - 2) < n", "i < 2 * n"])
def test_a_check_beyond_the_launch_asks_for_blocks_that_divide_evenly_or_reach_it(check: str) -> None:
    found = report(INDEX + f"  if ({check}) y[i] = x[i];\n", grid=["ceil_div(n, 128)"])
    conditions = [c.expression.text for c in found.template.space.constraints]
    assert any("% WS_ITEMS == 0 or 0 <=" in c for c in conditions)


def test_a_return_inside_a_loop_goes_on_with_the_next_element() -> None:
    body = INDEX + GUARD + "  for (int j = 0; j < 3; ++j) { if (x[j] > i) return; }\n  y[i] = 1;\n"
    text = report(body).template.kernel.text
    assert "if (x[j] > i) goto ws_next;" in text
    assert "ws_next: ;" in text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (INDEX + GUARD + "  __syncthreads();\n  y[i] = x[i];\n", "__syncthreads"),
        (INDEX + GUARD + "  atomicAdd(y, x[i]);\n", "atomicAdd"),
        (INDEX + GUARD + "  n = n + 1;\n  y[i] = x[i];\n", "n carries a value"),
        ("  __shared__ float t[4];\n" + INDEX + GUARD + "  y[i] = x[i];\n", "shared memory"),
        ("  y[threadIdx.x] = x[threadIdx.x];\n", "no global index"),
        (INDEX + "  static int seen = 0;\n" + GUARD + "  y[i] = seen;\n", "static"),
        (INDEX + "  for (int j = threadIdx.x; j < n; j += blockDim.x) y[i * n + j] = 1;\n", "share a row"),
        (INDEX + GUARD + "  float WS_ITEMS = 3;\n  y[i] = WS_ITEMS;\n", "WS_ITEMS is taken"),
    ],
)
def test_what_cannot_be_proven_declines(body: str, why: str) -> None:
    assert why in reason(report(body), "elements_per_thread")
