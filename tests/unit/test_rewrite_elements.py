"""Elements per thread: where it applies, and every reason to decline."""

import pytest

from tests.unit.test_rewrite_declines import reason, report

INDEX = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
GUARD = "  if (i >= n) return;\n"


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
    ("body", "why"),
    [
        (INDEX + "  y[i] = x[i];\n", "no bounds check"),
        (INDEX + "  float v = x[i];\n" + GUARD + "  y[i] = v;\n", "no bounds check"),
        (INDEX + "  if (i < n) y[i] = x[i]; else y[0] = 1;\n", "no bounds check"),
        (INDEX + "  if (i < n) y[i] = x[i];\n  y[0] = 1;\n", "no bounds check"),
        (INDEX + "  if (i > n) return;\n  y[i] = x[i];\n", "no bounds check"),
        (INDEX + "  if (i >= n && n > 3) return;\n  y[i] = x[i];\n", "no bounds check"),
        (INDEX + "  if (i < n || n > 3) y[i] = x[i];\n", "no bounds check"),
        (INDEX + "  if (i < (int)x[0]) y[i] = x[i];\n", "no bounds check"),
        (INDEX + GUARD + "  __syncthreads();\n  y[i] = x[i];\n", "__syncthreads"),
        (INDEX + GUARD + "  atomicAdd(y, x[i]);\n", "atomicAdd"),
        (INDEX + GUARD + "  y[i] = x[threadIdx.x];\n", "also reads the thread's place"),
        (INDEX + GUARD + "  y[i] = x[i] * gridDim.x;\n", "size of the grid"),
        (INDEX + GUARD + "  n = n + 1;\n  y[i] = x[i];\n", "n carries a value"),
        ("  float s = 0;\n" + INDEX + GUARD + "  s += x[i];\n  y[i] = s;\n", "s carries a value"),
        (
            INDEX + GUARD + "  for (int j = 0; j < 3; ++j) { if (x[j] > i) return; }\n  y[i] = 1;\n",
            "may return",
        ),
        ("  float first = y[0];\n" + INDEX + GUARD + "  y[i] = first;\n", "used before the index"),
        ("  y[0] = 1;\n" + INDEX + GUARD + "  y[i] = 1;\n", "is no declaration"),
        ("  __shared__ float t[4];\n" + INDEX + GUARD + "  y[i] = x[i];\n", "shared memory"),
        ("  y[threadIdx.x] = x[threadIdx.x];\n", "no declaration of a global index"),
    ],
)
def test_what_cannot_be_proven_declines(body: str, why: str) -> None:
    assert why in reason(report(body), "elements_per_thread")
