"""Kernels in the style of production code: what the rules make of them is run on the CPU, or they decline."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda_on_cpu import results
from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template

WARP_SUM = """
__device__ __forceinline__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
"""
ROW_A_WARP = (
    WARP_SUM
    + """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n, int rows) {
  int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = blockIdx.x * warps + warp;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = lane; i < n; i += 32) sum += x[row * n + i];
  sum = warp_sum(sum);
  for (int i = lane; i < n; i += 32) y[row * n + i] = x[row * n + i] / (1.0f + fabsf(sum));
}
"""
)
CAST_INDEX = """
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  const int64_t i = int64_t(blockDim.x) * blockIdx.x + threadIdx.x;
  if (i >= n * rows) return;
  const int64_t row = i / n, column = i % n;
  y[i] = x[row * n + (n - 1 - column)];
}
"""
PACKS = """
struct pack { float v[4]; };
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  pack p = *(const pack*)(x + i);
  for (int j = 0; j < 4; ++j) p.v[j] = 2.0f * p.v[j];
  *(pack*)(y + i) = p;
}
"""
GATED = """
#if defined(OTHER_COMPILER)
#define LOAD(arg) *(arg)
#else
#define LOAD(arg) __ldg(arg)
#endif
template <typename T> __device__ __forceinline__ T silu(const T& v) { return (T)(v / (1.0f + expf(-v))); }
template <typename T, T (*ACT)(const T&), bool first>
__device__ __forceinline__ T gate(const T& a, const T& b) {
  return first ? ACT(a) * b : a * ACT(b);
}
template <typename T, T (*ACT)(const T&), bool first, bool wide>
__global__ void k(const T* __restrict__ x, T* __restrict__ y, const int n, const int rows) {
  const T* a = x + blockIdx.x * n;
  const T* b = a + n / 2;
  T* out = y + blockIdx.x * n;
  if constexpr (wide) {
    asm volatile("trap;");
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;
  } else {
    for (int64_t i = threadIdx.x; i < n / 2; i += blockDim.x) {
      const T u = LOAD(&a[i]);
      const T v = LOAD(&b[i]);
      out[i] = gate<T, ACT, first>(u, v);
    }
  }
}
"""
HINTED = """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n, int rows) {
  const float* p = y + blockIdx.x * n;
  float* q = y + blockIdx.x * n;
  float most = -1e30f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, p[i]);
  __syncthreads();
  p = x + blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    __stcs(q + i, 3.0f * __ldcs(p + i) + (most > 1e30f ? 1.0f : 0.0f));
}
"""
LANES = """
struct alignas(16) lanes_t { float v[4]; };
__device__ __forceinline__ void load(lanes_t& to, const lanes_t* from) { to = *from; }
__device__ __forceinline__ void store(const lanes_t& from, lanes_t* to) { *to = from; }
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n, int rows) {
  const lanes_t* p = reinterpret_cast<const lanes_t*>(x + blockIdx.x * n);
  lanes_t* q = reinterpret_cast<lanes_t*>(y + blockIdx.x * n);
  for (int i = threadIdx.x; i < n / 4; i += blockDim.x) {
    lanes_t u;
    load(u, &p[i]);
    for (int j = 0; j < 4; ++j) u.v[j] = 2.0f * u.v[j];
    store(u, &q[i]);
  }
}
"""
WARPS_OF_A_BLOCK = """
template <typename T, int TOPK, int WARPS> __global__ void k(const T* x, T* y, int n, int rows) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int64_t row = (int64_t)blockIdx.y * WARPS + warp;
  if (row >= rows) return;
  for (int64_t d = (int64_t)blockIdx.x * 32 + lane; d < n; d += (int64_t)gridDim.x * 32) {
    T sum = T(0);
    for (int j = 0; j < TOPK; ++j) sum += x[row * n + (d + j) % n];
    y[row * n + d] = sum;
  }
}
"""


def job_of(source: str, entry: str = "k", **launch: Any) -> Job:
    """A CUDA kernel over rows, as a job."""
    fields = {
        "name": "k",
        "kernel": {
            "backend": "cuda",
            "source": source,
            "entry": entry,
            "arguments": [
                {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "n"]},
                {"name": "y", "dtype": "float32", "role": "output", "shape": ["rows", "n"]},
                {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
                {"name": "rows", "dtype": "int32", "role": "scalar", "value": "rows"},
            ],
            "launch": {"grid": ["rows"], "block": [128]} | launch,
        },
        "workloads": [{"dimensions": {"rows": 12, "n": 96}}],
    }
    return Job.model_validate(fields)


def report(source: str, entry: str = "k", **launch: Any) -> TemplateReport:
    """What the rules make of it."""
    return make_template(job_of(source, entry, **launch))


def reason(found: TemplateReport, rule: str) -> str:
    """Why a rule declined; empty where it was applied."""
    return next((d.reason for d in found.declined if d.rule == rule), "")


def names(found: TemplateReport) -> set[str]:
    """Parameters of the template, but those that only change how it is compiled."""
    return {p.name for p in found.template.space.parameters} - {"WS_UNROLL", "WS_FAST_MATH"}


def configurations(template: Template, scope: dict[str, Any]) -> list[dict[str, Any]]:
    """The defaults, and every parameter at every value, alone and all at their ends."""
    space = template.space
    base = dict(space.defaults)
    found = [base]
    found += [base | {p.name: v} for p in space.parameters for v in p.values]
    found += [{p.name: p.values[end] for p in space.parameters} for end in (0, -1)]
    allowed = []
    for c in found:
        if c not in allowed and all(k.expression.evaluate(scope | c) for k in space.constraints):
            allowed.append(c)
    return allowed


DEVICE = {
    "device.max_threads_per_block": 1024,
    "device.max_threads_per_multiprocessor": 2048,
    "device.max_grid_y": 65535,
    "device.max_shared_per_block": 49152,
}


def check(found: TemplateReport, job: Job, folder: Path) -> int:
    """Run every such configuration; each must give what the user's kernel gives. How many there were."""
    scope = job.workloads[0].scope() | DEVICE
    listed = configurations(found.template, scope)
    original = Template(kernel=job.kernel)
    first, *others = results(job, [(original, {}), *((found.template, c) for c in listed)], folder)
    for c, other in zip(listed, others, strict=True):
        for name, array in first.items():
            np.testing.assert_allclose(other[name], array, rtol=1e-5, atol=1e-5, err_msg=f"{name} {c}")
    kernel = found.template.configured(listed[-1])
    assert compile_cuda("typedef long long int64_t;\n" + kernel.source, kernel.kernel.entry) == ""
    return len(listed)


@pytest.mark.parametrize(
    ("source", "entry", "launch", "parameters"),
    [
        (ROW_A_WARP, "k", {"grid": ["ceil_div(rows, 4)"]}, {"WS_BLOCK"}),
        (ROW_A_WARP, "k", {"grid": ["ceil_div(rows * 32, 128)"]}, {"WS_BLOCK"}),
        (CAST_INDEX, "k", {"grid": ["ceil_div(rows * n, 128)"]}, {"WS_BLOCK", "WS_ITEMS"}),
        (PACKS, "k", {"grid": ["rows * n // 128"], "block": [32]}, {"WS_BLOCK"}),
        (
            WARPS_OF_A_BLOCK,
            "k<float, 3, 4>",
            {"grid": ["ceil_div(n, 32)", "ceil_div(rows, 4)"]},
            {"WS_WARPS"},
        ),
        (GATED, "k<float, silu<float>, true, false>", {}, {"WS_BLOCK", "WS_ROW_SPLIT", "WS_VEC"}),
        (HINTED, "k", {}, {"WS_VEC"}),
        (LANES, "k", {"block": [8]}, {"WS_BLOCK", "WS_ROW_SPLIT"}),
    ],
    ids=["row a warp", "threads of warps", "cast", "packs", "warps", "helpers", "hints", "lanes"],
)
def test_every_configuration_computes_what_the_kernel_does(
    source: str, entry: str, launch: dict[str, Any], parameters: set[str], tmp_path: Path
) -> None:
    job = job_of(source, entry, **launch)
    found = make_template(job)
    assert names(found) >= parameters
    assert check(found, job, tmp_path) > 3


def test_the_grid_of_rows_a_warp_follows_the_block() -> None:
    by_rows = report(ROW_A_WARP, grid=["ceil_div(rows, 4)"]).template.kernel.launch.grid[0].text
    by_threads = report(ROW_A_WARP, grid=["ceil_div(rows * 32, 128)"]).template.kernel.launch.grid[0].text
    assert by_rows == "ceil_div(rows, WS_BLOCK // 32)"
    assert by_threads == "ceil_div(rows * 32, WS_BLOCK)"


def test_the_block_follows_a_number_of_warps() -> None:
    launch = report(
        WARPS_OF_A_BLOCK, "k<float, 3, 4>", grid=["ceil_div(n, 32)", "ceil_div(rows, 4)"]
    ).template.kernel.launch
    assert launch.block[0].text == "32 * WS_WARPS"
    assert launch.grid[1].text == "ceil_div(rows, WS_WARPS)"


HEAD = 'extern "C" __global__ void k(const float* x, float* y, int n, int rows) {\n'


def test_a_pointer_that_is_set_to_another_place_of_one_buffer_is_not_followed() -> None:
    loop = "for (int i = threadIdx.x; i < n; i += blockDim.x)"
    body = f"float* p = y; {loop} p[i] = x[i]; p = y + n; {loop} p[i] = x[i];\n}}\n"
    assert "where 'p' points is not clear" in reason(report(HEAD + body), "vector_width")


@pytest.mark.parametrize(
    ("body", "launch", "why"),
    [
        (
            "int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; if (row < rows) y[row] = x[row];",
            {"grid": ["rows // 4 + 1"]},
            "cannot follow the block",
        ),
        (
            "int row = blockIdx.x * (blockDim.x / 64) + threadIdx.x / 64; if (row < rows) y[row] = x[row];",
            {"grid": ["ceil_div(rows, 2)"]},
            "depends on the block, and the grid cannot follow it",
        ),
        (
            "int first = blockIdx.x * 4; int row = first + threadIdx.x / 32;"
            " for (int i = threadIdx.x % 32; i < n; i += blockDim.x / 4) y[row * n + i] = x[row * n + i];",
            {"grid": ["ceil_div(rows, 4)"]},
            "by a fixed number",
        ),
        (
            "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n * rows) y[i] = x[blockIdx.x];",
            {"grid": ["ceil_div(n * rows, 128)"]},
            "`blockIdx.x` is used by itself",
        ),
        (
            "auto warp = cg::tiled_partition<32>(cg::this_thread_block());"
            " int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank(); y[row] = x[row];",
            {"grid": ["rows"]},
            "grid x is not",
        ),
    ],
)
def test_the_block_stays_where_the_grid_cannot_follow(body: str, launch: dict[str, Any], why: str) -> None:
    assert why in reason(report(HEAD + body + "}\n", **launch), "block_size")


@pytest.mark.parametrize(
    ("entry", "body", "why"),
    [
        (
            "k<3>",
            "float s = 0; for (int i = 0; i < C; ++i) s += x[blockIdx.x * n + i]; y[blockIdx.x] = s;",
            "computes",
        ),
        (
            "k<3>",
            "float s = 0; for (int i = 0; i < n; i += C) s += x[blockIdx.x * n + i]; y[blockIdx.x] = s;",
            "steps",
        ),
        (
            "k<8>",
            "for (int i = 0; i < n; i += C) {"
            " float m = 0; for (int j = 0; j < C; ++j) m = fmaxf(m, x[i + j]);"
            " for (int j = 0; j < C; ++j) y[i + j] = x[i + j] / m; }",
            "steps",
        ),
        (
            "k<4>",
            "int row = blockIdx.x * C + threadIdx.x / 32; y[row] = x[row + threadIdx.x];",
            "warp and lane",
        ),
        ("k<8>", "int row = blockIdx.x * C + threadIdx.x / 32; y[row] = x[row];", "not 32 * 8 threads"),
    ],
)
def test_what_a_kernel_computes_is_not_lifted(entry: str, body: str, why: str) -> None:
    head = "template <int C> __global__ void k(const float* x, float* y, int n, int rows) {\n"
    found = report(head + body + "}\n", entry, grid=[f"ceil_div(rows, {entry[2]})"])
    assert why in reason(found, "lift_constants")


@pytest.mark.parametrize(
    ("parameter", "may_change"),
    [("const float*& p", True), ("const float* p", False), ("int& n", True), ("const int& n", False)],
)
def test_an_argument_taken_by_reference_may_change(parameter: str, may_change: bool) -> None:
    """The second loop reads other elements if the helper between the loops moves the row or its end."""
    given = parameter.rsplit(maxsplit=1)[-1]
    source = f"""
__device__ __forceinline__ void next_row({parameter}) {{ {f"{given} += 1;" if may_change else ""} }}
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {{
  const float* p = x + blockIdx.x * n;
  __shared__ float most[1024];
  float m = -1e30f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, p[i]);
  most[threadIdx.x] = m;
  __syncthreads();
  m = most[0];
  next_row({given});
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = p[i] - m;
}}
"""
    applied = {a.rule for a in make_template(job_of(source)).template.applied}
    assert ("row_in_registers" in applied) is not may_change
