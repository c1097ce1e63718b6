"""Cost of a configuration: the time of a launch, or its energy if the job minimises energy."""

import math
from collections.abc import Mapping, Sequence

from warpsmith.domain.jobs.job import CacheState, Job, Metric
from warpsmith.domain.templates.outcome import Measured, WorkloadTiming


def time_us(job: Job, timing: WorkloadTiming) -> float | None:
    """Microseconds in the objective's cache state; None if that was not timed."""
    summary = timing.cold if job.objective.cache is CacheState.COLD else timing.hot
    return None if summary is None else summary.median_us


def times_us(job: Job, timings: Sequence[WorkloadTiming]) -> dict[str, float]:
    """Microseconds by workload key, for workloads timed in the objective's cache state."""
    return {t.workload: us for t in timings if (us := time_us(job, t)) is not None}


def steady_times_us(job: Job, outcome: Measured) -> dict[str, float]:
    """Times of an outcome by workload, corrected for drift, so that they compare with the stored baseline."""
    return times_us(job, outcome.steady_timings)


def cost(job: Job, timing: WorkloadTiming) -> float | None:
    """Cost in the objective's unit: microseconds or millijoules; None if not measured."""
    return time_us(job, timing) if job.objective.metric is Metric.TIME else timing.energy_mj


def costs(job: Job, timings: Sequence[WorkloadTiming]) -> dict[str, float]:
    """Costs by workload key, for workloads where it was measured."""
    return {t.workload: value for t in timings if (value := cost(job, t))}


def objective_of(job: Job, timings: Sequence[WorkloadTiming], baseline: Mapping[str, float]) -> float:
    """Weighted geometric mean of cost over the baseline's; a workload not run keeps its baseline.

    Args:
        baseline: the baseline's cost by workload key.
    """
    ratios = {t.workload: (cost(job, t) or 0.0) / baseline[t.workload] for t in timings}
    total = sum(w.weight for w in job.workloads)
    logs = sum(w.weight * math.log(ratios.get(w.key) or 1.0) for w in job.workloads)
    return math.exp(logs / total)
