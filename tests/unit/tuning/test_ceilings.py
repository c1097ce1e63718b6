"""When ceilings are measured, and when kept ones are used."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from testbed.fakes import fake_ports
from warpsmith.domain.device import Ceilings
from warpsmith.domain.templates.space import Configuration
from warpsmith.measure.nvml import Nvml
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.timing import ceilings as module
from warpsmith.tuning.timing.ceilings import ceilings_of

BASELINE_US = 100.0
HIGH = Ceilings(cold_bytes_per_s=1e15, hot_bytes_per_s=1e15, flops_per_s=1e15, launch_us=0.0005)


@dataclass
class Store:
    """In memory; counts."""

    held: Ceilings | None = None
    kept: list[Ceilings] = field(default_factory=list)

    def known(self) -> Ceilings | None:
        return self.held

    def keep(self, ceilings: Ceilings) -> None:
        self.held = ceilings
        self.kept.append(ceilings)


def steady(configuration: Configuration, workload: str) -> float:
    return BASELINE_US


def measured(store: Store) -> Ceilings | None:
    """The ceilings of a baseline with that store."""
    ports, _ = fake_ports(steady)
    return measure_baseline(DeviceSession(scale_job(), replace(ports, ceilings=store))).ceilings


def test_a_baseline_takes_the_ceilings_that_are_kept() -> None:
    store = Store(HIGH)
    assert measured(store) == HIGH
    assert store.kept == []


def test_a_baseline_measures_and_keeps_what_is_not_known() -> None:
    store = Store()
    found = measured(store)
    assert found is not None
    assert store.kept == [found]


def test_ceilings_that_the_kernel_exceeds_are_measured_again_and_never_get_lower() -> None:
    slow = HIGH.model_copy(update={"launch_us": 10 * BASELINE_US, "flops_per_s": 1e18})
    store = Store(slow)
    found = measured(store)
    assert found is not None
    assert store.kept == [found]
    assert found.launch_us < BASELINE_US
    assert found.flops_per_s == 1e18


def test_a_kernel_a_little_faster_than_the_ceilings_is_no_sign_of_anything() -> None:
    near = HIGH.model_copy(update={"launch_us": 1.2 * BASELINE_US})
    assert measured(Store(near)) == near


def test_kept_ceilings_outlast_a_device_that_cannot_be_measured() -> None:
    ports, opener = fake_ports(steady)
    opener.opens = 0
    store = Store(HIGH)
    assert ceilings_of(replace(ports, ceilings=store), lambda found: found != HIGH) == HIGH
    assert ceilings_of(replace(ports, ceilings=Store())) is None


def test_without_a_store_a_process_measures_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.ProcessCeilings, "_of_devices", {})
    ports, opener = fake_ports(steady)
    first = ceilings_of(ports)
    opened = len(opener.opened)
    assert opened > 0
    assert ceilings_of(ports) == first
    assert len(opener.opened) == opened


class Silent(Exception):
    """As NVML raises it for what a device does not report."""


class Limits:
    """NVML of a device that reports no applied clocks."""

    NVMLError = Silent
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any) -> int:
        return 700_000

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, clock: int) -> int:
        return 1000 * clock

    def nvmlDeviceGetApplicationsClock(self, handle: Any, clock: int) -> int:
        raise Silent("not supported")


def test_clock_limits_are_those_that_nvml_reports() -> None:
    assert Nvml(Limits(), 0).clock_limits() == "power 700000, core 1000, memory 2000"
