"""CUDA texts and the HIP texts that they become."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.hip.translation import translated

FULL = "0xffffffffu"
HALVES = "(__lane_id() & 32u)"

PAIRS = {
    "the runtime's header": ("#include <cuda_runtime.h>", "#include <hip/hip_runtime.h>"),
    "half": ('#  include "cuda_fp16.h"  // half', "#  include <hip/hip_fp16.h>  // half"),
    "bfloat16": (
        "#include <cuda_bf16.h>\n__device__ __nv_bfloat162 f(__nv_bfloat16 x);",
        "#include <hip/hip_bf16.h>\n__device__ __hip_bfloat162 f(__hip_bfloat16 x);",
    ),
    "groups": ("#include <cooperative_groups.h>", "#include <hip/hip_cooperative_groups.h>"),
    "headers of C stay": ("#include <cstdint>\n#include <math.h>", "#include <cstdint>\n#include <math.h>"),
    "CUB": (
        "#include <cub/block/block_reduce.cuh>\nusing R = cub::BlockReduce<float, 128>;",
        "#include <hipcub/hipcub.hpp>\nusing R = hipcub::BlockReduce<float, 128>;",
    ),
    "CUB within 16 threads": (
        "using R = cub::WarpReduce<float, 16>;",
        "using R = hipcub::WarpReduce<float, 16>;",
    ),
    "complex numbers": (
        "#include <cuComplex.h>\n__device__ cuFloatComplex f() { return make_cuFloatComplex(0, 1); }",
        "#include <hip/hip_complex.h>\n__device__ hipFloatComplex f() { return make_hipFloatComplex(0, 1); }",
    ),
    "constants": (
        "#include <math_constants.h>\n__device__ float f() { return -CUDART_INF_F; }",
        "#include <hip/hip_math_constants.h>\n__device__ float f() { return -HIP_INF_F; }",
    ),
    "words of the host in a signature": ("void f(cudaStream_t s);", "void f(hipStream_t s);"),
    "bounds of a launch": (
        "__global__ void __launch_bounds__(256, 4) f() {}",
        "__global__ void __launch_bounds__(256) f() {}",
    ),
    "bounds over lines": (
        "__global__ void __launch_bounds__(128,\n  2) f() {}",
        "__global__ void __launch_bounds__(128\n) f() {}",
    ),
    "bounds by a call": (
        "__global__ void __launch_bounds__(max(A, 32), 2, 1) f() {}",
        "__global__ void __launch_bounds__(max(A, 32)) f() {}",
    ),
    "a shuffle with a width": (
        f"v += __shfl_down_sync({FULL}, v, 8, 16);",
        "v += __shfl_down(v, 8, 16);",
    ),
    "a shuffle in a shuffle": (
        "v = __shfl_xor_sync(~0u, __shfl_sync(-1, v, 0, 32), 1, 32);",
        "v = __shfl_xor(__shfl(v, 0, 32), 1, 32);",
    ),
    "names of mask and width": (
        "#define MASK 0xffffffff\nconstexpr int W = 32;\nvoid f() { v = __shfl_up_sync(MASK, v, 1, W); }",
        "#define MASK 0xffffffff\nconstexpr int W = 32;\nvoid f() { v = __shfl_up(v, 1, W); }",
    ),
    "a width by a template": (
        f"template <int W> void f() {{ v = __shfl_xor_sync({FULL}, v, W / 2, W); }}",
        "template <int W> void f() { v = __shfl_xor(v, W / 2, W); }",
    ),
    "a shuffle in a macro": (
        "#define ADD(v, o) \\\n  v += __shfl_xor_sync(0xffffffff, v, o, 32)",
        "#define ADD(v, o) \\\n  v += __shfl_xor(v, o, 32)",
    ),
    "lanes of 32 beside named widths": (
        f"__shared__ float s[32];\nvoid f() {{ v += __shfl_xor_sync({FULL}, v, 16, 32); "
        "if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v; }",
        "__shared__ float s[32];\nvoid f() { v += __shfl_xor(v, 16, 32); "
        "if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v; }",
    ),
    "any of 32": (
        f"if (__any_sync({FULL}, x > 0)) y = 1;",
        f"if (((unsigned)(__ballot(x > 0) >> {HALVES}) != 0u)) y = 1;",
    ),
    "all of 32": (
        f"if (__all_sync({FULL}, x > 0)) y = 1;",
        f"if (((unsigned)(__ballot(!(x > 0)) >> {HALVES}) == 0u)) y = 1;",
    ),
    "device code": (
        "#ifdef __CUDA_ARCH__\nint a;\n#endif\n#ifndef __CUDA_ARCH__\n#endif",
        "#if __HIP_DEVICE_COMPILE__\nint a;\n#endif\n#if !__HIP_DEVICE_COMPILE__\n#endif",
    ),
    "device code among conditions": (
        "#if defined(__CUDA_ARCH__) && A\n#endif",
        "#if __HIP_DEVICE_COMPILE__ && A\n#endif",
    ),
    "comments and strings stay": (
        '// cudaMalloc, __nv_bfloat16\n__device__ void f() { printf("__nv_bfloat16 asm"); /* <<< */ }',
        '// cudaMalloc, __nv_bfloat16\n__device__ void f() { printf("__nv_bfloat16 asm"); /* <<< */ }',
    ),
    "a tile of 32 without shared memory": ("int t = threadIdx.x % 32;", "int t = threadIdx.x % 32;"),
    "a loop that compares and swaps": (
        "do { old = atomicCAS(p, seen, next); } while (old != seen);",
        "do { old = atomicCAS(p, seen, next); } while (old != seen);",
    ),
}

REFUSALS = {
    "asm": 'asm volatile("mov.u32 %0, %laneid;" : "=r"(x));',
    "nvcuda": "using namespace nvcuda;",
    "wmma": "wmma::fill_fragment(a, 0);",
    "#include mma.h": "#include <mma.h>",
    "#include cuda_pipeline.h": "#include <cuda_pipeline.h>",
    "#include cuda/atomic": "#include <cuda/atomic>",
    "#include cuda_fp8.h": "#include <cuda_fp8.h>",
    "#include near.h": '#include "near.h"',
    "__pipeline_commit": "__pipeline_commit();",
    "cuda::": "cuda::atomic_ref<int> a(x);",
    "thrust": "thrust::plus<int> a;",
    "__cluster_dims__": "__global__ void __cluster_dims__(2, 1, 1) f() {}",
    "__maxnreg__": "__global__ void __maxnreg__(64) f() {}",
    "__grid_constant__": "__global__ void f(const __grid_constant__ int a) {}",
    "__reduce_add_sync": "v = __reduce_add_sync(0xffffffff, v);",
    "__match_any_sync": "m = __match_any_sync(0xffffffff, v);",
    "__activemask": "m = __activemask();",
    "__ballot_sync": "m = __ballot_sync(0xffffffff, v);",
    "__syncwarp": "__syncwarp();",
    "volatile": "volatile float* s = t;",
    "0x0000ffff": "v = __shfl_xor_sync(0x0000ffff, v, 1, 16);",
    "mask": "v = __shfl_xor_sync(mask, v, 1, 16);",
    "__nv_fp8_e4m3": "__nv_fp8_e4m3 x;",
    "tex2D": "v = tex2D<float>(t, 0, 0);",
    "cudaTextureObject_t": "__global__ void f(cudaTextureObject_t t) {}",
    "__ldcs": "v = __ldcs(x);",
    "__stcs": "__stcs(y, v);",
    "<<<": "child<<<1, 32>>>(x);",
    "cudaMalloc": "cudaMalloc(&x, 4);",
    "__CUDA_ARCH__": "#if __CUDA_ARCH__ >= 800\n#else\n#endif",
    "CUDA_VERSION": "#if CUDA_VERSION >= 12000\n#endif",
    "__nanosleep": "__nanosleep(10);",
    "__dp4a": "v = __dp4a(a, b, v);",
    "CUDART_TWO_TO_23_F": "v = CUDART_TWO_TO_23_F;",
    "cub::WarpReduce": "using R = cub::WarpReduce<float>;",
    "cub::DeviceReduce": "cub::DeviceReduce::Sum();",
    "using namespace cub": "using namespace cub;",
    "coalesced_threads": "namespace cg = cooperative_groups; auto g = cg::coalesced_threads();",
    "ballot": "namespace cg = cooperative_groups; m = tile.ballot(v);",
    "tiled_partition": "namespace cg = cooperative_groups; auto t = cg::tiled_partition<64>(b);",
    "operator": "__device__ float4 operator+(float4 a, float4 b);",
    "atomicAdd": "__global__ void f(__half* y) { atomicAdd(&y[0], v); }",
    "atomicAdd_block": "atomicAdd_block(y, 1);",
    "atomicCAS": "while (atomicCAS(lock, 0, 1) != 0) {}",
    "malloc": "p = malloc(4);",
    "__shfl_down_sync": "v += __shfl_down_sync(0xffffffff, v, 16);",
    "__shfl_xor_sync": "for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);",
    "__shfl_up_sync": "v += __shfl_up_sync(0xffffffff, v, 16, 16);",
    "__shfl_sync": "v = __shfl_sync(0xffffffff, v, 0, n);",
    "__shfl": "v = __shfl(v, 0);",
    "% 32": "__shared__ float s[32]; int lane = threadIdx.x % 32;",
    "& 31": "__shared__ float s[32]; int lane = threadIdx.x & 31;",
    "> > 5": "__shared__ float s[32]; int tid = threadIdx.x; int warp = tid >> 5;",
    "/ WARP": "#define WARP 32\n__shared__ float s[32]; int warp = threadIdx.x / WARP;",
    "< 32": "__shared__ float s[64]; if (threadIdx.x < 32) s[threadIdx.x] += s[threadIdx.x + 32];",
    "& 0x1f": "__shared__ float s[32]; int lane = (threadIdx.y * blockDim.x + threadIdx.x) & 0x1f;",
    "no_barrier": "void no_barrier() { __shared__ int s[8]; s[threadIdx.x] = s[threadIdx.x ^ 1]; }",
    "__floats2bfloat162_rn": "v = __floats2bfloat162_rn(a, b);",
    "warpSize": "int lane = threadIdx.x % warpSize;",
}


@pytest.mark.parametrize("name", PAIRS)
def test_cuda_becomes_hip(name: str) -> None:
    cuda, hip = PAIRS[name]
    found = translated({"": cuda})
    assert [str(r) for r in found.refusals] == []
    assert found.texts == {"": hip}


@pytest.mark.parametrize("word", REFUSALS)
def test_what_is_outside_the_subset_is_refused_by_line_and_word(word: str) -> None:
    found = translated({"": "// first line\n" + REFUSALS[word]})
    assert found.texts == {}
    assert word in [r.word for r in found.refusals]
    assert all(r.line >= 2 and r.reason for r in found.refusals)
    assert all(str(r).startswith(f"source:{r.line}: {r.word}: ") for r in found.refusals)


def test_every_file_is_translated_and_names_of_all_count() -> None:
    files = {
        "": '#include "w.h"\nvoid f() { v = __shfl_xor_sync(M, v, 1, W); }',
        "w.h": "#define M -1\n#define W 8",
    }
    found = translated(files)
    assert found.texts == {"": '#include "w.h"\nvoid f() { v = __shfl_xor(v, 1, W); }', "w.h": files["w.h"]}
    refused = translated(files | {"w.h": "#define M -1\n\nvoid g() { __syncwarp(); }"})
    assert [(r.file, r.line, r.word) for r in refused.refusals] == [
        ("", 2, "__shfl_xor_sync"),
        ("w.h", 3, "__syncwarp"),
    ]


def test_a_macro_with_two_values_is_no_constant() -> None:
    text = "#if A\n#define M -1\n#else\n#define M 15\n#endif\nvoid f() { v = __shfl_xor_sync(M, v, 1, 8); }"
    assert [r.word for r in translated({"": text}).refusals] == ["M"]
    given_ = "void f() { v = __shfl_xor_sync(-1, v, 1, W); }"
    assert translated({"": given_}, {"W": "16"}).texts
    assert not translated({"": given_}, {"W": "64"}).texts


PIECES = st.sampled_from([cuda for cuda, _ in PAIRS.values()])
GAPS = st.sampled_from(
    ["\n", "\n\n", "\n// 32 __syncwarp\n", "\n/* a\n b */\n", '\nconst char* t = "asm";\n']
)


@given(st.lists(st.tuples(PIECES, GAPS), min_size=1, max_size=8))
def test_lines_keep_their_numbers(parts: list[tuple[str, str]]) -> None:
    text = "".join(f"{piece}{gap}int marker_{n};\n" for n, (piece, gap) in enumerate(parts))
    found = translated({"": text})
    if found.refusals:  # two values of a macro, or a shared array beside a tile of 32
        assert all(r.line <= text.count("\n") for r in found.refusals)
        return
    before, after = text.split("\n"), found.texts[""].split("\n")
    assert len(before) == len(after)
    for n in range(len(parts)):
        assert before.index(f"int marker_{n};") == after.index(f"int marker_{n};")
