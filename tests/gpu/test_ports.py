"""The suites of `warpsmith.testing` on CUDA."""

from collections.abc import Iterator
from functools import cache

import pytest

from warpsmith.backends import cuda
from warpsmith.backends.base import BackendModule, CompileRequest, Device
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.plan import Compiled
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.testing.backend_contract import Asked, BackendContract
from warpsmith.testing.compiler_contract import KernelOf, SourceCompilerContract
from warpsmith.testing.device_contract import Build, KernelDeviceContract
from warpsmith.testing.kernels import ENTRY, Behaviour, configured, source
from warpsmith.testing.reference_contract import NumpyReferenceContract
from warpsmith.tuning.ports import CompilerPort, DeviceOpener, ReferencePort

RUN_TIMEOUT_S = 5.0


@pytest.fixture(scope="module")
def opener(info: DeviceInfo) -> DeviceOpener:
    return ChildOpener(info, run_timeout_s=RUN_TIMEOUT_S)


@pytest.fixture(scope="module")
def kernel() -> KernelOf:
    return lambda behaviour: configured(Backend.CUDA, behaviour)


@pytest.fixture(scope="module")
def compiler(pool: CompilePool) -> CompilerPort:
    return pool


@pytest.fixture(scope="module")
def build(pool: CompilePool, info: DeviceInfo, kernel: KernelOf) -> Build:
    @cache
    def make(behaviour: Behaviour) -> Compiled:
        made = pool.submit(kernel(behaviour), info).result(60)
        assert isinstance(made, Compiled), made
        return made

    return make


@pytest.fixture(scope="module")
def reference() -> ReferencePort:
    return ReferenceRunner(timeout_s=20)


@pytest.fixture(scope="module")
def module() -> BackendModule:
    return cuda


@pytest.fixture(scope="module")
def opened(info: DeviceInfo) -> Iterator[Device]:
    device = cuda.open_device(info.index)
    yield device
    device.close()


@pytest.fixture(scope="module")
def asked(info: DeviceInfo) -> Asked:
    def request(behaviour: Behaviour) -> CompileRequest:
        text = source(Backend.CUDA, behaviour)
        return CompileRequest(Backend.CUDA, text, ENTRY, (), (), "nvrtc", info.architecture, info.index)

    return request


class TestDevice(KernelDeviceContract):
    """`ChildDevice` over `CudaDevice`."""


class TestCompiler(SourceCompilerContract):
    """`CompilePool` with NVRTC."""


class TestReference(NumpyReferenceContract):
    """`ReferenceRunner`, as it runs beside a GPU."""


class TestBackend(BackendContract):
    """`warpsmith.backends.cuda` in this process."""
