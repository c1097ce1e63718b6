"""Element types."""

import re
from enum import StrEnum


class Dtype(StrEnum):
    """Element types of arguments. The names of 8-bit floats are those of ml_dtypes and PyTorch."""

    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8_E8M0FNU = "float8_e8m0fnu"
    """A power of two without a sign: the scale of a block."""
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    """A byte that is 0 or 1."""

    @property
    def size_bytes(self) -> int:
        """Bytes of one element."""
        digits = re.search(r"\d+", self.value)
        return int(digits.group()) // 8 if digits else 1

    @property
    def is_float(self) -> bool:
        """True for the floating-point types."""
        return "float" in self.value
