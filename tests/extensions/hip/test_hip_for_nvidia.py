"""HIP sources for NVIDIA devices, through real compile children and NVRTC."""

from collections.abc import Iterator

import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import CUDA_DEVICE, kernel
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.extensions.hip.include import RUNTIME
from warpsmith.sandbox.hosts.compile_host import CompilePool

VECTORS = """#include <hip/hip_runtime.h>
__global__ void f(const float* x, float* y, const int n) {
  const int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
  if (i >= n) return;
  float4 v = make_float4(x[i], 1, 2, 3) + 2.0f;
  v *= v;
  y[i] = v.x + v.w;
}
"""
WARPS = """__global__ void f(const float* x, float* y, const int n) {
  float sum = threadIdx.x < n ? x[threadIdx.x] : 0;
  for (int step = warpSize / 2; step > 0; step >>= 1) sum += __shfl_down(sum, step);
  unsigned long long who = __ballot(sum > 0);
  if (threadIdx.x % warpSize == 0) y[threadIdx.x / warpSize] = sum + __popcll(who) + __any(n) + __lane_id();
}
"""
HEADERS = """#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
#include <hip/hip_complex.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_math_constants.h>
#include <hipcub/hipcub.hpp>
__global__ void f(const float* x, float* y, const int n) {
  using Sum = hipcub::BlockReduce<float, 128>;
  __shared__ typename Sum::TempStorage storage;
  const hipFloatComplex c = hipCmulf(make_hipFloatComplex(x[0], 1), make_hipFloatComplex(2, 3));
  const float sum = Sum(storage).Sum(x[threadIdx.x] + c.x);
  cooperative_groups::this_thread_block().sync();
  if (threadIdx.x == 0)
    y[0] = n ? sum + __half2float(__float2half(x[1])) + __bfloat162float(__hip_bfloat16(x[2])) : HIP_INF_F;
}
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    pool = CompilePool(workers=1)
    yield pool
    pool.close()


def compiled(pool: CompilePool, text: str, **fields: object) -> Compiled | Rejected:
    return pool.submit(kernel(Backend.HIP, text, **fields), CUDA_DEVICE).result(HANGS_S)


@pytest.mark.parametrize("text", [VECTORS, WARPS, HEADERS], ids=["vectors", "warps", "headers"])
def test_words_of_hip_compile(pool: CompilePool, text: str) -> None:
    found = compiled(pool, text)
    assert isinstance(found, Compiled), f"{found.reason}\n{found.log}"
    assert found.facts.registers
    assert found.binary[:4] == b"\x7fELF"


def test_its_options_are_those_of_clang(pool: CompilePool) -> None:
    quick = compiled(pool, VECTORS, options=("-ffast-math", "-O3", "-fno-math-errno"))
    assert isinstance(quick, Compiled), quick
    refused = compiled(pool, VECTORS, options=("--use_fast_math",))
    assert isinstance(refused, Rejected)
    assert "-ffast-math" in refused.reason


def test_what_is_of_amd_alone_is_an_error_of_the_compiler_that_names_it(pool: CompilePool) -> None:
    text = WARPS.replace("__lane_id()", "__builtin_amdgcn_mbcnt_lo(~0u, 0u)")
    found = compiled(pool, text)
    assert isinstance(found, Rejected)
    assert "__builtin_amdgcn_mbcnt_lo" in found.reason
    assert "/" not in found.reason.replace(RUNTIME, "")


def test_host_functions_beside_a_kernel_are_read(pool: CompilePool) -> None:
    header = """#pragma once
#include <hip/hip_runtime.h>
#include <cstdlib>
inline void check(hipError_t error) { if (error != hipSuccess) std::exit(hipGetLastError() != error); }
"""
    text = f'#include "check.h"\n{VECTORS}'
    found = compiled(pool, text, files={"check.h": header})
    assert isinstance(found, Compiled), f"{found.reason}\n{found.log}"


def test_a_word_of_the_place_is_told_of_winners(pool: CompilePool) -> None:
    text = VECTORS.replace("return;", "{ y[0] = __LINE__; return; }")
    told = {}
    trials = (("trial", text, False), ("plain trial", VECTORS, False))
    for name, source, tells in (("winner", text, True), ("plain", VECTORS, True), *trials):
        asked = kernel(Backend.HIP, source).model_copy(update={"tells_words": tells})
        found = pool.submit(asked, CUDA_DEVICE).result(HANGS_S)
        assert isinstance(found, Compiled), found
        told[name] = (found.telling, found.may_tell)
    assert told == {
        "winner": (("__LINE__",), False),
        "plain": ((), False),
        "trial": ((), True),
        "plain trial": ((), False),
    }
