"""Compilers and the OpenCL device of this machine for the contract suites."""

from collections.abc import Iterator

import pytest

from testbed.deadlines import HANGS_S
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.sandbox import CompilePool, probe_devices


@pytest.fixture(scope="module")
def info() -> DeviceInfo:
    """The first OpenCL device, PoCL on machines without a GPU."""
    probe = probe_devices()
    found = [d for d in probe.devices if d.backend is Backend.OPENCL]
    assert found, probe.unavailable
    return found[0]


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    """Compile children."""
    made = CompilePool(workers=1, timeout_s=HANGS_S)
    yield made
    made.close()
