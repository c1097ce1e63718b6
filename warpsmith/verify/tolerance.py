"""The tolerance of an output that the job gives none for: by what it holds and how long its sums are."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.job import Tolerance
from warpsmith.domain.kernel import Dtype, Role
from warpsmith.domain.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.verify.compare import pieces, root_mean_square
from warpsmith.verify.dtypes import epsilon, widened

Array = NDArray[np.generic]

SUM_FACTOR = 3.0
"""The largest error of a plain sum of n random terms, in steps of float32 at its typical size times the root
of n, is 1.2 among a million such sums."""
SHORT_SUM = 16
"""Terms that are allowed for where the extents suggest fewer: stencils and polynomials show in none."""
SORTED_PARTIAL = 0.4
"""Largest partial sum of n sorted normal terms, over n times their standard deviation."""
OUTLIERS = 8.0
"""Times the median that a typical size may be: few large elements must not hide what the others are."""
SAMPLED = 1 << 16
"""Elements of which the median is taken."""
SMALLEST = {Dtype.FLOAT16: 2.0**-23, Dtype.BFLOAT16: 2.0**-126, Dtype.FLOAT32: 2.0**-126}
"""Numbers this small may be flushed to zero, or lie two steps apart."""


def typical_size(*draws: Array) -> float:
    """How large the elements of an output are; 0 where all are zero.

    Args:
        draws: the output for several inputs, because a single sum may be near zero by chance.
    """
    sizes = [(root_mean_square(d), d.size) for d in draws]
    count = sum(n for _, n in sizes)
    if not count:
        return 0.0
    largest = max(size for size, _ in sizes)
    if not largest:
        return 0.0
    mean = largest * math.sqrt(sum((size / largest) ** 2 * n for size, n in sizes) / count)
    sampled = np.concatenate([np.abs(widened(d[:: -(-d.size // SAMPLED)])) for d in draws if d.size])
    seen = sampled[np.isfinite(sampled) & (sampled > 0)]
    return min(mean, OUTLIERS * float(np.median(seen))) if seen.size else mean


def output_sizes(plan: WorkloadPlan, draws: Sequence[Mapping[str, Array]]) -> dict[str, float]:
    """`typical_size` of every float output."""
    floats = [b.name for b in plan.mutated if b.dtype.is_float]
    return {name: typical_size(*(d[name] for d in draws)) for name in floats}


def longest_sum(plan: WorkloadPlan, output: BufferPlan) -> float:
    """Terms of the longest sum that the declared extents suggest, at least 1.

    An output that reads one input evenly sums as many elements of it as there are for each of its own; a
    product of two matrices sums the root of what it reads of both.

    Sorted inputs add all terms of one sign first: their partial sums reach n times a term instead of its
    root, and roundings grow with them. They count as the random terms whose sum is as large.
    """
    read = [b.elements for b in plan.buffers if b.role is not Role.OUTPUT and b.name != output.name]
    alone = max((n / output.elements for n in read), default=1.0)
    first, second = sorted((*read, 0, 0), reverse=True)[:2]
    terms = max(1.0, alone, math.sqrt(first * second / output.elements))
    return max(terms, (SORTED_PARTIAL * terms) ** 2) if plan.family is Family.SORTED else terms


def default_tolerance(base: Tolerance, dtype: Dtype, size: float, terms: float) -> Tolerance:
    """`base`, which is meant for elements of size 1, for an output of this size that sums so many terms.

    An element of typical size is held to what `base` alone holds it to; where elements are smaller than 1,
    to less. What sums need near zero is given to the absolute part and taken from the relative one. Sums
    are taken to be done in float32 at least: one done in half is less exact than it need be.
    """
    step = min(epsilon(dtype), epsilon(Dtype.FLOAT32))
    summed = min(base.rtol / 2, SUM_FACTOR * step * math.sqrt(max(SHORT_SUM, terms)))
    atol = max(base.atol * min(size, 1.0), summed * size, SMALLEST.get(dtype, 2.0**-1022))
    excess = max(0.0, atol - base.atol) / size if size > 0.0 else 0.0
    # A copy is not validated: what a job may ask for has a limit, what outputs hold has none.
    return base.model_copy(update={"atol": atol, "rtol": base.rtol - excess})


def passing_atol(got: Array, want: Array, rtol: float) -> float:
    """The smallest absolute tolerance, of two digits, with which `got` passes; infinite where none does."""
    needed = 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        for piece in pieces(got.size):
            a, b = widened(got[piece]), widened(want[piece])
            alike = (a == b) | (np.isnan(a) & np.isnan(b))
            over = np.where(alike, 0.0, np.abs(a - b) - rtol * np.abs(b))
            needed = max(needed, float(np.nan_to_num(over, nan=math.inf, posinf=math.inf).max(initial=0.0)))
    if not needed or math.isinf(needed):
        return needed
    unit = 10.0 ** (math.floor(math.log10(needed)) - 1)
    return float(f"{math.ceil(needed / unit) * unit:.2g}")
