"""The OpenCL device of this machine with one harness, shared by all cases of this folder."""

from collections.abc import Iterator

import pytest

from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.sandbox import CompilePool, probe_devices


@pytest.fixture(scope="session")
def opencl_device() -> DeviceInfo:
    """The first OpenCL device, PoCL on machines without a GPU."""
    probe = probe_devices()
    found = [d for d in probe.devices if d.backend is Backend.OPENCL]
    assert found, probe.unavailable
    return found[0]


@pytest.fixture(scope="session")
def pool() -> Iterator[CompilePool]:
    """Compilers for both back ends; CUDA needs no device for that."""
    made = CompilePool()
    yield made
    made.close()


@pytest.fixture(scope="session")
def harness(opencl_device: DeviceInfo, pool: CompilePool) -> Iterator[Harness]:
    """Baselines are measured once for each task."""
    made = Harness(opencl_device, pool)
    yield made
    made.close()
