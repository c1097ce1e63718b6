"""The rule `block_size` proves that a kernel takes other blocks, limits them, or declines."""

from typing import Any

import pytest

from tests.extensions.rules.test_declines import HEAD, ROW, STRIDE, names, reason, report
from warpsmith.domain.jobs.rewriter import TemplateReport

ELEMENT = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i];\n"
ELEMENTS: dict[str, Any] = {"grid": ["ceil_div(n, 128)"]}
SUM = "  float s = 0;\n  for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[blockIdx.x * n + i];\n"
OF_WARP = "  for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);\n"
STORED = """  __shared__ float part[32];
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  if (threadIdx.x / 32 == 0) {
    const int lane = threadIdx.x % 32;
    s = """
OF_BLOCK = SUM + OF_WARP + STORED
FIRST = "lane < blockDim.x / 32 ? part[lane] : 0.0f;\n"
LAST = "    if (lane == 0) y[blockIdx.x] = s;\n  }\n"


def limits(found: TemplateReport) -> set[str]:
    """Constraints of a template to which the rule was applied."""
    assert "WS_BLOCK" in names(found), reason(found, "block_size")
    return {c.expression.text for c in found.template.space.constraints}


def bounded(words: str, before: str = "") -> str:
    """The head of a kernel with words between `__global__` and its type."""
    return before + HEAD.replace("__global__ void", f"__global__ {words} void")


@pytest.mark.parametrize(
    ("head", "most"),
    [
        (bounded("__launch_bounds__(256)"), 256),
        (bounded("__launch_bounds__ (MOST, 2)", "#define MOST 512\n"), 512),
        (bounded("__launch_bounds__(4 * kWarp)", "constexpr int kWarp = 32;\n"), 128),
        (bounded("BOUNDS", "#define BOUNDS __launch_bounds__(256, 1)\n"), 256),
        (HEAD.replace("void k", "void __launch_bounds__(1 << 9) k"), 512),
    ],
)
def test_launch_bounds_limit_the_block(head: str, most: int) -> None:
    assert f"WS_BLOCK <= {most}" in limits(report(ELEMENT, head, **ELEMENTS))


def test_launch_bounds_that_are_not_known_decline() -> None:
    found = report(ELEMENT, bounded("__launch_bounds__(sizeof(int) * 64)"), **ELEMENTS)
    assert "`__launch_bounds__(sizeof(int) * 64)` allows is not clear" in reason(found, "block_size")
    assert not any(
        "launch bounds" in c.reason for c in report(ELEMENT, **ELEMENTS).template.space.constraints
    )


WARP: dict[str, Any] = {"block": [32]}
NARROW = "    for (int o = 2; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);\n"
UNROLLED = "    s += __shfl_xor_sync(~0u, s, 2); s += __shfl_xor_sync(~0u, s, 1);\n"
WIDTH = "    for (int o = 2; o > 0; o >>= 1) s += __shfl_down_sync(~0u, s, o, 4);\n"
COUNT = "#define COUNT 4\n" + HEAD
TYPED = "constexpr int COUNT = 4;\n" + HEAD


@pytest.mark.parametrize(
    ("body", "head", "launch", "why"),
    [
        (f"{SUM}{OF_WARP}  if (threadIdx.x == 0) y[blockIdx.x] = s;\n", HEAD, WARP, "the block is one"),
        (
            f"{SUM}{OF_WARP}  if ((threadIdx.x & 31) == 0) y[blockIdx.x] = s;\n",
            HEAD,
            WARP,
            "the block is one",
        ),
        (
            f"{SUM}  s = __reduce_add_sync(~0u, (int)s);\n  y[blockIdx.x] = s;\n",
            HEAD,
            WARP,
            "the block is one",
        ),
        (f"  if (blockDim.x != warpSize) return;\n{SUM}  y[blockIdx.x] = s;\n", HEAD, {}, "fixed number"),
        (f"  if (128 == blockDim.x) y[0] = 1;\n{SUM}  y[blockIdx.x] = s;\n", HEAD, {}, "fixed number"),
        (
            f"  if (blockDim.x == COUNT * 32) y[0] = 1;\n{SUM}  y[blockIdx.x] = s;\n",
            COUNT,
            {},
            "fixed number",
        ),
        (f"{OF_BLOCK}{FIRST}{NARROW}{LAST}", HEAD, {}, "fixed number of lanes"),
        (f"{OF_BLOCK}{FIRST}{UNROLLED}{LAST}", HEAD, {}, "fixed number of lanes"),
        (f"{OF_BLOCK}{FIRST}{WIDTH}{LAST}", HEAD, {}, "fixed number of lanes"),
        (
            f"{OF_BLOCK}0;\n    for (int w = 0; w < COUNT; ++w) s += part[w];\n{LAST}",
            COUNT,
            {},
            "fixed number",
        ),
        (
            f"{OF_BLOCK}0;\n    for (int w = 0; w < COUNT; ++w) s += part[w];\n{LAST}",
            TYPED,
            {},
            "fixed number",
        ),
        (f"{OF_BLOCK}lane < COUNT ? part[lane] : 0.0f;\n{OF_WARP}{LAST}", COUNT, {}, "fixed number of warps"),
        (f"{ROW}  if (threadIdx.x < COUNT) b[0] = 1;\n  {STRIDE} b[i] = a[i];\n", COUNT, {}, "compares the"),
    ],
)
def test_a_body_that_needs_its_block_declines(body: str, head: str, launch: dict[str, Any], why: str) -> None:
    assert why in reason(report(body, head, **launch), "block_size")


KEPT = f"{ROW}  float data[COUNT]; int c = 0;\n"
USED = "\n  b[threadIdx.x] = data[0];\n"


@pytest.mark.parametrize(
    "fill",
    [
        "for (int r = 0; r < n / blockDim.x; ++r) data[r] = a[r * blockDim.x + threadIdx.x];",
        "const int most = n / blockDim.x; for (int r = 0; r < most; ++r) data[r] = a[r];",
        f"{STRIDE} data[c++] = a[i];",
        f"{STRIDE} data[i / blockDim.x] = a[i];",
        "int i = threadIdx.x; while (i < n) { data[c] = a[i]; ++c; i += blockDim.x; }",
        "for (int i = threadIdx.x, r = 0; i < n; i += blockDim.x, ++r) data[r] = a[i];",
        "for (int r = 0; r < COUNT; ++r) { int i = r * blockDim.x; if (i < n) data[r] = a[i]; }",
    ],
)
def test_an_array_that_a_thread_fills_by_the_block_declines(fill: str) -> None:
    found = report(f"{KEPT}  {fill}{USED}", COUNT)
    assert "depends on the number of threads" in reason(found, "block_size")


@pytest.mark.parametrize(
    "body",
    [
        f"{OF_BLOCK}{FIRST}{OF_WARP}{LAST}",
        f"{KEPT}  {STRIDE} for (int j = 0; j < COUNT; ++j) data[j] += a[i] * j;{USED}",
        f"{KEPT}  {STRIDE} {{ data[0] = a[i]; data[1] = data[0] * 2; b[i] = data[1]; }}\n",
        f"{ROW}  if (blockDim.x > 1024) return;\n  {STRIDE} b[i] = a[i];\n",
    ],
)
def test_honest_kernels_keep_the_rule(body: str) -> None:
    assert "WS_BLOCK" in names(report(body, COUNT)), reason(report(body, COUNT), "block_size")


def test_a_block_that_is_divided_is_a_multiple() -> None:
    found = report(
        f"{ROW}  const int g = blockDim.x / 64 + (blockDim.x >> 3);\n  {STRIDE} b[i] = a[i] * g;\n"
    )
    assert {f"WS_BLOCK == 128 or WS_BLOCK % {n} == 0" for n in (8, 64)} <= limits(found)
