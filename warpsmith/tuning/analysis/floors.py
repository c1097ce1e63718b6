"""The floor of each workload: the shortest time that the device allows. Pure."""

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import plan_workload
from warpsmith.errors import ExpressionError
from warpsmith.measure.roofline import Floor, floor_of
from warpsmith.tuning.tasks import BaselineResult


def floors(job: Job, baseline: BaselineResult) -> dict[str, Floor]:
    """The floor of every workload, by key; empty if the device's ceilings are unknown.

    It is also empty if elements of an output do not count and the job does not give its bytes: how many there
    are is known where the inputs are drawn.
    """
    in_part = any(a.kept is not None for a in job.kernel.declared) and job.bytes is None
    if baseline.ceilings is None or in_part:
        return {}
    found = {}
    scope = baseline.device.scope() | job.space.defaults
    for workload in job.workloads:
        try:
            plan = plan_workload(job.kernel, workload, scope, seed=0)
        except ExpressionError:
            continue
        found[workload.key] = floor_of(
            plan,
            baseline.ceilings,
            job.objective.cache,
            baseline.device.shares_host,
            job.operations_of(workload),
            job.bytes_of(workload),
        )
    return found
