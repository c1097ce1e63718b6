"""Families of inputs: transformations of a drawn array within the argument's promise.

A float input without a draw, or with a normal one, may be scaled and may be zero anywhere. Uniform and
integer draws promise a range, and often that an integer is an index. They are rearranged and repeated, and
made zero only if the range contains zero. Constants stay unchanged.
"""

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.kernel import Distribution, Draw, Dtype
from warpsmith.domain.plan import BufferPlan, Family

Array = NDArray[np.generic]

FACTOR_UP = 16.0
FACTOR_DOWN = 1.0 / 256.0
"""Scale factor: a power of two, so that scaled inputs keep their digits, and large enough that half floats
stay normal."""
SPARSE_SHARE = 1.0 / 16.0
"""Share of the elements of a sparse input that are not zero."""
SPIKE_EVERY = 1024
"""Distance between spikes in elements (at least one spike); the other elements are zero."""
SPIKE = 8.0
"""Value of a spike, in units of the drawn value."""
DISTINCT = 3
"""Number of different values in a repeated input."""
WIDE_EXPONENTS = (-20.0, 20.0)
"""Range of powers of two over which the sizes of a wide input are spread."""
WIDE_HALF_EXPONENTS = (-8.0, 7.0)
"""The same range for half floats, in which products of two stay finite."""


def applied(family: Family, values: Array, buffer: BufferPlan, rng: np.random.Generator) -> Array:
    """`values` transformed by the family; unchanged if that would break the argument's promise."""
    draw = buffer.draw
    if family is Family.DECLARED or (draw is not None and draw.distribution is Distribution.CONSTANT):
        return values
    if family is Family.SORTED:
        return np.sort(values)
    if family is Family.REPEATED:
        return values[:DISTINCT][rng.integers(0, min(DISTINCT, values.size), values.size)]
    free = buffer.dtype.is_float and (draw is None or draw.distribution is Distribution.NORMAL)
    if family in (Family.SCALED_UP, Family.SCALED_DOWN):
        factor = FACTOR_UP if family is Family.SCALED_UP else FACTOR_DOWN
        return (values.astype(np.float64) * factor).astype(values.dtype) if free else values
    if family is Family.WIDE:
        return _wide(values, buffer.dtype, rng) if free else values
    if not free and not _may_be_zero(draw, buffer):
        return values
    if family is Family.ZEROS:
        return np.zeros_like(values)
    share = SPARSE_SHARE if family is Family.SPARSE else 1.0 / SPIKE_EVERY
    kept = rng.random(values.size) < share
    kept[rng.integers(0, values.size)] = True
    if family is Family.SPIKE and free:
        values = (values.astype(np.float64) * SPIKE).astype(values.dtype)
    return np.where(kept, values, np.zeros_like(values))


def _wide(values: Array, dtype: Dtype, rng: np.random.Generator) -> Array:
    """Values whose sizes are spread evenly over many powers of two, with the signs of `values`."""
    low, high = WIDE_HALF_EXPONENTS if dtype is Dtype.FLOAT16 else WIDE_EXPONENTS
    sizes = np.exp2(rng.uniform(low, high, values.size))
    return np.copysign(sizes, values.astype(np.float64)).astype(values.dtype)


def _may_be_zero(draw: Draw | None, buffer: BufferPlan) -> bool:
    if draw is None:
        return not buffer.dtype.is_float  # integers are drawn from 0 on where the job does not say
    return draw.low <= 0 < draw.high
