"""Division of a job's seconds between verification and everything else."""

from warpsmith.domain.jobs.job import Job, Metric, Objective
from warpsmith.tuning.decisions.stopping import LEAST_SEARCH_GAIN
from warpsmith.tuning.tasks import BaselineResult

LEAST_SHARE = 0.15
"""Fraction of the job's seconds that verification gets at least."""
SEARCH_SHARE = 0.4
"""Share of the job's seconds kept for agents and search, once `LEAST_SHARE` is set aside for verification."""
FIRST_SHARE, FIRST_S = 0.1, 5.0
"""Share of the job's seconds, and least seconds, for the first batch of trials, whatever was spent before
it."""
CHECKS_SHARE = 0.3
"""Seconds of a verification's references and checks on a device with its own memory, divided by those of the
baseline. With `DEVICE_EACH_S` it foretells 17.5 and 14.6 s of two jobs with three workloads on an H200, which
took 15.0 and 13.3 s (baselines of 18.2 and 8.5 s); the share for all of it foretold 30.2 and 20.5."""
DEVICE_EACH_S = 4.0
"""Seconds to verify a workload on a device with its own memory, beyond references and checks: six processes
that open the device, blocks of timings, four sanitizers. On an H200 4.6 and 3.3 s were measured."""
ENERGIES_S = 6.0
"""Seconds to measure the energies of two kernels: six runs of the energy counter."""
ENERGY_EACH_S = 30.0
"""`DEVICE_EACH_S` if the objective is energy: three configurations and their energies."""
HOST_EACH_S = 0.5
"""`DEVICE_EACH_S` if kernels run on the host's cores, which open quickly, one of them for guard pages."""


def verification_s(job: Job, baseline: BaselineResult | None, best: float | None = None) -> float:
    """Seconds reserved for verification: its expected time, within bounds.

    Verification may overrun the budget: a comparison is never truncated. A comparison after a search without
    time would be worthless. While the best trial shows no gain, one workload's time is kept: what promises no
    gain is not verified, and the search may still find one for a workload or two.

    Args:
        best: the best objective so far, relative to the baseline; None: nothing was measured yet.
    """
    least = LEAST_SHARE * job.budget.seconds
    if baseline is None:
        return least
    checks_s = baseline.seconds * (1.0 if baseline.device.shares_host else CHECKS_SHARE)
    expected = checks_s + _each_s(job.objective, baseline) * len(job.workloads)
    if best is not None and best * (1 + LEAST_SEARCH_GAIN) > 1 and job.objective.metric is Metric.TIME:
        expected /= len(job.workloads)
        least /= len(job.workloads)
    rest = (1.0 - SEARCH_SHARE) * job.budget.seconds - baseline.seconds
    return max(least, min(expected, rest))


def search_s(job: Job, baseline: BaselineResult | None, best: float | None, elapsed_s: float) -> float:
    """Seconds that agents and search have left before the verification; negative if it is overdue.

    Whoever decides on a slice and whoever runs it must go by the same number. A slice that found less would
    end at once, and without a device the job's clock stands still: it would be decided on for ever.

    Args:
        best: see `verification_s`.
        elapsed_s: seconds of the job's budget that are gone.
    """
    return job.budget.seconds - verification_s(job, baseline, best) - elapsed_s


def first_batch_s(job: Job) -> float:
    """Least seconds of the first batch of trials: a baseline that used all the time would be in vain."""
    return max(FIRST_SHARE * job.budget.seconds, FIRST_S)


def _each_s(objective: Objective, baseline: BaselineResult) -> float:
    if baseline.device.backend.language.is_recorded:
        return 0.0
    if objective.metric is Metric.ENERGY:
        return ENERGY_EACH_S
    own_s = HOST_EACH_S if baseline.device.shares_host else DEVICE_EACH_S
    return own_s + ENERGIES_S if objective.energy else own_s
