"""Room that roundings need in outputs of inputs that cancel.

A mean taken from rows that are nearly constant leaves what is small beside its inputs, with roundings of
their size. The output's size does not show that. So the reference is asked how far outputs move when inputs
do by as much as sums are rounded.
"""

from collections.abc import Callable, Mapping

import numpy as np

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.verify.dtypes import widened
from warpsmith.verify.run_report import Array
from warpsmith.verify.tolerance import longest_sum, rounded_share, typical_size

Outputs = Mapping[str, Array]

MOST_SHARE = 5e-5
"""Largest share of their size by which inputs are moved: half of the relative tolerance of float32."""


def may_cancel(job: Job, plan: WorkloadPlan) -> list[BufferPlan]:
    """Float outputs whose default tolerance may be too narrow; none on inputs that the job declares."""
    if plan.family is Family.DECLARED:
        return []
    return [b for b in plan.mutated if b.dtype.is_float and b.name not in job.tolerances]


def room_of(
    plan: WorkloadPlan, outputs: list[BufferPlan], want: Outputs, moved: Callable[[float], Outputs]
) -> dict[str, float]:
    """Absolute error that roundings explain, by the output's name, in its own unit.

    Args:
        outputs: see `may_cancel`.
        want: what the reference makes of the inputs.
        moved: what it makes of inputs whose floats are moved by up to that share of their size.
    """
    # What sums rows and writes as many elements as it reads has no extent that says so.
    rows = max((b.shape[-1] for b in plan.buffers if b.role is not Role.OUTPUT and b.shape), default=1)
    shares = {
        b.name: min(rounded_share(max(longest_sum(plan, b), rows), b.dtype), MOST_SHARE) for b in outputs
    }
    made = {share: moved(share) for share in set(shares.values())}
    return {name: _apart(made[share][name], want[name]) for name, share in shares.items()}


def _apart(moved: Array, want: Array) -> float:
    """Typical difference; a few that jump, as those of a comparison do, do not count."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = widened(moved) - widened(want)
    return typical_size(np.where(np.isfinite(apart), apart, 0.0))
