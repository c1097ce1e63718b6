"""Functions that kernels call: what is known of them, and what rules make of kernels that call them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda_on_cpu import results
from tests.extensions.rules.test_production_style import job_of, reason, report
from tests.nvrtc_compile import compile_cuda
from warpsmith.extensions.rules.analysis.calls.callees import CallEffect, assembly_effect, known
from warpsmith.extensions.rules.templater import make_template

ELEMENT = """
%s
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * rows) return;
  %s
}
"""
OTHER_GRIDS = """
__device__ __forceinline__ void start_next() {
#if defined(OVERLAPPED)
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__device__ __forceinline__ void wait_for_last() {
#if defined(OVERLAPPED)
  cudaGridDependencySynchronize();
#endif
}
"""
COPY = """
__device__ __forceinline__ unsigned bits_of(float v) {
  unsigned bits;
  memcpy(&bits, &v, sizeof(bits));
  return bits;
}
"""
ALIAS = """
template <typename T> using wide_t = float;
template <typename T> __device__ __forceinline__ wide_t<T> widened(T v) { return wide_t<T>(v); }
"""
TWO_LOOPS = """
__device__ __forceinline__ void wait_for_last() { %s }
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  __shared__ float part[64];
  const float* p = x + blockIdx.x * n;
  float most = -1e30f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, p[i]);
  part[threadIdx.x] = most;
  __syncthreads();
  for (int j = 0; j < blockDim.x; ++j) most = fmaxf(most, part[j]);
  wait_for_last();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = p[i] - most;
}
"""
ONE_A_THREAD: Any = {"grid": ["ceil_div(n * rows, 128)"]}
APPLIED = (
    (OTHER_GRIDS, "start_next();\n  wait_for_last();\n  y[i] = 2.0f * x[i];"),
    (COPY, "y[i] = (float)(bits_of(x[i]) >> 23);"),
    (ALIAS, "y[i] = widened<float>(x[i]) + 1.0f;"),
    ("", "y[i] = (float)__umulhi((unsigned)i, 3u) + x[i];"),
)


@pytest.mark.parametrize(("before", "work"), APPLIED)
def test_known_callees_let_a_thread_have_several_elements(before: str, work: str) -> None:
    found = report(ELEMENT % (before, work), **ONE_A_THREAD)
    assert "WS_ITEMS" in {p.name for p in found.template.space.parameters}, found.declined
    configured = found.template.configured(found.template.space.defaults | {"WS_BLOCK": 64, "WS_ITEMS": 4})
    assert compile_cuda(configured.source, configured.kernel.entry) == ""


@pytest.mark.parametrize(("before", "work"), APPLIED[:3])
@pytest.mark.parametrize(("rows", "n"), [(1, 1), (3, 77), (5, 128)])
def test_they_are_right_on_the_cpu(tmp_path: Path, before: str, work: str, rows: int, n: int) -> None:
    job = job_of(ELEMENT % (before, work), **ONE_A_THREAD)
    fields = job.model_dump(mode="json") | {"workloads": [{"dimensions": {"rows": rows, "n": n}}]}
    job = type(job).model_validate(fields)
    template = make_template(job).template
    defaults = {p.name: int(p.baseline_value) for p in template.space.parameters}
    chosen = [defaults | {"WS_BLOCK": b, "WS_ITEMS": items} for b in (64, 128) for items in (1, 2, 4)]
    found = results(job, [(template, values) for values in (defaults, *chosen)], tmp_path)
    for one in found[1:]:
        np.testing.assert_array_equal(one["y"], found[0]["y"])


@pytest.mark.parametrize(
    ("before", "work", "why"),
    [
        ("", "y[i] = mystery(x[i]);", "mystery, whose definition is not in the source"),
        (
            "",
            "y[i] = __shfl_xor_sync(~0u, x[i], 1);",
            "__shfl_xor_sync, which the threads of a warp reach together",
        ),
        ("", "y[i] = x[i]; atomicAdd(&y[0], 1.0f);", "atomicAdd, by which threads hand over memory"),
        ("", "memcpy(y + i, x + i, n);", "memcpy for a size that is not constant"),
        (
            "__device__ float max(float a, float b) { __syncthreads(); return a; }",
            "y[i] = max(x[i], 0.0f);",
            "__syncthreads, which every thread of the block must reach (in max)",
        ),
        (
            "#define TWICE(v) mystery(2 * (v))",
            "y[i] = TWICE(x[i]);",
            "mystery, whose definition is not in the source (in TWICE)",
        ),
        (
            "#ifdef FAST\n#define KEEP(v) (y[0] = v)\n#else\n#define KEEP(v) (y[1] = v)\n#endif",
            "y[i] = KEEP(x[i]);",
            "the macro KEEP assigns",
        ),
        ("", 'asm volatile("st.global.f32 [%0], 0;" : : "l"(y));', "it has inline assembly"),
    ],
)
def test_other_callees_keep_their_elements_apart(before: str, work: str, why: str) -> None:
    found = report(ELEMENT % (before, work), **ONE_A_THREAD)
    assert why in reason(found, "elements_per_thread")


def test_a_row_is_kept_over_hints_but_not_over_a_wait_for_other_grids() -> None:
    hint = report(TWO_LOOPS % 'asm volatile("griddepcontrol.launch_dependents;");')
    assert "WS_KEEP" in {p.name for p in hint.template.space.parameters}, hint.declined
    for wait in ("cudaGridDependencySynchronize();", 'asm volatile("griddepcontrol.wait;");'):
        assert reason(report(TWO_LOOPS % wait), "row_in_registers") == (
            "it waits for other grids between its loops"
        )


def test_no_access_moves_over_a_wait_inside_a_loop() -> None:
    loop = """
extern "C" __global__ void k(const float* x, float* y, int n, int rows) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    cudaGridDependencySynchronize();
    y[blockIdx.x * n + i] = x[blockIdx.x * n + i];
  }
}
"""
    found = report(loop)
    assert "it calls cudaGridDependencySynchronize, before which" in reason(found, "vector_width")
    assert "row_split" in {rule.rule for rule in found.template.applied}, found.declined


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ('asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f))', CallEffect.VALUE),
        ('asm("{ .reg .b32 t; mov.b32 t, %0; }" : : "r"(r))', CallEffect.VALUE),
        ('asm volatile("griddepcontrol.launch_dependents;")', CallEffect.HINT),
        ('asm volatile("mov.b32 %0, %1; griddepcontrol.wait;" : "=r"(r) : "r"(s))', CallEffect.WAITS),
        ('asm volatile("ld.global.f32 %0, [%1];" : "=f"(f) : "l"(p))', CallEffect.OUTSIDE),
        ('asm volatile("" : : : "memory")', CallEffect.OUTSIDE),
    ],
)
def test_assembly_permits_what_all_of_its_instructions_permit(text: str, effect: CallEffect) -> None:
    assert assembly_effect(text) is effect


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("expf", CallEffect.VALUE),
        ("__float22half2_rn", CallEffect.VALUE),
        ("__nv_fp8_e4m3", CallEffect.VALUE),
        ("__nv_atomic_add", None),
        ("__syncwarp", CallEffect.COLLECTIVE),
        ("work_group_barrier", CallEffect.COLLECTIVE),
        ("this_thread_block", CallEffect.COLLECTIVE),
        ("atomicAdd", CallEffect.OUTSIDE),
        ("cudaGridDependencySynchronize", CallEffect.WAITS),
        ("cudaTriggerProgrammaticLaunchCompletion", CallEffect.HINT),
        ("expose", None),
        ("assert", CallEffect.VALUE),
        ("infinity", CallEffect.VALUE),
    ],
)
def test_the_table_knows_names_as_a_whole(name: str, effect: CallEffect | None) -> None:
    callee = known(name)
    assert (None if callee is None else callee.effect) is effect


@pytest.mark.parametrize("last", ["cudaGridDependencySynchronize()", "__threadfence()"])
def test_helpers_that_call_each_other_twice_are_read_once(last: str) -> None:
    """Read at every call, forty of them would be read a million million times."""
    chain = [f"__device__ void step_{n}() {{ step_{n + 1}(); step_{n + 1}(); }}" for n in range(40)]
    helpers = "\n".join([f"__device__ void step_40() {{ {last}; }}", *reversed(chain)])
    waits = "cudaGrid" in last
    text = helpers + TWO_LOOPS % "step_0();"
    why = reason(report(text), "row_in_registers")
    assert ("it waits for other grids" in why) is waits
