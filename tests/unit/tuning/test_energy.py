"""Energy from a counter that moves in steps; what is served and shown where energy counts."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.metering import Meter, cuda_job, hot_ports
from warpsmith.domain.jobs.job import CacheState, Job
from warpsmith.domain.templates.outcome import Measured
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.measure import energy as measuring
from warpsmith.measure.energy import EnergyWatch, energy_plan, pareto, power_w
from warpsmith.measure.nvml import Nvml
from warpsmith.testing.jobs import noises, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.tasks import VerifyResult
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners


class NvmlError(Exception):
    """As pynvml raises it."""


@dataclass
class StandIn:
    """NVML with the energy counter alone: millijoules, moved in steps."""

    NVMLError = NvmlError
    millijoules: Callable[[], float] | None

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int:
        if self.millijoules is None:
            raise NvmlError("not supported")
        return int(self.millijoules())


def test_joules_come_from_nvml_s_millijoules() -> None:
    assert Nvml(StandIn(lambda: 12_345), 0).energy_j() == 12.345
    assert Nvml(StandIn(None), 0).energy_j() is None


def stepped(watts: float, step_s: float, seconds: float, start: float = 5.0) -> list[tuple[float, float]]:
    """Readings every 4 ms of a counter that moves every `step_s`."""
    times = [0.004 * i for i in range(int(seconds / 0.004))]
    return [(start + t, 1000 + watts * step_s * int(t / step_s)) for t in times]


@pytest.mark.parametrize("step_s", [0.02, 0.05, 0.1])
def test_power_is_right_whatever_the_counter_s_step(step_s: float) -> None:
    assert power_w(stepped(350.0, step_s, 0.8)) == pytest.approx(350.0, rel=0.02)


def test_the_start_of_a_run_does_not_count() -> None:
    idle = [(t, joules) for t, joules in stepped(80.0, 0.02, 0.1)]
    busy = stepped(400.0, 0.02, 0.8, start=5.1)
    joined = [*idle, *((t, joules + idle[-1][1] - 1000) for t, joules in busy)]
    assert power_w(joined) == pytest.approx(400.0, rel=0.02)


@pytest.mark.parametrize("readings", [[], stepped(300.0, 0.1, 0.2), [(0.01 * i, 7.0) for i in range(100)]])
def test_too_few_steps_say_nothing(readings: list[tuple[float, float]]) -> None:
    assert power_w(readings) is None


@pytest.mark.parametrize("time_us", [0.8, 7.0, 900.0, 50_000.0, 2e6])
def test_runs_are_long_and_their_samples_many_launches(time_us: float) -> None:
    plan = energy_plan(CacheState.COLD, time_us)
    assert plan.cache is CacheState.COLD
    assert plan.samples >= 3
    assert plan.samples * plan.launches * time_us >= 0.5e6
    assert plan.samples * plan.launches * time_us <= max(1.2e6, 3 * time_us)


def test_the_watch_ends_with_its_block() -> None:
    counter = Nvml(StandIn(lambda: time.monotonic() * 1e5), 0)
    with EnergyWatch(counter) as watch:
        time.sleep(0.1)
    taken = len(watch.readings)
    assert taken > 5
    time.sleep(0.03)
    assert len(watch.readings) == taken
    assert "energy" not in {t.name for t in threading.enumerate()}


def test_the_front_has_whatever_no_other_beats() -> None:
    points = {"baseline": (10.0, 5.0), "fast": (5.0, 6.0), "both": (5.0, 4.0), "frugal": (8.0, 2.0)}
    assert pareto(points) == ("both", "frugal")
    assert pareto({"one": (1.0, 1.0), "other": (1.0, 1.0)}) == ("one", "other")


# A job whose device counts energy.

TIMES_US = {32: 50.0, 64: 100.0, 128: 60.0, 256: 101.0}
POWER_W = {32: 500.0, 64: 400.0, 128: 300.0, 256: 300.0}


def ports_with(counter: Any) -> SessionPorts:
    return hot_ports(counter, TIMES_US, POWER_W)


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SETTLE_S", 0.01)
    monkeypatch.setattr(measuring, "LEAST_S", 0.01)


def verified(job: Job, counter: Any, *blocks: int) -> VerifyResult:
    ports = ports_with(counter)
    baseline = measure_baseline(DeviceSession(job, ports))
    assert baseline.refused == ""
    (timing,) = baseline.timings
    finalists = []
    for block in blocks:
        configuration: Configuration = {"BLOCK": block, "PER": 1}
        assert timing.cold is not None
        cold = timing.cold.model_copy(update={"median_us": TIMES_US[block]})
        found = {"cold": cold, "energy_mj": TIMES_US[block] * POWER_W[block] / 1000}
        outcome = Measured(timings=(timing.model_copy(update=found),), objective=0.5)
        finalists.append(
            Finalist("c0", DeviceSession(job, ports).inputs.user_template, configuration, outcome)
        )
    return verify_winners(job, ports, finalists, ComparisonPlan(4, noises(0.001)), lambda: True, baseline)


def key(block: int) -> str:
    return configuration_key({"BLOCK": block, "PER": 1})


@pytest.mark.usefixtures("short_runs")
def test_a_comparison_has_the_energy_of_both() -> None:
    (comparison,) = verified(cuda_job(energy=True), Meter(), 32, 128).comparisons
    assert comparison.configuration_key == key(32)
    assert comparison.baseline_mj == pytest.approx(400.0 * 0.1, rel=0.1)
    assert comparison.best_mj == pytest.approx(500.0 * 0.05, rel=0.1)
    assert comparison.energy_spread is not None
    assert comparison.energy_spread < 0.2
    assert comparison.pareto == (key(32),)


@pytest.mark.usefixtures("short_runs")
def test_the_counter_is_read_only_if_the_job_asks_for_energy() -> None:
    unread = Meter()
    (comparison,) = verified(cuda_job(), unread, 32, 128).comparisons
    assert (comparison.baseline_mj, comparison.best_mj, unread.runs) == (None, None, 0)
    read = Meter()
    (comparison,) = verified(cuda_job(metric="energy"), read, 32).comparisons
    assert comparison.best_mj is not None
    assert read.runs > 0


@pytest.mark.usefixtures("short_runs")
def test_the_least_energy_is_served_where_energy_counts() -> None:
    result = verified(cuda_job(metric="energy"), Meter(), 32, 128, 256)
    (comparison,) = result.comparisons
    assert result.choices[0].configuration == {"BLOCK": 128, "PER": 1}
    assert comparison.configuration_key == key(128)
    assert comparison.pareto == (key(128), key(32))


@pytest.mark.usefixtures("short_runs")
def test_what_is_slower_is_not_served_however_little_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POWER_W, 256, 10.0)
    monkeypatch.setitem(TIMES_US, 256, 200.0)
    result = verified(cuda_job(metric="energy"), Meter(), 256)
    assert result.choices[0].configuration is None
    assert result.comparisons[0].pareto == ("baseline", key(256))


@pytest.mark.usefixtures("short_runs")
def test_the_baseline_stays_where_no_energy_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POWER_W, 32, 900.0)
    result = verified(cuda_job(metric="energy"), Meter(), 32)
    assert result.choices[0].configuration is None
    assert result.comparisons[0].pareto == ("baseline", key(32))


@pytest.mark.usefixtures("short_runs")
def test_without_a_counter_a_comparison_has_none_and_a_job_for_energy_is_refused() -> None:
    silent = Nvml(StandIn(None), 0)
    for counter in (None, silent):
        (comparison,) = verified(cuda_job(energy=True), counter, 32).comparisons
        assert (comparison.baseline_mj, comparison.best_mj, comparison.pareto) == (None, None, ())
        refused = measure_baseline(DeviceSession(cuda_job(metric="energy"), ports_with(counter))).refused
        assert refused.startswith("objective.metric: this device does not report its energy")
        assert refused.endswith("use time")


@pytest.mark.usefixtures("short_runs")
def test_a_job_for_energy_says_what_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"objective\.metric: opencl reports no energy; use time, or"):
        scale_job(objective={"metric": "energy"})
    with pytest.raises(
        ValueError, match=r"objective\.energy: opencl reports no energy; use false, or backend"
    ):
        scale_job(objective={"energy": True})
    kernel = cuda_job().kernel.model_dump(mode="json")
    kernel["arguments"][1]["role"] = "inout"
    with pytest.raises(ValueError, match=r"objective\.metric: y is inout, and restoring it .* use time"):
        scale_job(kernel=kernel, objective={"metric": "energy"})
    with pytest.raises(ValueError, match=r"objective\.energy: y is inout, and restoring it .* use false"):
        scale_job(kernel=kernel, objective={"energy": True})
