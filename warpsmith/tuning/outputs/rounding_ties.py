"""Integers that a kernel rounds floats to, and how many of them a right kernel may have a step off.

Where a float lies next to the middle of two integers, roundings before it decide. Another order of the same
operations then gives the other integer. Whether a draw holds such floats is luck, so what may differ is asked
of the reference: which of its integers change when its floats are moved by as much as roundings do.
"""

import math
from collections.abc import Callable, Container, Mapping, Sequence

import numpy as np

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import BufferPlan, WorkloadPlan
from warpsmith.verify.dtypes import widened
from warpsmith.verify.run_report import Array
from warpsmith.verify.tolerance import longest_sum, rounded_share

Outputs = Mapping[str, Array]

FAR = 2.0**-10
"""Share of their size by which floats are moved to count how many integers lie near the middle of two; few
do by roundings alone, and the count falls with the share."""
BY_CHANCE = 1e-6
"""Probability with which a right kernel may have more such integers than are allowed."""
MANY, DEVIATIONS = 500.0, 5.0
"""Mean above which a Poisson variable is taken for a normal one, and its deviations for that probability."""
MOST_MISSES = 0.05
"""Largest share of an output's elements in which the user's kernel may be a step off."""


def rounds_floats(job: Job, plan: WorkloadPlan) -> list[BufferPlan]:
    """Integer outputs that floats may be rounded to, and whose tolerance the job does not give."""
    if not any(b.dtype.is_float for b in plan.buffers):
        return []
    return [b for b in plan.mutated if _is_integer(b.dtype) and b.name not in job.tolerances]


def ties_of(
    plan: WorkloadPlan,
    outputs: Sequence[BufferPlan],
    want: Outputs,
    moved: Callable[[float], Outputs],
    rounded: Container[str] = (),
) -> dict[str, float]:
    """Number of elements of each output that roundings may put a step off, by name; none of what must be
    exact.

    What a kernel adds to its inputs has roundings, too. Inputs that are far smaller may show none of them
    when they are moved, so `rounded` says of which outputs others have shown some.

    Args:
        outputs: see `rounds_floats`.
        want: what the reference makes of the inputs.
        moved: what it makes of inputs whose floats are moved by up to that share of their size.
        rounded: names of outputs that have such elements on the workload's own inputs.
    """
    far, found = moved(FAR), {}
    for output in outputs:
        share, integers = rounded_share(longest_sum(plan, output)), want[output.name]
        # Values on the very middle are as many however little floats are moved; half of them change.
        steps = _steps(far[output.name], integers) * share / FAR
        steps += 2 * _steps(moved(share)[output.name], integers)
        if steps or output.name in rounded:
            # What is rounded may have been added to, as by a zero point, and has roundings of its own size.
            found[output.name] = steps + share * float(np.abs(widened(integers)).sum())
    return found


def own_misses(job: Job, plan: WorkloadPlan, got: Outputs, want: Outputs) -> dict[str, float]:
    """Share of each integer output in which the user's kernel is likely to be a step off, by name.

    Empty if it is further off, or in more than `MOST_MISSES` of an output.
    """
    found = {}
    for output in rounds_floats(job, plan):
        elements = want[output.name].size
        misses = int(np.count_nonzero(got[output.name] != want[output.name]))
        if misses != _steps(got[output.name], want[output.name]) or misses > MOST_MISSES * elements:
            return {}
        if misses:
            found[output.name] = (misses + math.sqrt(misses)) / elements
    return found


def allowed_share(expected: float, elements: int) -> float:
    """Share of an output that may be a step off.

    Args:
        expected: how many of its elements are expected to be.
    """
    return min(_most_of(expected) / elements, 1.0)


def _most_of(expected: float) -> int:
    """The least number that a Poisson variable of this mean exceeds with a probability below `BY_CHANCE`."""
    if expected > MANY:
        return math.ceil(expected + DEVIATIONS * math.sqrt(expected))
    term, most = math.exp(-expected), 0
    above = 1.0 - term
    while above > BY_CHANCE:
        most += 1
        term *= expected / most
        above -= term
    return most


def _steps(got: Array, want: Array) -> int:
    with np.errstate(invalid="ignore", over="ignore"):
        return int(np.count_nonzero(np.abs(widened(got) - widened(want)) == 1.0))


def _is_integer(dtype: Dtype) -> bool:
    return not dtype.is_float and dtype is not Dtype.BOOL
