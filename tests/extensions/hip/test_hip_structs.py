"""Structs by value in HIP: both compilers check that they lie as the job says."""

import os
from collections.abc import Iterator

import pytest

from testbed.clang import clang_path
from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import ARGUMENTS, CUDA_DEVICE, kernel
from warpsmith.device_checks.absent_devices import any_amd_device
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.sandbox.hosts.compile_host import CompilePool

TEXT = """struct Scale { float by; int from; double last; };
__global__ void f(const float* x, float* y, int n, Scale scale) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] * scale.by + scale.from + scale.last;
}
"""
FIELDS = [
    {"name": "by", "dtype": "float32", "role": "scalar", "value": 2.0},
    {"name": "from", "dtype": "int32", "role": "scalar", "value": 1},
    {"name": "last", "dtype": "float64", "role": "scalar", "value": 3.0},
]
DEVICES = [
    CUDA_DEVICE,
    pytest.param(
        any_amd_device("gfx942"),
        marks=pytest.mark.skipif(clang_path() is None and not os.environ.get("CI"), reason="no clang"),
    ),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilePool]:
    pool = CompilePool(workers=1)
    yield pool
    pool.close()


def compiled(pool: CompilePool, device: DeviceInfo, fields: list[dict[str, object]]) -> Compiled | Rejected:
    argument = {"name": "scale", "role": "struct", "type": "Scale", "fields": fields}
    asked = kernel(Backend.HIP, TEXT, arguments=[*ARGUMENTS, argument])
    return pool.submit(asked, device).result(HANGS_S)


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.architecture)
def test_a_struct_that_lies_as_the_job_says_compiles(pool: CompilePool, device: DeviceInfo) -> None:
    found = compiled(pool, device, FIELDS)
    assert isinstance(found, Compiled), f"{found.reason}\n{found.log}"


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.architecture)
def test_one_that_lies_otherwise_is_refused(pool: CompilePool, device: DeviceInfo) -> None:
    found = compiled(pool, device, [FIELDS[1], FIELDS[0], FIELDS[2]])
    assert isinstance(found, Rejected)
    assert "scale.from is at byte 0 in the job" in found.log
