"""The fakes of `warpsmith.testing` pass the suites that real parts pass."""

from collections.abc import Sequence

import pytest

from testbed.fakes import FakeCompiler, FakeOpener, FakeReference, ListSink
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.compiler_contract import CompilerContract, KernelOf
from warpsmith.testing.device_contract import Build, DeviceContract
from warpsmith.testing.jobs import DEVICE
from warpsmith.testing.kernels import Behaviour, configured
from warpsmith.testing.reference_contract import ReferenceContract
from warpsmith.testing.sink_contract import SinkCase, SinkContract
from warpsmith.tuning.ports import CompilerPort, DeviceOpener, ReferencePort, TrialSink

FAULTS = {
    Behaviour.RIGHT: "",
    Behaviour.BROKEN: "compile",
    Behaviour.IDLE: "idle",
    Behaviour.BEHIND_OUTPUT: "guard",
    Behaviour.CHANGES_INPUT: "input",
    Behaviour.FAULTS: "device",
    Behaviour.HANGS: "timeout",
}


def fault(configuration: Configuration) -> str:
    """What the fake does wrong, by the behaviour that the configuration names."""
    return FAULTS[Behaviour(str(configuration["BEHAVIOUR"]))]


@pytest.fixture
def fake() -> FakeCompiler:
    return FakeCompiler(fault)


@pytest.fixture
def compiler(fake: FakeCompiler) -> CompilerPort:
    return fake


@pytest.fixture
def info() -> DeviceInfo:
    return DEVICE


@pytest.fixture
def kernel() -> KernelOf:
    return lambda behaviour: configured(Backend.OPENCL, behaviour).model_copy(
        update={"configuration": {"BEHAVIOUR": behaviour.value}}
    )


@pytest.fixture
def opener(fake: FakeCompiler) -> DeviceOpener:
    return FakeOpener(lambda configuration, workload: 10.0, fault, fake.compiled, gives_up=True)


@pytest.fixture
def build(fake: FakeCompiler, kernel: KernelOf) -> Build:
    def make(behaviour: Behaviour) -> Compiled:
        made = fake.submit(kernel(behaviour), DEVICE).result(0)
        assert isinstance(made, Compiled)
        return made

    return make


@pytest.fixture
def reference() -> ReferencePort:
    return FakeReference()


class ListSinkCase:
    """A `ListSink` and what may happen to it."""

    def __init__(self) -> None:
        self.fake = ListSink()
        self.sink: TrialSink = self.fake

    def kept(self) -> Sequence[Configuration]:
        return [configuration for configuration, _ in self.fake.trials]

    def cancel(self) -> None:
        self.fake.stop_after = 0

    def lose(self) -> None:
        self.fake.lost = True


@pytest.fixture
def case() -> SinkCase:
    return ListSinkCase()


class TestFakeDevice(DeviceContract):
    """`FakeDevice`."""


class TestFakeCompiler(CompilerContract):
    """`FakeCompiler`."""


class TestFakeReference(ReferenceContract):
    """`FakeReference`."""


class TestListSink(SinkContract):
    """`ListSink`."""
