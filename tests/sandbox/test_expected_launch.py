"""A binary for PoCL has the work-group function of the launch that is expected, so that no child makes it."""

import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import SCALE, kernel, source
from warpsmith.backends.opencl.compile import MOST_FINISHED
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import expecting_launches
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.template import LARGE_GRID, ConfiguredKernel
from warpsmith.sandbox import CompilePool
from worker.device.compile_cache import artifact_key

TEXT = source(Backend.OPENCL, SCALE)


def workload(n: int) -> Workload:
    return Workload(dimensions={"n": n})


def binary(pool: CompilePool, info: DeviceInfo, configured: ConfiguredKernel) -> bytes:
    found = pool.submit(configured, info).result(HANGS_S)
    assert isinstance(found, Compiled)
    return found.binary


@pytest.mark.parametrize(
    ("n", "folder"), [(1000, b"/64-1-1-goffs0-smallgrid"), (LARGE_GRID, b"/64-1-1-goffs0/")]
)
def test_the_binary_has_the_function_of_the_expected_launch(
    pool: CompilePool, opencl_info: DeviceInfo, n: int, folder: bytes
) -> None:
    plain = kernel(Backend.OPENCL, TEXT)
    expecting = expecting_launches(plain, [workload(n)], opencl_info)
    assert folder in binary(pool, opencl_info, expecting)
    assert b"/64-1-1" not in binary(pool, opencl_info, plain)


def test_a_program_of_many_kernels_is_not_finished(pool: CompilePool, opencl_info: DeviceInfo) -> None:
    others = "".join(
        f"__kernel void g{i}(__global float* y) {{ y[{i}] = 1; }}\n" for i in range(MOST_FINISHED)
    )
    expecting = expecting_launches(kernel(Backend.OPENCL, others + TEXT), [workload(1000)], opencl_info)
    assert b"/64-1-1" not in binary(pool, opencl_info, expecting)


def test_a_launch_that_cannot_be_evaluated_is_passed_over(opencl_info: DeviceInfo) -> None:
    plain = kernel(Backend.OPENCL, TEXT)
    assert expecting_launches(plain, [Workload(dimensions={"m": 5})], opencl_info) == plain
    found = expecting_launches(plain, [Workload(dimensions={"m": 5}), workload(1000)], opencl_info)
    assert found.expected_launch is not None
    assert found.expected_launch.block == (64, 1, 1)


def test_launches_that_differ_in_nothing_that_matters_share_a_binary(opencl_info: DeviceInfo) -> None:
    plain = kernel(Backend.OPENCL, TEXT)
    small, other, large = (
        artifact_key(expecting_launches(plain, [workload(n)], opencl_info), opencl_info)
        for n in (1000, 3000, LARGE_GRID)
    )
    assert small == other
    assert large != small


def test_the_hint_names_another_binary_of_the_same_kernel(opencl_info: DeviceInfo) -> None:
    plain = kernel(Backend.OPENCL, TEXT)
    expecting = expecting_launches(plain, [workload(1000)], opencl_info)
    assert expecting.key == plain.key
    assert artifact_key(expecting, opencl_info) != artifact_key(plain, opencl_info)


def test_cuda_binaries_are_whole_without_it(opencl_info: DeviceInfo) -> None:
    cuda = opencl_info.model_copy(update={"backend": Backend.CUDA, "shares_host": False})
    plain = kernel(Backend.CUDA, source(Backend.CUDA, SCALE))
    assert expecting_launches(plain, [workload(1000)], cuda) == plain
