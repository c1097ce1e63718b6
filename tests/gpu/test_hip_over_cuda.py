"""The suites of `warpsmith.testing` on HIP's back end, over a stand-in for hip-python on CUDA's driver.

The code objects are cubins. Nothing here says how an AMD device behaves.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import testbed.importable
from testbed.contract_suites import (
    TestBackend,
    TestCompiler,
    TestDevice,
    TestReference,
    UnderTest,
    asked,
    build,
    compiler,
    kernel,
    module,
    opened,
    opener,
    reference,
)
from warpsmith.backends.base import CompileRequest, Device
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.extensions.hip import backend as hip
from warpsmith.sandbox import probe_devices

__all__ = [
    "TestBackend",
    "TestCompiler",
    "TestDevice",
    "TestReference",
    "asked",
    "build",
    "compiler",
    "kernel",
    "module",
    "opened",
    "opener",
    "reference",
]

LARGE_BYTES = 96 << 10
SOURCE = """
#include <hip/hip_cooperative_groups.h>
namespace a { __device__ float total[2]; __constant__ float factor; }
extern "C" __global__ void adds(float* y) { a::total[1] += a::factor; y[0] = a::total[1]; }
extern "C" __global__ void far(int* y, int last) {
    extern __shared__ int space[];
    space[last] = last;
    y[0] = space[last];
}
extern "C" __global__ void meets(int* y, int* sum) {
    y[blockIdx.x] = blockIdx.x + 1;
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0) for (int i = 0; i < gridDim.x; i++) *sum += y[i];
}
"""


@pytest.fixture(scope="module", autouse=True)
def stand_in() -> Iterator[None]:
    """A package `hip` for this process and its children."""
    folder = str(Path(testbed.importable.__file__).parent)
    sys.path.append(folder)
    yield
    sys.path.remove(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "hip"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def info(stand_in: None) -> DeviceInfo:
    return next(device for device in probe_devices().devices if device.backend is Backend.HIP)


@pytest.fixture(scope="module")
def under_test() -> UnderTest:
    return UnderTest(Backend.HIP, hip, "nvrtc")


def built(info: DeviceInfo, entry: str) -> Compiled:
    request = CompileRequest(Backend.HIP, SOURCE, entry, (), (), "nvrtc", info.architecture, info.index)
    made = hip.compile_source(request)
    assert isinstance(made, Compiled), made
    return made


def test_symbols_are_filled_and_what_a_kernel_writes_is_told(info: DeviceInfo, opened: Device) -> None:
    program, y = opened.load(built(info, "adds")), opened.allocate(4)
    program.write_symbol("factor", np.array([2.5], np.float32))
    program.write_symbol("total", np.array([0.0, 1.0], np.float32))
    assert program.changed_globals() == []
    opened.launch(program, [(y, 0)], LaunchSize((1, 1, 1), (1, 1, 1)))
    assert np.frombuffer(y.read(0, 4), np.float32) == 3.5
    assert np.frombuffer(program.read_symbol("total"), np.float32).tolist() == [0.0, 3.5]
    assert len(program.changed_globals()) == 1
    program.unload()
    y.free()


def test_a_block_gets_more_local_memory_than_it_has_without_asking(info: DeviceInfo, opened: Device) -> None:
    program, y = opened.load(built(info, "far")), opened.allocate(4)
    last = LARGE_BYTES // 4 - 1
    size = LaunchSize((1, 1, 1), (1, 1, 1), shared_bytes=LARGE_BYTES)
    opened.launch(program, [(y, 0), np.int32(last)], size)
    assert np.frombuffer(y.read(0, 4), np.int32) == last
    program.unload()
    y.free()


def test_blocks_of_a_cooperative_launch_meet(info: DeviceInfo, opened: Device) -> None:
    program, y, total = opened.load(built(info, "meets")), opened.allocate(4 * 16), opened.allocate(4)
    total.fill(b"\x00", 0, 4)
    opened.launch(program, [(y, 0), (total, 0)], LaunchSize((16, 1, 1), (32, 1, 1), cooperative=True))
    assert np.frombuffer(total.read(0, 4), np.int32) == 136
    program.unload()
    y.free()
    total.free()
