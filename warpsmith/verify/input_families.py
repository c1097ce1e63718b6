"""Families of inputs: transformations of a drawn array within the argument's promise.

A float input without a draw, or with a normal one, may be scaled and may be zero anywhere. Uniform and
integer draws promise a range, and often that an integer is an index. They are rearranged and repeated, and
made zero only if the range contains zero. A mask may be anything of zeros and ones. Constants stay unchanged,
and so do the values of a file. Permutations, distinct integers and offsets keep what they promise:
`warpsmith.verify.arranged`.
"""

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan, Family
from warpsmith.verify.dtypes import narrowed

Array = NDArray[np.generic]

FACTOR_UP = 16.0
FACTOR_DOWN = 1.0 / 256.0
"""Scale factor: a power of two, so that scaled inputs keep their digits, and large enough that half floats
stay normal."""
FACTOR_DOWN_SHORT = 1.0 / 8.0
"""`FACTOR_DOWN` for 8-bit floats, most of which would else be zero."""
SPARSE_SHARE = 1.0 / 16.0
"""Share of the elements of a sparse input that are not zero."""
JOINING_EXPONENTS = (-20.0, -4.0)
"""Range of the power of two by which elements that join parts of a sparse matrix are smaller."""
SPIKE_EVERY = 1024
"""Distance between spikes in elements (at least one spike); the other elements are zero."""
SPIKE = 8.0
"""Value of a spike, in units of the drawn value."""
DISTINCT = 3
"""Number of different values in a repeated input."""
WIDE_EXPONENTS = (-20.0, 20.0)
"""Range of powers of two over which the sizes of a wide input are spread."""
NARROW_EXPONENTS = {
    Dtype.FLOAT16: (-8.0, 7.0),
    Dtype.FLOAT8_E5M2: (-8.0, 7.0),
    Dtype.FLOAT8_E5M2FNUZ: (-8.0, 7.0),
    Dtype.FLOAT8_E4M3FN: (-5.0, 4.0),
    Dtype.FLOAT8_E4M3FNUZ: (-5.0, 3.5),
}
"""`WIDE_EXPONENTS` for types in which products of two would else be infinite."""


def applied(family: Family, values: Array, buffer: BufferPlan, rng: np.random.Generator) -> Array:
    """`values` transformed by the family; unchanged if that would break the argument's promise."""
    draw = buffer.draw
    if family is Family.DECLARED or (draw is not None and draw.distribution is Distribution.CONSTANT):
        return values
    if family is Family.SORTED:
        return np.sort(values)
    if family is Family.REPEATED:
        return values[:DISTINCT][rng.integers(0, min(DISTINCT, values.size), values.size)]
    free = _is_free(buffer)
    if family in (Family.SCALED_UP, Family.SCALED_DOWN):
        down = FACTOR_DOWN_SHORT if buffer.dtype.size_bytes == 1 else FACTOR_DOWN
        factor = FACTOR_UP if family is Family.SCALED_UP else down
        return narrowed(values.astype(np.float64) * factor, buffer.dtype) if free else values
    if family is Family.WIDE:
        return _wide(values, buffer.dtype, rng) if free else values
    if not free and not _may_be_zero(draw, buffer):
        return values
    if family is Family.ZEROS:
        return np.zeros_like(values)
    share = SPARSE_SHARE if family is Family.SPARSE else 1.0 / SPIKE_EVERY
    kept = rng.random(values.size) < share
    if family is Family.SPARSE and len(buffer.shape) > 1 and values.size == buffer.elements:
        values = _parted(values, kept, buffer, rng)
    kept[rng.integers(0, values.size)] = True
    if family is Family.SPIKE and free:
        values = narrowed(values.astype(np.float64) * SPIKE, buffer.dtype)
    return np.where(kept, values, np.zeros_like(values))


def _parted(values: Array, kept: NDArray[np.bool_], buffer: BufferPlan, rng: np.random.Generator) -> Array:
    """Change `kept` so that a matrix is nearly reducible, since random ones mix at once.

    Rows by lot have an element on the diagonal or beside it, in a column of their own. What joins is small.
    """
    rows, columns = buffer.shape[-2:]
    places = kept.reshape(-1, rows, columns)
    alone = np.flatnonzero(rng.integers(0, 2, rows))
    own = alone * columns // rows
    places[:, alone] = False
    places[:, :, own] = False
    places[:, alone, np.roll(own, rng.integers(0, 2))] = True
    joins = np.zeros_like(places)
    joins[:, np.arange(rows), rng.integers(0, columns, rows)] = True
    joins &= ~places
    places |= joins
    factor = np.exp2(rng.uniform(*JOINING_EXPONENTS)) if buffer.dtype.is_float else 1
    return np.where(joins.reshape(-1), narrowed(values * factor, buffer.dtype), values)


def _wide(values: Array, dtype: Dtype, rng: np.random.Generator) -> Array:
    """Values whose sizes are spread evenly over many powers of two, with the signs of `values`."""
    low, high = NARROW_EXPONENTS.get(dtype, WIDE_EXPONENTS)
    sizes = np.exp2(rng.uniform(low, high, values.size))
    return narrowed(np.copysign(sizes, values.astype(np.float64)), dtype)


def _is_free(buffer: BufferPlan) -> bool:
    """True if the argument's promise lets its values be scaled, and be zero anywhere."""
    if not buffer.dtype.is_float or buffer.dtype is Dtype.FLOAT8_E8M0FNU:
        return False
    return buffer.draw is None or buffer.draw.distribution is Distribution.NORMAL


def _may_be_zero(draw: Draw | None, buffer: BufferPlan) -> bool:
    if draw is None:
        return not buffer.dtype.is_float  # integers are drawn from 0 on where the job does not say
    low, high = draw.range
    return draw.distribution is Distribution.MASK or low <= 0 < high
