"""Element types as NumPy types."""

import math
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.dtype import Dtype


def numpy_dtype(dtype: Dtype) -> np.dtype[np.generic]:
    """The NumPy type with the same bits (bfloat16 and 8-bit floats come from ml_dtypes).

    A bool is a uint8, because a kernel may leave other bytes than 0 and 1 in one.
    """
    if dtype is Dtype.BOOL:
        return np.dtype(np.uint8)
    of_ml_dtypes = getattr(ml_dtypes, dtype.value, None)
    return np.dtype(dtype.value if of_ml_dtypes is None else of_ml_dtypes)


def reference_dtype(dtype: Dtype) -> np.dtype[np.generic]:
    """The type in which a reference computes: float64, bool, or the widest integer of the same sign."""
    if dtype.is_float:
        return np.dtype(np.float64)
    if dtype is Dtype.BOOL:
        return np.dtype(np.bool_)
    return np.dtype(np.uint64 if dtype.value.startswith("u") else np.int64)


def wanted_dtype(dtype: Dtype) -> np.dtype[np.generic]:
    """The type in which an output's expected values are kept.

    A short float's are kept in float32, whose rounding is at most 2^-13 of the short type's last place: half
    the bytes to move and to compare.
    """
    short = dtype.is_float and dtype.size_bytes <= 2
    return np.dtype(np.float32) if short else reference_dtype(dtype)


def as_wanted(values: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
    """Expected values of an output, flat, in `wanted_dtype`; finite ones stay finite."""
    wanted = wanted_dtype(dtype)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        kept = np.ascontiguousarray(values, dtype=wanted).reshape(-1)
    if wanted == np.float32 and not math.isfinite(kept.max(initial=0.0) - kept.min(initial=0.0)):
        beyond = np.isinf(kept) & np.isfinite(values.reshape(-1))
        kept = np.where(beyond, np.copysign(np.finfo(np.float32).max, kept), kept)
    return kept


def widened(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Widen numbers to float64; one- and two-byte types use a look-up table. The result may be `values`
    itself."""
    if has_table(values.dtype):
        result: NDArray[np.float64] = np.take(values_of_patterns(values.dtype), _patterns(values))
        return result
    # A kernel may leave signalling NaNs, about which the conversion would warn.
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64, copy=False)


def has_table(dtype: np.dtype[np.generic]) -> bool:
    """True of the float types of one or two bytes, whose values are looked up."""
    return dtype.itemsize <= 2 and dtype.kind not in "iub"


@cache
def values_of_patterns(dtype: np.dtype[np.generic]) -> NDArray[np.float64]:
    """Values of all 256 patterns of a one-byte type, or all 65,536 of a two-byte one."""
    unsigned = np.uint16 if dtype.itemsize == 2 else np.uint8
    with np.errstate(invalid="ignore"):
        return np.arange(1 << 8 * dtype.itemsize, dtype=unsigned).view(dtype).astype(np.float64)


def singles_into(out: NDArray[np.float32], values: NDArray[np.generic]) -> None:
    """Write numbers as float32 into `out`: those of shorter types exactly, others rounded or infinite."""
    if has_table(values.dtype):
        # Every pattern is in the table; "clip" spares a second copy.
        np.take(_singles_of(values.dtype), _patterns(values), out=out, mode="clip")
        return
    with np.errstate(invalid="ignore", over="ignore"):
        np.copyto(out, values, casting="unsafe")


def narrowed(values: NDArray[np.generic], dtype: Dtype) -> NDArray[np.generic]:
    """Numbers as elements of a type. One beyond the range of an 8-bit float becomes its largest number."""
    if dtype.is_float and dtype.size_bytes == 1:
        lowest = 2.0**-127 if dtype is Dtype.FLOAT8_E8M0FNU else -largest(dtype)
        values = np.clip(values.astype(np.float32, copy=False), lowest, largest(dtype))
    with np.errstate(over="ignore"):
        return values.astype(numpy_dtype(dtype))


def _patterns(values: NDArray[np.generic]) -> NDArray[np.unsignedinteger]:
    return values.view(np.uint16) if values.dtype.itemsize == 2 else values.view(np.uint8)


@cache
def _singles_of(dtype: np.dtype[np.generic]) -> NDArray[np.float32]:
    """`_all_of` as float32, which holds every value of such a type."""
    with np.errstate(invalid="ignore"):
        return values_of_patterns(dtype).astype(np.float32)


_EPSILON = {
    Dtype.FLOAT8_E4M3FN: 2.0**-3,
    Dtype.FLOAT8_E4M3FNUZ: 2.0**-3,
    Dtype.FLOAT8_E5M2: 2.0**-2,
    Dtype.FLOAT8_E5M2FNUZ: 2.0**-2,
    Dtype.FLOAT8_E8M0FNU: 1.0,
    Dtype.FLOAT16: 2.0**-10,
    Dtype.BFLOAT16: 2.0**-7,
    Dtype.FLOAT32: 2.0**-23,
    Dtype.FLOAT64: 2.0**-52,
}
_LARGEST = {
    Dtype.FLOAT8_E4M3FN: 448.0,
    Dtype.FLOAT8_E4M3FNUZ: 240.0,
    Dtype.FLOAT8_E5M2: 57344.0,
    Dtype.FLOAT8_E5M2FNUZ: 57344.0,
    Dtype.FLOAT8_E8M0FNU: 2.0**127,
    Dtype.FLOAT16: 65504.0,
    Dtype.BFLOAT16: (2 - 2.0**-7) * 2.0**127,
    Dtype.FLOAT32: (2 - 2.0**-23) * 2.0**127,
}


def epsilon(dtype: Dtype) -> float:
    """Distance from 1 to the next number; 0 for integers."""
    return _EPSILON.get(dtype, 0.0)


def largest(dtype: Dtype) -> float:
    """The largest finite number of a float type; infinity if NumPy's own type is not smaller."""
    return _LARGEST.get(dtype, float("inf"))


def smallest_normal(dtype: Dtype) -> float:
    """The smallest positive number of a float type that is not subnormal."""
    return float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_normal)  # type: ignore[no-untyped-call]
