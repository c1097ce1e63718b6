"""A workload without a promising trial keeps its baseline, and nothing is measured again for it."""

import pytest

from testbed.fakes import FakeOpener, fake_ports
from tests.unit.tuning.test_tuning_loops import JOB, finalists, times
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Measured
from warpsmith.testing.jobs import noises
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult, VerifyResult
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners

LARGE, SMALL = (w.key for w in JOB.workloads)


def baseline_of(job: Job = JOB) -> BaselineResult:
    """The fake device has no noise of its own."""
    found = measure_baseline(DeviceSession(job, fake_ports(times)[0]))
    return found.model_copy(update={"aa_widths": noises(0.001)})


def finalist(baseline: BaselineResult, **faster: float) -> Finalist:
    """A trial with these speed-ups over the baseline, by `large` and `small`."""
    timings = []
    for timing, gain in zip(baseline.timings, (faster["large"], faster["small"]), strict=True):
        assert timing.cold is not None
        cold = timing.cold.model_copy(update={"median_us": timing.cold.median_us / gain})
        timings.append(timing.model_copy(update={"cold": cold}))
    return Finalist(
        "c0",
        finalists()[0][0].template,
        {"BLOCK": 256, "PER": 1},
        Measured(timings=tuple(timings), objective=1.0),
    )


def verified(
    found: Finalist, baseline: BaselineResult, **plan: float | None
) -> tuple[VerifyResult, FakeOpener]:
    ports, opener = fake_ports(times)
    how = ComparisonPlan(4, baseline.aa_widths, **plan)
    return verify_winners(JOB, ports, [found], how, lambda: True, baseline), opener


def test_nothing_is_opened_or_compiled_without_a_promising_trial() -> None:
    baseline = baseline_of()
    result, opener = verified(finalist(baseline, large=1.0, small=0.5), baseline)
    assert result.comparisons == ()
    assert [c.candidate for c in result.choices] == [None, None]
    assert result.speedup == 1.0
    assert opener.opened == []
    assert opener.compiled == {}
    large, small = result.no_gain
    assert (large.workload, small.workload) == (LARGE, SMALL)
    assert small.best_us == pytest.approx(2 * small.baseline_us)


def test_only_the_workloads_with_a_promising_trial_are_compared() -> None:
    baseline = baseline_of()
    result, _ = verified(finalist(baseline, large=2.0, small=1.005), baseline)
    assert [c.workload for c in result.comparisons] == [LARGE]
    assert [n.workload for n in result.no_gain] == [SMALL]
    assert [(c.workload, c.candidate) for c in result.choices] == [(LARGE, "c0"), (SMALL, None)]


@pytest.mark.parametrize(("noise", "compared"), [(0.001, 0), (0.2, 2)])
def test_a_gain_that_the_noise_may_hide_is_measured(noise: float, compared: int) -> None:
    baseline = baseline_of().model_copy(update={"aa_widths": noises(noise)})
    result, _ = verified(finalist(baseline, large=0.95, small=0.95), baseline)
    assert len(result.comparisons) == compared
    assert len(result.no_gain) == 2 - compared


def test_a_bench_compares_every_workload() -> None:
    baseline = baseline_of()
    result, _ = verified(finalist(baseline, large=0.5, small=0.5), baseline, least_gain=None)
    assert [c.workload for c in result.comparisons] == [LARGE, SMALL]
    assert result.no_gain == ()
