"""The user's kernel as its own reference, on a device whose process may end at any moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.fakes import FakeCompiler, FakeDevice, FakeOpener, fake_ports
from warpsmith.domain.jobs.plan import CaseKey, plan_workload
from warpsmith.domain.templates.template import Template
from warpsmith.errors import ChildDied, InvalidInput
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.execution.kernel_reference import OwnKernel
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.verify.run_report import Array, ReferenceCase


class Dying(FakeDevice):
    """Ends when its buffers are freed, as a process whose heap a kernel has damaged."""

    def release(self, case: CaseKey) -> None:
        raise ChildDied("signal", "ended by SIGABRT")


@dataclass
class DyingFirst(FakeOpener):
    def open(self) -> FakeDevice:
        device = super().open()
        if len(self.opened) == 1:
            device.__class__ = Dying
        return device


class NoReference:
    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        raise AssertionError("the job has no NumPy reference")

    def halt(self) -> None: ...

    def go_on(self) -> None: ...


def test_a_kernel_that_damages_its_process_is_one_failed_case_and_the_next_gets_a_new_process() -> None:
    job = scale_job(reference={"kind": "kernel"})
    compiler = FakeCompiler(lambda configuration: "")
    opener = DyingFirst(lambda configuration, workload: 1.0, compiler.fault, compiler.compiled)
    ports = SessionPorts(opener, compiler, NoReference())
    template = Template(kernel=job.kernel, space=job.space)
    cases = [
        (plan_workload(job.kernel, w, DEVICE.scope() | job.space.defaults, seed=1), w) for w in job.workloads
    ]
    own = OwnKernel(ports, template.configured(job.space.defaults))
    first, *others = own.outputs(cases)
    assert len(others) == len(cases) - 1
    assert isinstance(first, InvalidInput)
    assert "SIGABRT" in first.message
    assert all(isinstance(outputs, Mapping) and "y" in outputs for outputs in others)
    assert len(opener.opened) == 2
    again, *_ = own.outputs(cases[:1])
    assert isinstance(again, Mapping)
    assert len(opener.opened) == 2, "the child is kept"
    assert not opener.opened[1].dead
    own.close()
    assert opener.opened[1].dead


def test_a_session_ends_the_process_of_its_reference_and_a_sibling_does_not() -> None:
    job = scale_job(reference={"kind": "kernel"})
    ports, opener = fake_ports(lambda configuration, workload: 1.0)
    session = DeviceSession(job, ports)
    session.expected.of(job.workloads[0])
    session.sibling().close()
    assert not opener.opened[0].dead
    session.close()
    assert [device.dead for device in opener.opened] == [True]
