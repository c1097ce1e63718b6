"""The verdict of a workload depends on its own data only: noise is measured on each, whatever their order."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from testbed.fakes import fake_ports
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Comparison, Measured, Verdict
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners

NOISY, QUIET, LONG = 1001, 4096, 8192
WINNER: Configuration = {"BLOCK": 256, "PER": 1}
GAIN = 1.06
SWING = 0.3
"""Standard deviation of the logarithm of a timing."""


class Device:
    """Gains the same on every workload; timings of the smallest swing at random."""

    def __init__(self, long_us: float = 900.0) -> None:
        self._long_us = long_us
        self._random = random.Random(1)

    def __call__(self, configuration: Configuration, workload: str) -> float:
        plain = {f"n={NOISY}": 2.0, f"n={QUIET}": 50.0, f"n={LONG}": self._long_us}.get(workload, 70.0)
        swing = math.exp(self._random.gauss(0.0, SWING)) if workload == f"n={NOISY}" else 1.0
        return plain * swing / (GAIN if configuration == WINNER else 1.0)


def job_of(order: Sequence[int]) -> Job:
    return scale_job(workloads=[{"dimensions": {"n": n}} for n in order])


def compared(job: Job, device: Device, baseline: BaselineResult) -> dict[str, Comparison]:
    ports, _ = fake_ports(device)
    template = DeviceSession(job, ports).inputs.user_template
    timings = tuple(t.model_copy(update={"max_error": 0.0}) for t in baseline.timings)
    finalist = Finalist("c0", template, WINNER, Measured(timings=timings, objective=1 / GAIN))
    plan = ComparisonPlan(12, baseline.aa_widths, least_gain=None)
    result = verify_winners(job, ports, [finalist], plan, lambda: True, baseline)
    return {c.workload: c for c in result.comparisons}


@pytest.mark.parametrize("order", list(itertools.permutations((NOISY, QUIET, LONG))))
def test_a_verdict_does_not_hang_on_the_order_of_workloads(order: tuple[int, ...]) -> None:
    job, device = job_of(order), Device()
    baseline = measure_baseline(DeviceSession(job, fake_ports(device)[0]))
    assert baseline.aa_widths.keys() == {w.key for w in job.workloads}
    assert baseline.width_of(f"n={NOISY}") > GAIN - 1
    assert baseline.width_of(f"n={QUIET}") < 0.01 > baseline.width_of(f"n={LONG}")
    found = compared(job, device, baseline)
    assert found[f"n={QUIET}"].verdict is found[f"n={LONG}"].verdict is Verdict.FASTER
    assert found[f"n={NOISY}"].verdict is not Verdict.FASTER
    for key, comparison in found.items():
        assert comparison.aa_width == baseline.aa_widths[key]


@pytest.mark.parametrize("order", [(QUIET, LONG), (LONG, QUIET)])
def test_a_comparison_takes_the_noise_from_its_own_blocks_where_launches_are_long(
    order: tuple[int, ...],
) -> None:
    job, device = job_of(order), Device(long_us=2e6)
    baseline = measure_baseline(DeviceSession(job, fake_ports(device)[0]))
    assert f"n={LONG}" not in baseline.aa_widths
    assert any("the noise was left to the comparisons" in note for note in baseline.notes)
    found = compared(job, device, baseline)
    assert found[f"n={LONG}"].verdict is Verdict.FASTER
    assert found[f"n={LONG}"].aa_width < 0.01
