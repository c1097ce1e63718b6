"""What CUDA's words are in HIP, and which words both have."""


def _words(text: str) -> list[str]:
    return text.split()


HEADERS = {
    "cuda.h": "hip/hip_runtime.h",
    "cuda_runtime.h": "hip/hip_runtime.h",
    "cuda_runtime_api.h": "hip/hip_runtime_api.h",
    "device_launch_parameters.h": "hip/hip_runtime.h",
    "device_functions.h": "hip/device_functions.h",
    "vector_types.h": "hip/hip_vector_types.h",
    "vector_functions.h": "hip/hip_vector_types.h",
    "math_functions.h": "hip/math_functions.h",
    "math_constants.h": "hip/hip_math_constants.h",
    "cuda_fp16.h": "hip/hip_fp16.h",
    "cuda_fp16.hpp": "hip/hip_fp16.h",
    "cuda_bf16.h": "hip/hip_bf16.h",
    "cuComplex.h": "hip/hip_complex.h",
    "cooperative_groups.h": "hip/hip_cooperative_groups.h",
}
"""Headers of CUDA, and what has the same in HIP."""
HEADERS_OF_CUB, HIPCUB = "cub/", "hipcub/hipcub.hpp"
PLAIN_HEADERS = frozenset(
    _words(
        "algorithm array assert.h cassert cfloat climits cmath cstddef cstdint cstdio cstdlib cstring "
        "float.h functional initializer_list limits limits.h math.h stddef.h stdint.h stdio.h stdlib.h "
        "string.h tuple type_traits utility"
    )
)
"""Headers of C and C++, which stay."""

_COMPLEX = _words(
    "Creal Cimag Cadd Csub Cmul Cdiv Cabs Conj Crealf Cimagf Caddf Csubf Cmulf Cdivf Cabsf Conjf Cfma Cfmaf "
    "FloatComplex DoubleComplex Complex"
)
_CONSTANTS = _words("INF_F NAN_F MIN_DENORM_F MAX_NORMAL_F INF NAN PI_F PI")
RENAMED = {
    "__nv_bfloat16": "__hip_bfloat16",
    "__nv_bfloat162": "__hip_bfloat162",
    "nv_bfloat16": "__hip_bfloat16",
    "nv_bfloat162": "__hip_bfloat162",
    "cudaStream_t": "hipStream_t",
    "cudaError_t": "hipError_t",
    **{f"cu{name}": f"hip{name}" for name in _COMPLEX},
    **{f"make_cu{name}": f"make_hip{name}" for name in _COMPLEX if name.endswith("Complex")},
    **{f"CUDART_{name}": f"HIP_{name}" for name in _CONSTANTS},
}
"""Words that have another name in HIP."""

CUB = frozenset(
    _words(
        "BlockReduce BlockScan BlockLoad BlockStore BlockRadixSort BlockExchange BlockDiscontinuity Sum Max "
        "Min WarpReduce WarpScan BLOCK_REDUCE_RAKING BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY "
        "BLOCK_REDUCE_WARP_REDUCTIONS BLOCK_SCAN_RAKING BLOCK_SCAN_RAKING_MEMOIZE BLOCK_SCAN_WARP_SCANS "
        "BLOCK_LOAD_DIRECT BLOCK_LOAD_VECTORIZE BLOCK_LOAD_TRANSPOSE BLOCK_STORE_DIRECT "
        "BLOCK_STORE_VECTORIZE BLOCK_STORE_TRANSPOSE"
    )
)
"""Words of CUB that hipCUB has with the same meaning."""

_TO_INTEGERS = [
    f"__{of}2{to}_{rounded}"
    for of in ("float", "double")
    for to in ("int", "uint", "ll", "ull")
    for rounded in ("rn", "rz", "rd", "ru")
]
_HALVES = _words("add sub mul div fma neg abs max min eq ne lt le gt ge isnan")
SHARED = frozenset(
    _words(
        # declarations and what a compiler knows
        "__global__ __device__ __host__ __shared__ __constant__ __managed__ __forceinline__ __noinline__ "
        "__inline__ __inline __restrict__ __restrict __align__ __attribute__ __launch_bounds__ __func__ "
        "__FILE__ __LINE__ __VA_ARGS__ __cplusplus __builtin_expect __builtin_assume __builtin_unreachable "
        "__int128 __FUNCTION__ __PRETTY_FUNCTION__ "
        # barriers, fences, loads
        "__syncthreads __syncthreads_count __syncthreads_and __syncthreads_or __threadfence "
        "__threadfence_block __threadfence_system __ldg "
        # integers and bits
        "__brev __brevll __byte_perm __clz __clzll __ffs __ffsll __funnelshift_l __funnelshift_r "
        "__funnelshift_lc __funnelshift_rc __hadd __rhadd __uhadd __urhadd __mul24 __umul24 __mulhi __umulhi "
        "__mul64hi __umul64hi __popc __popcll __sad __usad "
        "__int_as_float __uint_as_float __float_as_int __float_as_uint __double_as_longlong "
        "__longlong_as_double __hiloint2double __double2hiint __double2loint "
        "__int2float_rn __uint2float_rn __ll2float_rn __ull2float_rn __int2double_rn __uint2double_rn "
        "__ll2double_rn __ull2double_rn __double2float_rn "
        # floats
        "__cosf __sinf __tanf __sincosf __expf __exp10f __logf __log2f __log10f __powf __fdividef "
        "__saturatef __fadd_rn __fsub_rn __fmul_rn __fdiv_rn __fmaf_rn __frcp_rn __frsqrt_rn __fsqrt_rn "
        "__dadd_rn __dsub_rn __dmul_rn __ddiv_rn __drcp_rn __dsqrt_rn __fma_rn "
        # short floats
        "__half __half2 __half_raw __half2_raw __float2half __float2half_rn __float2half_rz __half2float "
        "__float2half2_rn __floats2half2_rn __float22half2_rn __half22float2 __low2float __high2float "
        "__low2half __high2half __half2half2 __halves2half2 __lows2half2 __highs2half2 __low2half2 "
        "__high2half2 __lowhigh2highlow __half2int_rn __half2int_rz __half2uint_rn __int2half_rn "
        "__uint2half_rn __half_as_short __half_as_ushort __short_as_half __ushort_as_half __h2div "
        "__float2bfloat16 __float2bfloat16_rn __bfloat162float "
        "__float22bfloat162_rn __bfloat1622float2 __bfloat162bfloat162 __low2bfloat16 __high2bfloat16 "
        "__halves2bfloat162 "
    )
    + _TO_INTEGERS
    + [f"__h{name}" for name in _HALVES]
    + [f"__h{name}2" for name in _HALVES]
)
"""Words with two underscores that HIP documents with CUDA's meaning."""

EXCHANGES = ("__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync")
VOTES = ("__any_sync", "__all_sync")
HANDLED = frozenset((*EXCHANGES, *VOTES, "__CUDA_ARCH__"))

_TENSOR = "HIP has no matrix units under this name"
_OLD = "CUDA has it no more; use the form with _sync, a mask and a width"
REFUSED = {
    **dict.fromkeys(("asm", "__asm__", "__asm"), "inline PTX is of NVIDIA devices; write it in C++"),
    **dict.fromkeys(("nvcuda", "wmma", "mma"), _TENSOR),
    "__ballot_sync": "a ballot has 32 bits in CUDA and 64 in HIP",
    "__activemask": "which threads run together depends on the device",
    "__match_any_sync": "HIP has no match with masks of 32 bits",
    "__match_all_sync": "HIP has no match with masks of 32 bits",
    "__syncwarp": "not every HIP has it; use __syncthreads() where the whole block comes by",
    "volatile": "a device decides when a warp sees what its threads wrote; use barriers, or atomics",
    "__grid_constant__": "HIP documents no such parameter; leave it out",
    "__maxnreg__": "registers of an NVIDIA device; leave it out",
    "__cluster_dims__": "HIP has no clusters",
    "__block_size__": "HIP has no such attribute; use __launch_bounds__",
    "__nanosleep": "HIP has no sleep",
    "NV_IF_TARGET": "it asks for NVIDIA devices",
    "NV_IF_ELSE_TARGET": "it asks for NVIDIA devices",
    "CUDA_VERSION": "it asks for CUDA's version; leave the branch that is meant",
    "__CUDACC__": "it asks for NVIDIA's compiler; leave the branch that is meant",
    "__CUDACC_RTC__": "it asks for NVIDIA's compiler; leave the branch that is meant",
    "thrust": "thrust is outside the subset",
    "texture": "textures cannot be posted; use a buffer",
    "surface": "surfaces cannot be posted; use a buffer",
    "malloc": "memory that a kernel allocates is outside the subset; use a buffer",
    "free": "memory that a kernel allocates is outside the subset; use a buffer",
    **dict.fromkeys(("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot"), _OLD),
}
"""Words outside the subset, each with the reason."""

REFUSED_BEGINNINGS = {
    "__reduce_": "HIP has no reductions of a warp with masks of 32 bits; use shuffles with a width",
    "__pipeline": "HIP has no copies into shared memory that run by themselves; copy with loads",
    "__nv_fp8": "the eight-bit floats of CUDA and of AMD devices differ",
    "__nv_cvt_": "the eight-bit floats of CUDA and of AMD devices differ",
    "__nv_": "HIP has no such word",
    "__ld": "HIP documents no cache hint of this name; write *pointer",
    "__st": "HIP documents no cache hint of this name; write *pointer = value",
    "__CUDACC_": "it asks for NVIDIA's compiler; leave the branch that is meant",
    "CUDART_": "HIP's headers have no constant of this name; write the number",
    "CUB_": "hipCUB has other macros",
    "tex1D": "textures cannot be posted; use a buffer",
    "tex2D": "textures cannot be posted; use a buffer",
    "tex3D": "textures cannot be posted; use a buffer",
    "surf2D": "surfaces cannot be posted; use a buffer",
    "cudaTexture": "textures cannot be posted; use a buffer",
    "cuda": "a word of CUDA's host side; a source for `translate` has device code only",
    "cublas": "a library of the host; a source for `translate` has device code only",
    "curand": "cuRAND is outside the subset",
}
"""The same for words that begin so; the first that fits counts."""

REFUSED_MEMBERS = {
    "ballot": "a ballot has 32 bits in CUDA and 64 in HIP",
    "match_any": "HIP has no match with masks of 32 bits",
    "match_all": "HIP has no match with masks of 32 bits",
    "meta_group_rank": "outside the subset; divide thread_rank() of the block by the width",
    "meta_group_size": "outside the subset; divide the size of the block by the width",
    **dict.fromkeys(
        ("coalesced_threads", "coalesced_group", "labeled_partition", "binary_partition"),
        "which threads run together depends on the device",
    ),
    **dict.fromkeys(("this_cluster", "cluster_group", "map_shared_rank"), "HIP has no clusters"),
    **dict.fromkeys(
        ("memcpy_async", "wait_prior"), "HIP has no copies into shared memory that run by themselves"
    ),
    "this_multi_grid": "several devices are outside the subset",
}
"""Words of cooperative groups outside the subset; they count only in sources that include these."""

VECTORS = frozenset(
    f"{kind}{n}"
    for kind in _words("char uchar short ushort int uint long ulong longlong ulonglong float double")
    for n in (1, 2, 3, 4)
)
"""Types of CUDA and HIP with several components."""
