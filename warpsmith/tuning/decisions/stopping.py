"""Reasons to end a search before its budget does. Pure."""

import math

from warpsmith.domain.jobs.job import Job, Metric
from warpsmith.tuning.analysis.floors import floors
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.tasks import BaselineResult

FLOOR_NEAR = 1.05
"""Factor of the floor within which a time is not searched further."""
LEAST_SEARCH_GAIN = 0.01
"""Least expected gain that is worth a search; the device's own noise may require more."""
MOST_NOISE = 0.05
"""Noise above which a job is not ended for its noise, since such noise may pass."""


def at_the_floor(job: Job, baseline: BaselineResult, objective: float | None) -> str:
    """The reason why no gain is left; empty if there is one, or if it is unknown.

    The floor moves every byte once. A kernel that is faster than the floor by more than the margin reads only
    part of its inputs, or reads them from a cache, so the floor does not apply. The same holds if kernels
    share the host's cores, whose caches and other work blur the floor. A floor of operations is that of plain
    single precision, which matrix units undercut, so it ends nothing.
    """
    if job.objective.metric is Metric.ENERGY:
        return ""
    times = {t.workload: time_us(job, t) for t in baseline.timings}
    limits = floors(job, baseline)
    if objective is None or baseline.device.shares_host or len(limits) < len(job.workloads):
        return ""
    if not job.budget.stop_early:
        return ""
    if any(limit.bound == "flops" for limit in limits.values()):
        return ""
    total, logs = 0.0, 0.0
    for workload in job.workloads:
        time = times.get(workload.key)
        if not time:
            return ""
        logs += workload.weight * math.log(limits[workload.key].us / time)
        total += workload.weight
    ratio = objective / math.exp(logs / total)
    if not 1 / FLOOR_NEAR <= ratio <= FLOOR_NEAR:
        return ""
    return f"the best is within {FLOOR_NEAR - 1:.0%} of what memory and launches of this device allow"


def no_gain(expected: float | None, baseline: BaselineResult) -> str:
    """The reason why a planner's expected gain is not worth its cost; empty if it is."""
    if expected is None:
        return ""
    least = 1 + max(LEAST_SEARCH_GAIN, min(MOST_NOISE, baseline.least_width))
    if expected >= least:
        return ""
    return f"the planner expects {expected:.3g}x, and below {least:.3g}x is noise"
