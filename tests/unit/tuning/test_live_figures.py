"""What a search shows while it runs is a ratio to the baseline as it is now, not as it was stored."""

import pytest

from testbed.fakes import ListSink, fake_ports
from tests.unit.tuning.test_tuning_loops import LIMITS, Listed
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import steady_times_us, times_us
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.trials.slice import SliceStart, run_slice

JOB = scale_job()
TRIED: list[Configuration] = [{"BLOCK": b, "PER": 1} for b in (32, 128, 256)]
GAINS = {32: 0.8, 64: 1.0, 128: 1.25, 256: 1.1}


def gain_of(configuration: Configuration) -> float:
    return GAINS[int(configuration["BLOCK"])]


class Device:
    """Its second workload has times of its own; one timing of a configuration is too short by a third."""

    def __init__(self, lucky: int | None = None) -> None:
        self.lucky = lucky

    def __call__(self, configuration: Configuration, workload: str) -> float:
        us = {"n=4096": 100.0, "n=1001": 40.0}[workload] / gain_of(configuration)
        if configuration["BLOCK"] == self.lucky:
            self.lucky, us = None, us * 2 / 3
        return us


def stored(slow: dict[str, float]) -> BaselineResult:
    """The baseline, whose timings took longer then by these factors."""
    found = measure_baseline(DeviceSession(JOB, fake_ports(Device())[0]))
    timings = tuple(t.scaled(slow.get(t.workload, 1.0)) for t in found.timings)
    return found.model_copy(update={"timings": timings})


def searched(device: Device, baseline: BaselineResult) -> list[tuple[Configuration, Measured]]:
    session = DeviceSession(JOB, fake_ports(device)[0])
    sink, template = ListSink(), session.inputs.user_template
    run_slice(session, template, baseline, Listed(TRIED), sink, LIMITS, SliceStart())
    found = [(c, o) for c, o in sink.trials if isinstance(o, Measured)]
    assert len(found) == len(sink.trials) == 1 + len(TRIED)
    return found


@pytest.mark.parametrize("slow", [{"n=4096": 2.0, "n=1001": 2.0}, {"n=4096": 1.05}, {"n=1001": 2.5}, {}])
def test_a_stored_baseline_that_was_too_slow_makes_no_gain(slow: dict[str, float]) -> None:
    baseline = stored(slow)
    before = times_us(JOB, baseline.timings)
    found = searched(Device(), baseline)
    best = min(found, key=lambda f: f[1].objective)
    assert 1 / best[1].objective == pytest.approx(1.25, rel=0.01)
    live = {key: min(steady_times_us(JOB, o)[key] for _, o in found) for key in before}
    for key, us in live.items():
        assert before[key] / us == pytest.approx(1.25, rel=0.01), key


def test_the_luckiest_timing_is_not_shown_as_the_best() -> None:
    baseline = stored({})
    before = times_us(JOB, baseline.timings)
    found = searched(Device(lucky=256), baseline)
    assert min(o.objective for _, o in found) == pytest.approx(1 / 1.25, rel=0.01)
    for configuration, outcome in found:
        for key, us in steady_times_us(JOB, outcome).items():
            assert before[key] / us == pytest.approx(gain_of(configuration), rel=0.01), configuration
