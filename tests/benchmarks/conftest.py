"""Compilers, the OpenCL device of this machine and one harness for the tests of this folder."""

import pytest

from tests.adversarial.conftest import harness, opencl_device, pool
from warpsmith.domain.device import DeviceInfo

__all__ = ["harness", "opencl_device", "pool"]


@pytest.fixture(scope="session")
def opencl_info(opencl_device: DeviceInfo) -> DeviceInfo:
    """The same device by the name that tests of the sandbox give it."""
    return opencl_device
