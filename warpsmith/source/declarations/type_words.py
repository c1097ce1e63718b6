"""Type names of CUDA, HIP and OpenCL as element types."""

import re
from collections.abc import Mapping

from warpsmith.domain.dtype import Dtype

_NAMES: dict[Dtype, str] = {
    Dtype.FLOAT8_E4M3FN: "__nv_fp8_e4m3 Float8_e4m3fn float_e4m3_t __hip_fp8_e4m3",
    Dtype.FLOAT8_E5M2: "__nv_fp8_e5m2 Float8_e5m2 float_e5m2_t __hip_fp8_e5m2",
    Dtype.FLOAT8_E4M3FNUZ: "Float8_e4m3fnuz __hip_fp8_e4m3_fnuz",
    Dtype.FLOAT8_E5M2FNUZ: "Float8_e5m2fnuz __hip_fp8_e5m2_fnuz",
    Dtype.FLOAT8_E8M0FNU: "__nv_fp8_e8m0 Float8_e8m0fnu float_ue8m0_t",
    Dtype.BOOL: "bool",
    Dtype.FLOAT16: "half __half half_t nv_half _Float16 float16_t Half __fp16",
    Dtype.BFLOAT16: "__nv_bfloat16 nv_bfloat16 bfloat16_t __bf16 BFloat16 hip_bfloat16 __hip_bfloat16",
    Dtype.FLOAT32: "float float32_t",
    Dtype.FLOAT64: "double float64_t",
    Dtype.INT8: "char int8_t",
    Dtype.INT16: "short int16_t",
    Dtype.INT32: "int int32_t",
    Dtype.INT64: "long int64_t longlong ptrdiff_t ssize_t intptr_t",
    Dtype.UINT8: "uchar uint8_t byte",
    Dtype.UINT16: "ushort uint16_t",
    Dtype.UINT32: "uint uint32_t",
    Dtype.UINT64: "ulong ulonglong uint64_t size_t uintptr_t",
}
_DTYPES = {name: dtype for dtype, names in _NAMES.items() for name in names.split()}
_VECTOR = re.compile(r"^(float|double|u?(?:int|long|longlong|short|char)|half)(2|3|4|8|16)$")
_PACKED = {
    "__half2": (Dtype.FLOAT16, 2),
    "__nv_bfloat162": (Dtype.BFLOAT16, 2),
    "nv_bfloat162": (Dtype.BFLOAT16, 2),
    "__nv_fp8x2_e4m3": (Dtype.FLOAT8_E4M3FN, 2),
    "__nv_fp8x4_e4m3": (Dtype.FLOAT8_E4M3FN, 4),
    "__nv_fp8x2_e5m2": (Dtype.FLOAT8_E5M2, 2),
    "__nv_fp8x4_e5m2": (Dtype.FLOAT8_E5M2, 4),
}
_INTEGER_WORDS = frozenset(("unsigned", "signed", "char", "short", "int", "long"))


def element_type(base: str, aliases: Mapping[str, str]) -> tuple[Dtype | None, int]:
    """Element type and lanes of a type without qualifiers; None if it is not numeric.

    Args:
        aliases: meanings of the file's own type names.
    """
    for _ in range(8):
        if base not in aliases:
            break
        base = aliases[base]
    words = base.split()
    if (len(words) > 1 or base in ("unsigned", "signed")) and set(words) <= _INTEGER_WORDS:
        return _integer(words), 1
    last = base.rsplit("::", maxsplit=1)[-1]
    if last in _DTYPES:
        return _DTYPES[last], 1
    if last in _PACKED:
        return _PACKED[last]
    vector = _VECTOR.match(last)
    if vector is not None:
        return _DTYPES[vector.group(1)], int(vector.group(2))
    return None, 1


def _integer(words: list[str]) -> Dtype:
    size = 8 if "char" in words else 16 if "short" in words else 64 if "long" in words else 32
    return Dtype(f"{'u' if 'unsigned' in words else ''}int{size}")
