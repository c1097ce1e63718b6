"""Default tolerance of an output, from the size of its values and the length of its sums."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Tolerance
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.verify.compare import root_mean_square
from warpsmith.verify.dtypes import epsilon, widened
from warpsmith.verify.in_spans import pieces

Array = NDArray[np.generic]

SUM_FACTOR = 3.0
"""Bound of the error of a plain sum of n random terms, in steps of float32 at its typical size times the root
of n; the largest among a million such sums is 1.2."""
SHORT_SUM = 16
"""Least number of terms that is assumed if the extents suggest fewer, since stencils and polynomials are not
visible in extents."""
SORTED_PARTIAL = 0.4
"""Largest partial sum of n sorted normal terms, divided by n times their standard deviation."""
OUTLIERS = 8.0
"""Limit of the typical size, as a multiple of the median: a few large elements must not hide the size of the
others."""
SAMPLED = 1 << 16
"""Number of elements from which the median is taken."""
SMALLEST = {
    Dtype.FLOAT8_E4M3FN: 2.0**-9,
    Dtype.FLOAT8_E4M3FNUZ: 2.0**-10,
    Dtype.FLOAT8_E5M2: 2.0**-16,
    Dtype.FLOAT8_E5M2FNUZ: 2.0**-17,
    Dtype.FLOAT16: 2.0**-23,
    Dtype.BFLOAT16: 2.0**-126,
    Dtype.FLOAT32: 2.0**-126,
}
"""Numbers of this size may be flushed to zero or be two steps apart."""


def typical_size(*draws: Array) -> float:
    """Typical size of the elements of an output; 0 if all are zero.

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
    """`typical_size` of every floating-point output, by name."""
    floats = [b.name for b in plan.mutated if b.dtype.is_float]
    return {name: typical_size(*(d[name] for d in draws)) for name in floats}


def longest_sum(plan: WorkloadPlan, output: BufferPlan) -> float:
    """Number of terms of the longest sum that the declared extents suggest, at least 1.

    An output that reads one input evenly sums the ratio of their numbers of elements. A product of two
    matrices sums the root of its reads of both. Sorted inputs add all terms of one sign first: partial sums
    reach n terms instead of the root of n, and roundings grow with them. They count as the number of random
    terms with an equally large sum.
    """
    read = [b.elements for b in plan.buffers if b.role is not Role.OUTPUT and b.name != output.name]
    alone = max((n / output.elements for n in read), default=1.0)
    first, second = sorted((*read, 0, 0), reverse=True)[:2]
    terms = max(1.0, alone, math.sqrt(first * second / output.elements))
    return max(terms, (SORTED_PARTIAL * terms) ** 2) if plan.family is Family.SORTED else terms


def rounded_share(terms: float, dtype: Dtype = Dtype.FLOAT32) -> float:
    """Error of a sum of this number of terms in at least float32, as a share of its typical size."""
    step = min(epsilon(dtype), epsilon(Dtype.FLOAT32))
    return SUM_FACTOR * step * math.sqrt(max(SHORT_SUM, terms))


def default_tolerance(base: Tolerance, dtype: Dtype, size: float, terms: float) -> Tolerance:
    """`base`, which is meant for elements of size 1, scaled to an output of this size that sums this number
    of terms.

    An element of typical size is held to what `base` alone requires; if elements are smaller than 1, to less.
    The allowance that sums need near zero is added to the absolute part and taken from the relative one. Sums
    are assumed to be computed in at least float32: one computed in half is less exact than necessary. What
    must be exact, such as a power of two, stays exact.
    """
    if not base.rtol and not base.atol:
        return base
    summed = min(base.rtol / 2, rounded_share(terms, dtype))
    atol = max(base.atol * min(size, 1.0), summed * size, SMALLEST.get(dtype, 2.0**-1022))
    excess = max(0.0, atol - base.atol) / size if size > 0.0 else 0.0
    # A copy is not validated: a job's request has a limit, an output's size has none.
    return base.model_copy(update={"atol": atol, "rtol": base.rtol - excess})


def passing_atol(got: Array, want: Array, rtol: float) -> float:
    """The smallest absolute tolerance, of two digits, with which `got` passes; infinite if none does."""
    needed = 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        for piece in pieces(slice(0, got.size)):
            a, b = widened(got[piece]), widened(want[piece])
            alike = (a == b) | (np.isnan(a) & np.isnan(b))
            over = np.where(alike, 0.0, np.abs(a - b) - rtol * np.abs(b))
            needed = max(needed, float(np.nan_to_num(over, nan=math.inf, posinf=math.inf).max(initial=0.0)))
    if not needed or math.isinf(needed):
        return needed
    unit = 10.0 ** (math.floor(math.log10(needed)) - 1)
    return float(f"{math.ceil(needed / unit) * unit:.2g}")
