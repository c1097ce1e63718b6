"""HIP sources for AMD's gfx942, through real compile children and clang. Nothing of it runs."""

from collections.abc import Iterator

import pytest

from testbed.clang import ADVICE
from testbed.deadlines import HANGS_S
from testbed.servers import give_up
from tests.sandbox.kernels import kernel
from warpsmith.backends.binaries.amd_code_object import read_code_object
from warpsmith.device_checks.absent_devices import any_amd_device
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.clang_program import find_clang
from warpsmith.extensions.hip.rocm_paths import device_library
from warpsmith.sandbox.hosts.compile_host import CompilePool

ADD = """__global__ void f(const float* x, float* y, const int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += x[i];
}
"""
ROWS = """__global__ void f(const float* x, float* y, const int n) {
  static_assert(warpSize == 64, "a wave of gfx942");
  __shared__ float parts[1024 / warpSize];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
  for (int step = warpSize / 2; step > 0; step >>= 1) sum += __shfl_down(sum, step);
  if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / warpSize; ++w) sum += parts[w];
    y[blockIdx.x] = sum + __popcll(__ballot(sum > 0)) + __lane_id();
  }
}
"""
TILES = """#define TILE 16
__global__ __launch_bounds__(TILE * TILE) void f(const float* x, float* y, const int n) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  extern __shared__ float more[];
  const int row = hipBlockIdx_y * TILE + threadIdx.y, column = hipBlockIdx_x * TILE + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += TILE) {
    a[threadIdx.y][threadIdx.x] = x[row * n + k + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = __ldg(x + (k + threadIdx.y) * n + column);
    __syncthreads();
    for (int j = 0; j < TILE; ++j) sum += a[threadIdx.y][j] * b[j][threadIdx.x];
    __syncthreads();
  }
  y[row * n + column] = sum + more[0];
}
"""
HALVES = """#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
__global__ void f(const float* x, float* y, const int n) {
  const half2 pair = __hfma2(__floats2half2_rn(x[0], x[1]), half2(__float2half(x[2])), half2(x[3], x[4]));
  const __hip_bfloat16 brain = __float2bfloat16(x[5]);
  y[threadIdx.x] = __half2float(pair.x + hexp(pair.y)) + __bfloat162float(brain) * n;
}
"""
WORDS = """#include <hip/hip_runtime.h>
__global__ void f(const float* x, float* y, const int n) {
  float4 v = make_float4(x[0], 1, 2, 3) + 2.0f;
  v *= v;
  int* counts = (int*)y;
  atomicAdd(y, 1);
  atomicAdd(counts + 1, 1);
  atomicMax(counts + 2, n);
  atomicCAS(counts + 3, 1, n);
  y[4] = __fdividef(v.x, v.y) + __expf(v.z) + expf(v.w) + __sinf(x[1]) + rsqrtf(x[2]);
  y[4] += fmaf(x[3], x[4], x[5]);
  y[5] = sqrt((double)x[6]) + fabsf(x[7]) + fminf(x[8], x[9]) + floorf(x[10]) + logf(x[11]);
  counts[6] = __popc(n) + __clz(n) + min(n, 3) + __float_as_int(x[12]) + __any(n) + __shfl_xor(n, 1);
}
"""
SPILLS = """__global__ __launch_bounds__(1024) void f(const float* x, float* y, const int n) {
  float held[256];
#pragma unroll
  for (int i = 0; i < 256; ++i) held[i] = x[i * n + threadIdx.x];
  for (int k = 0; k < n; ++k)
#pragma unroll
    for (int i = 0; i < 256; ++i) held[i] = held[i] * held[(i + 7) % 256] + x[k];
#pragma unroll
  for (int i = 0; i < 256; ++i) y[i * n + threadIdx.x] = held[i];
}
"""
MATRICES = """typedef float acc_t __attribute__((ext_vector_type(16)));
typedef _Float16 part_t __attribute__((ext_vector_type(4)));
__global__ __launch_bounds__(64) void f(const float* x, float* y, const int n) {
  acc_t sums[6];
  for (int j = 0; j < 6; ++j) sums[j] = ((const acc_t*)x)[j + threadIdx.x];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < 6; ++j)
      sums[j] = __builtin_amdgcn_mfma_f32_32x32x8f16(((const part_t*)x)[i * 6 + j + threadIdx.x],
                                                     ((const part_t*)x)[i + threadIdx.x], sums[j], 0, 0, 0);
  for (int j = 0; j < 6; ++j) ((acc_t*)y)[threadIdx.x * 6 + j] = sums[j];
}
"""
TEMPLATES = """#include <hip/hip_fp16.h>
__device__ int launches;
template <class T, int N> __global__ void f(const float* x, float* y, const int n) {
  __shared__ T held[N];
  held[threadIdx.x] = (T)x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = (float)held[N - 1 - threadIdx.x] + launches++;
}
template __global__ void f<float, 64>(const float*, float*, const int);
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    try:
        find_clang()
    except Unavailable:
        give_up(ADVICE)
    pool = CompilePool(workers=1)
    yield pool
    pool.close()


def made(pool: CompilePool, text: str, arch: str = "gfx942", **fields: object) -> Compiled | Rejected:
    return pool.submit(kernel(Backend.HIP, text, **fields), any_amd_device(arch)).result(HANGS_S)


def compiled(pool: CompilePool, text: str, arch: str = "gfx942", **fields: object) -> Compiled:
    found = made(pool, text, arch, **fields)
    assert isinstance(found, Compiled), f"{found.reason}\n{found.log}"
    return found


def refused(pool: CompilePool, text: str, arch: str = "gfx942", **fields: object) -> str:
    found = made(pool, text, arch, **fields)
    assert isinstance(found, Rejected)
    return found.reason


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx1100"])
def test_an_addition_compiles_for_several_architectures(pool: CompilePool, arch: str) -> None:
    found = compiled(pool, ADD, arch)
    held = read_code_object(found.binary).kernels[found.entry]
    assert held.wavefront == any_amd_device(arch).limits.warp_size
    assert 0 < held.vector_registers < 16
    assert (held.parameters, held.most_threads) == (((0, 8), (8, 8), (16, 4)), 1024)
    facts = found.facts
    assert (facts.registers, facts.spill_bytes, facts.static_shared_bytes) == (held.vector_registers, 0, 0)


@pytest.mark.parametrize(
    ("text", "shared"),
    [(ROWS, 64), (TILES, 2048), (HALVES, 0), (WORDS, 0)],
    ids=["rows", "tiles", "16", "words"],
)
def test_shared_memory_is_counted(pool: CompilePool, text: str, shared: int) -> None:
    facts = compiled(pool, text).facts
    assert (facts.static_shared_bytes, facts.spill_bytes, facts.local_bytes) == (shared, 0, 0)
    assert facts.registers


def test_spilled_registers_count_four_bytes_each(pool: CompilePool) -> None:
    found = compiled(pool, SPILLS)
    held = read_code_object(found.binary).kernels[found.entry]
    assert held.spilled_vector_registers > 100
    assert found.facts.spill_bytes == 4 * held.spilled_vector_registers
    assert found.facts.local_bytes == held.private_bytes > 0
    assert found.facts.registers == 128, "a block of 1024 leaves a lane a quarter of its SIMD's 512"


def test_bounds_of_a_launch_leave_more_registers(pool: CompilePool) -> None:
    found = compiled(pool, SPILLS.replace("1024", "64"))
    assert found.facts.registers is not None and found.facts.registers > 128
    assert read_code_object(found.binary).kernels[found.entry].most_threads == 64


def test_accumulators_are_counted_once(pool: CompilePool) -> None:
    registers = compiled(pool, MATRICES).facts.registers
    assert registers is not None and 96 < registers < 160


def test_a_template_is_found_by_its_expression(pool: CompilePool) -> None:
    found = compiled(pool, TEMPLATES, entry="f<__half, 128>")
    assert found.facts.static_shared_bytes == 256
    assert found.globals == ("launches",)
    assert compiled(pool, TEMPLATES, entry="f<float, 64>").facts.static_shared_bytes == 256
    assert "no kernel 'g'" in refused(pool, TEMPLATES + 'extern "C" __device__ void g() {}', entry="g")


def test_two_entries_are_a_sequence(pool: CompilePool) -> None:
    launch = {"grid": ["ceil_div(n, 64)"], "block": [64]}
    steps = [{"entry": name, "arguments": ["x", "y", "n"], "launch": launch} for name in ("f", "g")]
    text = ADD + TILES.replace("void f(", "void g(")
    found = compiled(pool, text, launches=steps, launch=launch)
    assert (found.entry, found.then_entries) == ("_Z1fPKfPfi", ("_Z1gPKfPfi",))
    assert found.facts.static_shared_bytes == 2048


@pytest.mark.parametrize(
    ("call", "name"), [("erff(x[0])", "erff"), ("powf(x[0], n)", "powf"), ("exp((double)n)", "exp")]
)
def test_what_only_rocm_has_is_named(pool: CompilePool, call: str, name: str) -> None:
    if device_library("gfx942"):
        pytest.skip("ROCm is installed here")
    reason = refused(pool, ADD.replace("x[i]", call))
    assert f"no device code for {name}; ROCm's device library, which has it, is missing here" in reason


def test_what_the_compiler_cannot_select_is_named(pool: CompilePool) -> None:
    reason = refused(pool, ADD.replace("x[i]", "__builtin_pow(x[i], n)"))
    assert "no instruction for pow" in reason


def test_a_function_that_nobody_has_is_no_fault_of_rocm(pool: CompilePool) -> None:
    reason = refused(pool, "extern __device__ float other(float);\n" + ADD.replace("x[i]", "other(x[i])"))
    assert reason == "error: no device code for other(float)"


def test_an_error_says_where(pool: CompilePool) -> None:
    assert refused(pool, ADD.replace("x[i];", "x[i]")) == (
        "kernel.hip:3:26: error: expected ';' after expression"
    )
    assert refused(pool, ADD.replace("x[i]", "TILE")).endswith("use of undeclared identifier 'TILE'")


@pytest.mark.parametrize("header", ["hipcub/hipcub.hpp", "hip/hip_cooperative_groups.h", "hip/hip_complex.h"])
def test_headers_that_only_rocm_has_say_so(pool: CompilePool, header: str) -> None:
    if device_library("gfx942"):
        pytest.skip("ROCm is installed here")
    reason = refused(pool, f"#include <{header}>\n{ADD}")
    assert reason.startswith(f"{header}:2:2: error: ")
    assert "is in ROCm's headers, and they are missing here" in reason


def test_other_arguments_are_refused(pool: CompilePool) -> None:
    reason = refused(pool, ADD.replace("const int n", "const long n"))
    assert reason == "argument 2 (n) has 4 bytes in the job and 8 in the kernel"


@pytest.mark.parametrize("arch", ["gfx999", "gfx942:xnack+", "rdna"])
def test_an_unknown_architecture_is_named(pool: CompilePool, arch: str) -> None:
    reason = refused(pool, ADD, arch)
    assert arch in reason and "gfx942" in reason


def test_options_are_those_of_clang(pool: CompilePool) -> None:
    assert compiled(pool, WORDS, options=("-ffast-math", "-O2", "-std=c++20", "-DX=1")).facts.registers
    assert "not allowed" in refused(pool, ADD, options=("--rocm-path=/",))


def test_files_of_the_machine_are_out_of_reach(pool: CompilePool) -> None:
    reason = refused(pool, '#include "/etc/hostname"\n' + ADD)
    assert "/etc/hostname" in reason
