"""A compile pool and the OpenCL device of this machine, shared by the tests of this folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import CUDA_DEVICE
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.sandbox import CompilePool, probe_devices

Devices = Mapping[Backend, DeviceInfo]
MEMORY_BYTES = 12 << 30
"""Address space of a compile child, as `CompilePool` has it by itself."""


class PoolMaker(Protocol):
    """Makes compilers with a deadline and memory of their own."""

    def __call__(self, timeout_s: float, memory_bytes: int = MEMORY_BYTES) -> CompilePool:
        """One child at a time."""
        ...


@pytest.fixture(scope="session")
def opencl_info() -> DeviceInfo:
    """The first OpenCL device, PoCL on machines without a GPU."""
    probe = probe_devices()
    found = [d for d in probe.devices if d.backend is Backend.OPENCL]
    assert found, probe.unavailable
    return found[0]


@pytest.fixture(scope="session")
def permitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An include folder that jobs may name as `shared`."""
    folder = tmp_path_factory.mktemp("permitted")
    (folder / "shared.h").write_text("#define FACTOR 2.0f\n")
    (folder / "again.h").write_text('#include "again.h"\n')
    return folder


@pytest.fixture(scope="session")
def pool(permitted: Path) -> Iterator[CompilePool]:
    """One compile child at a time, with a deadline that good sources keep."""
    made = CompilePool(workers=1, timeout_s=HANGS_S, include_dirs={"shared": permitted})
    yield made
    made.close()


@pytest.fixture
def make_pool() -> Iterator[PoolMaker]:
    """Pools with limits of their own, closed in the end."""
    made: list[CompilePool] = []

    def make(timeout_s: float, memory_bytes: int = MEMORY_BYTES) -> CompilePool:
        made.append(CompilePool(1, timeout_s, memory_bytes=memory_bytes))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def devices(opencl_info: DeviceInfo) -> Devices:
    """What to compile for: CUDA needs no device for that."""
    return {Backend.OPENCL: opencl_info, Backend.CUDA: CUDA_DEVICE}


@pytest.fixture(params=[Backend.OPENCL, Backend.CUDA], ids=["opencl", "cuda"])
def device(request: pytest.FixtureRequest, devices: Devices) -> DeviceInfo:
    """A device to compile for: both compilers must keep every promise."""
    return devices[request.param]
