"""How a job's seconds are divided: what is kept for verifying winners, and who gets what is left of it."""

from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job, Metric
from warpsmith.tuning.tasks import BaselineResult

LEAST_SHARE = 0.15
"""Of the job's seconds, for verification."""
SEARCH_SHARE = 0.4
"""Of them, for what lies between the baseline and the verification, where there are enough for the least."""
FIRST_SHARE, FIRST_S = 0.1, 5.0
"""Share of the job's seconds, and seconds, for the first batch of trials, whatever was spent before it."""
DEVICE_EACH_S = 4.0
"""Of a workload's verification on a device of its own, beside what the baseline took: six processes that
open the device, blocks of timings, four sanitizers. On an H200 4.6 and 3.3 s were seen."""
ENERGY_EACH_S = 30.0
"""The same for a job about energy: three configurations, each with runs of the energy counter."""
HOST_EACH_S = 0.5
"""The same where kernels run on the host's cores, which neither open slowly nor have sanitizers."""


def verification_s(job: Job, baseline: BaselineResult | None) -> float:
    """Seconds that are kept for verification: as many as it is expected to take, within bounds.

    What it is not given it takes beyond the budget: a comparison is never cut short, and one of a search
    that had no time is worth nothing.
    """
    least = LEAST_SHARE * job.budget.seconds
    if baseline is None:
        return least
    expected = baseline.seconds + _each_s(job.objective.metric, baseline) * len(job.workloads)
    rest = (1.0 - SEARCH_SHARE) * job.budget.seconds - baseline.seconds
    return max(least, min(expected, rest))


def first_batch_s(job: Job) -> float:
    """Seconds that the first batch of trials has at least: a baseline that took them all was for nothing."""
    return max(FIRST_SHARE * job.budget.seconds, FIRST_S)


def _each_s(metric: Metric, baseline: BaselineResult) -> float:
    if baseline.device.backend is Backend.REPLAY:
        return 0.0
    if metric is Metric.ENERGY:
        return ENERGY_EACH_S
    return HOST_EACH_S if baseline.device.shares_host else DEVICE_EACH_S
