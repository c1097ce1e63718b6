"""HIP sources compiled for AMD's gfx942 by clang, through real compile children. Nothing of it runs."""

import os
import struct
from collections.abc import Iterator

import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import kernel
from warpsmith.backends.code_object import read_code_object
from warpsmith.backends.hip_clang import find_clang
from warpsmith.cli.absent_devices import absent_device, any_amd_device
from warpsmith.domain.device import Backend
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.errors import InvalidInput
from warpsmith.sandbox.compile_host import CompilePool

pytestmark = pytest.mark.skipif(
    find_clang() is None and not os.environ.get("CI"), reason="no clang; python scripts/clang.py"
)

GFX942 = any_amd_device("gfx942")
ADD = "__global__ void f(const float* x, float* y, const int n) { %s }"
SCALE = ADD % "const int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x; if (i < n) y[i] = 2 * x[i];"
ROWS = """#include <hip/hip_runtime.h>
#include <cmath>
__global__ __launch_bounds__(256) void f(const float* x, float* y, const int n) {
  __shared__ float part[32];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i]) + std::fmax(x[i], rsqrtf(x[i]));
  for (int o = warpSize / 2; o > 0; o /= 2) sum += __shfl_down(sum, o);
  if (threadIdx.x % warpSize == 0) part[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (int w = 0; w < blockDim.x / warpSize; w++) all += part[w];
    atomicAdd(y, all + __popcll(__ballot(all > 0)));
  }
}
"""
HALVES = """#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
__global__ void f(const float* x, float* y, const int n) {
  extern __shared__ float4 tile[];
  const float4 v = make_float4(x[0], x[1], x[2], x[3]) * 2.0f;
  tile[threadIdx.x] = v + v;
  __syncthreads();
  const __half2 h = __floats2half2_rn(tile[0].x, tile[0].w);
  y[threadIdx.x] = __low2float(__hfma2(h, h, h)) + __bfloat162float(__float2bfloat16(tile[1].y));
}
"""
SPILLS = """template <int N>
__global__ __launch_bounds__(1024, 8) void f(const float* x, float* y, const int n) {
  float v[N];
  for (int i = 0; i < N; i++) v[i] = x[i * n + threadIdx.x];
  for (int k = 0; k < n; k++)
    for (int i = 0; i < N; i++) v[i] = v[i] * v[(i + 1) % N] + x[k];
  for (int i = 0; i < N; i++) y[i * n + threadIdx.x] = v[i];
}
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    pool = CompilePool(workers=1)
    yield pool
    pool.close()


def compiled(pool: CompilePool, text: str, arch: str = "gfx942", **fields: object) -> Compiled | Rejected:
    device = GFX942.model_copy(update={"architecture": arch})
    return pool.submit(kernel(Backend.HIP, text, **fields), device).result(HANGS_S)


@pytest.mark.parametrize("arch", ["gfx942", "gfx90a", "gfx1100"])
@pytest.mark.parametrize("text", [SCALE, ROWS, HALVES], ids=["scale", "rows", "halves"])
def test_kernels_compile_and_say_what_they_need(pool: CompilePool, text: str, arch: str) -> None:
    found = compiled(pool, text, arch)
    assert isinstance(found, Compiled), f"{found.reason}\n{found.log}"
    assert found.facts.registers and found.facts.spill_bytes == 0
    assert found.facts.static_shared_bytes == (128 if text == ROWS else 0)
    assert found.facts.compiler.startswith("clang ")
    (note,) = [k for k in read_code_object(found.binary) if k.name == found.entry]
    assert note.wavefront == (32 if arch == "gfx1100" else 64)


def test_a_template_is_found_by_its_name_and_its_spills_are_told(pool: CompilePool) -> None:
    found = compiled(pool, SPILLS, entry="f<200>")
    assert isinstance(found, Compiled), found
    assert found.entry.startswith("_Z1fILi200EE")
    assert (found.facts.spill_bytes or 0) > 0 and (found.facts.local_bytes or 0) > 0


def test_a_variable_that_outlives_launches_is_told(pool: CompilePool) -> None:
    found = compiled(
        pool, f"__device__ int calls; __constant__ float c[2];\n{ADD % 'y[0] = calls++ + c[1];'}"
    )
    assert isinstance(found, Compiled), found
    assert "calls" in found.globals


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y[0] = erff(x[0]) + tanhf(x[1]);", "erf, tanh needs ROCm's device library, which is not here"),
        ("y[0] = foo(x[0]);", "use of undeclared identifier 'foo'"),
        ("y[0] = x[0]", "expected ';'"),
        ("y[0] = g(x[0]);", "g(float) is declared and nowhere defined"),
    ],
)
def test_a_refusal_names_its_cause(pool: CompilePool, body: str, reason: str) -> None:
    found = compiled(pool, f"__device__ float g(float);\n{ADD % body}")
    assert isinstance(found, Rejected)
    assert reason in found.reason
    assert "/tmp" not in found.reason


def test_unknown_architectures_and_options_are_refused(pool: CompilePool) -> None:
    for arch, words in (("gfx999", "gfx999"), ("mi300", "sm_90 or gfx942")):
        found = compiled(pool, SCALE, arch)
        assert isinstance(found, Rejected) and words in found.reason
    refused = compiled(pool, SCALE, options=("-fplugin=x.so",))
    assert isinstance(refused, Rejected) and "-fplugin" in refused.reason


def test_an_architecture_has_a_description() -> None:
    assert (GFX942.limits.warp_size, GFX942.limits.max_shared_per_block) == (64, 64 << 10)
    assert absent_device("gfx1100").limits.warp_size == 32
    assert absent_device("sm_100a").backend is Backend.CUDA
    with pytest.raises(InvalidInput, match="no architecture such as sm_90 or gfx942"):
        absent_device("mi300")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", struct.pack("<4sI", b"\x7fELF", 0) * 20])
def test_what_is_no_code_object_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"ELF|notes"):
        read_code_object(data)
