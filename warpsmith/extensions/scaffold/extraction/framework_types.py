"""Types and macros of PyTorch that kernels name, in terms of CUDA's own.

A kernel that is taken out of an extension leaves PyTorch's headers behind. The meanings are those of
`c10/util/Half.h`, `c10/macros/Macros.h` and `ATen/OpMathType.h` for device code.
"""

import re
from collections.abc import Collection, Iterator

from warpsmith.source.kernels.kernel_definitions import Dialect

_TYPES = (
    (r"\b(?:__)?half2?\b", "", ("#include <cuda_fp16.h>",)),
    (r"\b(?:__)?(?:nv|hip)_bfloat16\w*", "", ("#include <cuda_bf16.h>",)),
    (r"\b__nv_fp8\w+", "", ("#include <cuda_fp8.h>",)),
    (r"\bu?int(?:8|16|32|64)_t\b", "", ("#include <cstdint>",)),
    (r"\bwmma::", "", ("#include <mma.h>",)),
    (r"\bcooperative_groups\b", "", ("#include <cooperative_groups.h>",)),
    (r"\bcurand\w+\s*\(", "", ("#include <curand_kernel.h>",)),
    (
        r"\b(?:at|c10)::Half\b",
        "Half",
        (
            "#include <cuda_fp16.h>",
            "namespace c10 { using Half = __half; } namespace at { using c10::Half; }",
        ),
    ),
    (
        r"\b(?:at|c10)::BFloat16\b",
        "BFloat16",
        (
            "#include <cuda_bf16.h>",
            "namespace c10 { using BFloat16 = __nv_bfloat16; } namespace at { using c10::BFloat16; }",
        ),
    ),
    (
        r"\bat::(?:opmath_type|acc_type)\b",
        "opmath_type",
        (
            "#include <cuda_fp16.h>",
            "#include <cuda_bf16.h>",
            "namespace at { template <typename T> struct OpMath { using type = T; };",
            "template <> struct OpMath<__half> { using type = float; };",
            "template <> struct OpMath<__nv_bfloat16> { using type = float; };",
            "template <typename T> using opmath_type = typename OpMath<T>::type;",
            "template <typename T, bool> using acc_type = typename OpMath<T>::type; }",
        ),
    ),
)
_MACROS = (
    (r"C10_LAUNCH_BOUNDS_1", "#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)"),
    (
        r"C10_LAUNCH_BOUNDS_2",
        "#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)",
    ),
    (r"C10_HOST_DEVICE", "#define C10_HOST_DEVICE __host__ __device__"),
    (r"C10_DEVICE", "#define C10_DEVICE __device__"),
    (r"C10_RESTRICT", "#define C10_RESTRICT __restrict__"),
    (r"C10_WARP_SIZE", "#define C10_WARP_SIZE 32"),
    (r"CUDA_KERNEL_ASSERT", "#define CUDA_KERNEL_ASSERT(condition)"),
    (r"TORCH_CHECK", "#define TORCH_CHECK(...)"),
    (
        r"CUDA_KERNEL_LOOP",
        "#define CUDA_KERNEL_LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); "
        "i += blockDim.x * gridDim.x)",
    ),
    (r"CUDART_INF_F", "#include <math_constants.h>"),
    (r"FLT_MAX", "#include <float.h>"),
    (r"INT_MAX", "#include <limits.h>"),
)


_NUMBER_TYPES = (
    (re.compile(r"(?:__)?half2?"), "cuda_fp16.h"),
    (re.compile(r"(?:__)?(?:nv|hip)_bfloat162?"), "cuda_bf16.h"),
    (re.compile(r"__nv_fp8\w+"), "cuda_fp8.h"),
    (re.compile(r"u?int(?:8|16|32|64)_t"), "cstdint"),
)
"""Names of number types, and the toolkit's header that declares them."""

_INCLUDE = re.compile(r"#include <([\w.]+)>")
_OF_HIP = {
    f"{name}.h": f"hip/hip_{name.removeprefix('cuda_')}.h"
    for name in ("cuda_fp16", "cuda_bf16", "cooperative_groups", "math_constants")
}
"""HIP's headers for those of CUDA's toolkit."""


def number_header(name: str, dialect: Dialect = Dialect.CUDA) -> str:
    """The header of a number type; empty for other names."""
    return _of(dialect, next((header for names, header in _NUMBER_TYPES if names.fullmatch(name)), ""))


def framework_lines(text: str, declared: Collection[str], dialect: Dialect = Dialect.CUDA) -> list[str]:
    """Lines that give a source the meanings of PyTorch's names in it.

    Args:
        declared: names that the source itself declares; they keep their meaning.
    """
    found = dict.fromkeys(_lines(text, declared))
    return [line for line in (_INCLUDE.sub(lambda m: _included(dialect, m[1]), ln) for ln in found) if line]


def _included(dialect: Dialect, header: str) -> str:
    name = _of(dialect, header)
    return f"#include <{name}>" if name else ""


def _of(dialect: Dialect, header: str) -> str:
    """Counterpart of a header of CUDA's toolkit in a dialect; empty if there is none."""
    is_hip = dialect is Dialect.HIP and header.endswith(".h") and header not in ("float.h", "limits.h")
    return _OF_HIP.get(header, "") if is_hip else header


def _lines(text: str, declared: Collection[str]) -> Iterator[str]:
    for pattern, name, lines in _TYPES:
        if name not in declared and re.search(pattern, text):
            yield from lines
    for name, line in _MACROS:
        if name not in declared and re.search(rf"\b{name}\b", text):
            yield line
