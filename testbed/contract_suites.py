"""The suites of `warpsmith.testing` on a real back end, for a module of tests to import.

That module offers the fixtures `under_test`, `info` and `pool`. Nothing is needed beside pytest, NumPy and
the packages of the device.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from testbed.deadlines import HANGS_S
from warpsmith.backends.base import BackendModule, CompileRequest, Device
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.testing.backend_contract import Asked, BackendContract
from warpsmith.testing.compiler_contract import KernelOf, SourceCompilerContract
from warpsmith.testing.device_contract import Build, KernelDeviceContract
from warpsmith.testing.kernels import ENTRY, Behaviour, configured, source
from warpsmith.testing.reference_contract import NumpyReferenceContract
from warpsmith.tuning.ports import CompilerPort, DeviceOpener, ReferencePort

RUN_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class UnderTest:
    """A back end, its module, and the compiler that its kernels are compiled with."""

    backend: Backend
    module: BackendModule
    compiler: str


@pytest.fixture(scope="module")
def opener(info: DeviceInfo) -> DeviceOpener:
    return ChildOpener(info, run_timeout_s=RUN_TIMEOUT_S)


@pytest.fixture(scope="module")
def kernel(under_test: UnderTest) -> KernelOf:
    return lambda behaviour: configured(under_test.backend, behaviour)


@pytest.fixture(scope="module")
def compiler(pool: CompilePool) -> CompilerPort:
    return pool


@pytest.fixture(scope="module")
def build(pool: CompilePool, info: DeviceInfo, kernel: KernelOf) -> Build:
    @cache
    def make(behaviour: Behaviour) -> Compiled:
        made = pool.submit(kernel(behaviour), info).result(HANGS_S)
        assert isinstance(made, Compiled), made
        return made

    return make


@pytest.fixture(scope="module")
def reference() -> ReferencePort:
    return ReferenceRunner(timeout_s=20)


@pytest.fixture(scope="module")
def module(under_test: UnderTest) -> BackendModule:
    return under_test.module


@pytest.fixture(scope="module")
def opened(under_test: UnderTest, info: DeviceInfo) -> Iterator[Device]:
    device = under_test.module.open_device(info.index)
    yield device
    device.close()


@pytest.fixture(scope="module")
def asked(under_test: UnderTest, info: DeviceInfo) -> Asked:
    def request(behaviour: Behaviour) -> CompileRequest:
        backend, text = under_test.backend, source(under_test.backend, behaviour)
        return CompileRequest(
            backend, text, ENTRY, (), (), under_test.compiler, info.architecture, info.index
        )

    return request


class TestDevice(KernelDeviceContract):
    """`ChildDevice` over the device."""


class TestCompiler(SourceCompilerContract):
    """`CompilePool` with the compiler."""


class TestReference(NumpyReferenceContract):
    """`ReferenceRunner`."""


class TestBackend(BackendContract):
    """The module of the back end, in this process."""
