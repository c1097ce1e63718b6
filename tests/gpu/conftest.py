"""Tests on an NVIDIA GPU. Elsewhere they are not collected; with `WARPSMITH_TEST_GPU` set they fail there."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.sandbox import CompilePool, probe_devices

DRIVER_FILES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""One of them is there wherever the driver is: without it nothing is probed."""


@cache
def missing() -> str:
    """Why no CUDA device can be used here; empty where one can."""
    if not any(path.exists() for path in DRIVER_FILES):
        return "no NVIDIA driver on this machine"
    probe = probe_devices()
    if any(device.backend is Backend.CUDA for device in probe.devices):
        return ""
    return probe.unavailable.get("cuda", "no CUDA device")


# Without a GPU they are not collected: a skipped test looks like one that was meant to run.
collect_ignore_glob = ["test_*.py"] if missing() and not os.environ.get("WARPSMITH_TEST_GPU") else []


@pytest.fixture(scope="session")
def info() -> DeviceInfo:
    """The first CUDA device."""
    assert not missing(), missing()
    return next(device for device in probe_devices().devices if device.backend is Backend.CUDA)


@pytest.fixture(scope="session")
def pool() -> Iterator[CompilePool]:
    """Compile children."""
    made = CompilePool(4)
    yield made
    made.close()


@pytest.fixture(scope="session")
def harness(info: DeviceInfo, pool: CompilePool) -> Iterator[Harness]:
    """Baselines are measured once for each task."""
    made = Harness(info, pool)
    yield made
    made.close()
