"""Ceilings that are kept between processes: those of this device as it is now, or none."""

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from warpsmith.domain.device import Ceilings, DeviceInfo
from warpsmith.testing.jobs import DEVICE
from worker.device import cached_ceilings
from worker.device.cached_ceilings import HOST_KEEP_S, CachedCeilings, host_clock_limits

MEASURED = Ceilings(cold_bytes_per_s=1e12, hot_bytes_per_s=4e12, flops_per_s=1e13, launch_us=1.0)
GPU = DEVICE.model_copy(update={"shares_host": False})
DAY_S = 86400.0


def store(
    folder: Path, device: DeviceInfo = GPU, clocks: str = "power 700000", keep_s: float = DAY_S
) -> CachedCeilings:
    return CachedCeilings(folder, device, lambda: clocks, keep_s)


def age(folder: Path, seconds: float) -> None:
    """Make what is kept older."""
    (file,) = folder.glob("*.json")
    stored = json.loads(file.read_text())
    file.write_text(json.dumps({**stored, "measured": stored["measured"] - seconds}))


def test_another_process_finds_what_one_measured(tmp_path: Path) -> None:
    folder = tmp_path / "ceilings"
    assert store(folder).known() is None
    store(folder).keep(MEASURED)
    assert store(folder).known() == MEASURED
    assert [path.suffix for path in folder.iterdir()] == [".json"]


@pytest.mark.parametrize(
    "changed",
    [
        {"device": GPU.model_copy(update={"driver": "another"})},
        {"device": GPU.model_copy(update={"uid": "GPU-2"})},
        {"device": GPU.model_copy(update={"limits": GPU.limits.model_copy(update={"multiprocessors": 3})})},
        {"clocks": "power 300000"},
    ],
    ids=["driver", "device", "limits", "clocks"],
)
def test_they_hold_for_the_device_as_it_was_measured(tmp_path: Path, changed: dict[str, Any]) -> None:
    store(tmp_path).keep(MEASURED)
    assert store(tmp_path, **changed).known() is None
    assert store(tmp_path).known() == MEASURED


@pytest.mark.parametrize("name", ["node", "kernels_digest"])
def test_they_hold_for_one_host_and_its_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store(tmp_path).keep(MEASURED)
    owner = platform if name == "node" else cached_ceilings
    monkeypatch.setattr(owner, name, lambda: "another")
    assert store(tmp_path).known() is None


def test_they_are_kept_for_a_stated_time(tmp_path: Path) -> None:
    store(tmp_path).keep(MEASURED)
    age(tmp_path, DAY_S - 60)
    assert store(tmp_path).known() == MEASURED
    age(tmp_path, 120)
    assert store(tmp_path).known() is None
    age(tmp_path, -DAY_S - 3600)
    assert store(tmp_path).known() is None, "a clock that was set back says nothing about their age"


def test_those_of_a_busy_host_are_kept_for_an_hour(tmp_path: Path) -> None:
    host = GPU.model_copy(update={"shares_host": True})
    store(tmp_path, host).keep(MEASURED)
    age(tmp_path, HOST_KEEP_S - 60)
    assert store(tmp_path, host).known() == MEASURED
    age(tmp_path, 120)
    assert store(tmp_path, host).known() is None


def test_without_a_time_each_process_has_its_own(tmp_path: Path) -> None:
    own = store(tmp_path, keep_s=0)
    own.keep(MEASURED)
    assert own.known() == MEASURED
    assert store(tmp_path, keep_s=0).known() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"of": 1, "measured": "x"}'])
def test_a_damaged_file_is_none(tmp_path: Path, text: str) -> None:
    store(tmp_path).keep(MEASURED)
    (file,) = tmp_path.iterdir()
    file.write_text(text)
    assert store(tmp_path).known() is None
    store(tmp_path).keep(MEASURED)
    assert store(tmp_path).known() == MEASURED


def test_a_folder_that_cannot_be_written_costs_a_measurement_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    kept = store(tmp_path / "file" / "ceilings")
    kept.keep(MEASURED)
    assert kept.known() is None
    assert "were not stored" in caplog.text


def test_the_limits_of_a_host_s_clocks_are_read_where_there_are_any(tmp_path: Path) -> None:
    assert host_clock_limits(tmp_path) == ""
    cpu = tmp_path / "sys/devices/system/cpu"
    (cpu / "cpu0/cpufreq").mkdir(parents=True)
    (cpu / "cpu0/cpufreq/scaling_max_freq").write_text("3500000\n")
    (cpu / "intel_pstate").mkdir()
    (cpu / "intel_pstate/no_turbo").write_text("1\n")
    assert host_clock_limits(tmp_path) == "cpufreq/scaling_max_freq 3500000, intel_pstate/no_turbo 1"
