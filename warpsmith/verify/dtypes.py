"""Element types as NumPy types."""

from functools import cache

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.kernel import Dtype


def numpy_dtype(dtype: Dtype) -> np.dtype[np.generic]:
    """The NumPy type with the same bits (bfloat16 comes from ml_dtypes)."""
    if dtype is Dtype.BFLOAT16:
        bfloat16: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(dtype.value)


def reference_dtype(dtype: Dtype) -> np.dtype[np.generic]:
    """The type in which a reference computes: float64, or the widest integer of the same sign."""
    if dtype.is_float:
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if dtype.value.startswith("u") else np.int64)


def widened(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """The same numbers as float64; two-byte types use a look-up table. The result may be `values` itself."""
    if values.dtype.itemsize == 2 and values.dtype.kind not in "iu":
        result: NDArray[np.float64] = np.take(_all_of(values.dtype), values.view(np.uint16))
        return result
    # A kernel may leave signalling NaNs, about which the conversion would warn.
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64, copy=False)


@cache
def _all_of(dtype: np.dtype[np.generic]) -> NDArray[np.float64]:
    """Values of all 65,536 patterns of a two-byte type."""
    with np.errstate(invalid="ignore"):
        return np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float64)


_EPSILON = {
    Dtype.FLOAT16: 2.0**-10,
    Dtype.BFLOAT16: 2.0**-7,
    Dtype.FLOAT32: 2.0**-23,
    Dtype.FLOAT64: 2.0**-52,
}
_LARGEST = {
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
