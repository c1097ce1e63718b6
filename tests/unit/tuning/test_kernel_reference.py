"""The user's kernel as its own reference, on a device whose process may end at any moment."""

from dataclasses import dataclass

from warpsmith.domain.plan import CaseKey, plan_workload
from warpsmith.domain.template import Template
from warpsmith.errors import ChildDied, InvalidInput
from warpsmith.testing.fakes import FakeCompiler, FakeDevice, FakeOpener
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.session.device_session import SessionPorts
from warpsmith.tuning.session.kernel_reference import run_own_kernel
from warpsmith.verify.run_report import ReferenceCase


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
    def numpy_many(self, source: str, function: str, cases: list[ReferenceCase]) -> list[object]:
        raise AssertionError("the job has no NumPy reference")


def test_a_kernel_that_damages_its_process_is_one_failed_case_and_the_next_gets_a_new_process() -> None:
    job = scale_job(reference={"kind": "kernel"})
    compiler = FakeCompiler(lambda configuration: "")
    opener = DyingFirst(lambda configuration, workload: 1.0, compiler.fault, compiler.compiled)
    ports = SessionPorts(opener, compiler, NoReference())
    template = Template(kernel=job.kernel, space=job.space)
    cases = [
        (plan_workload(job.kernel, w, DEVICE.scope() | job.space.defaults, seed=1), w) for w in job.workloads
    ]
    first, *others = run_own_kernel(ports, template.configured(job.space.defaults), cases)
    assert len(others) == len(cases) - 1
    assert isinstance(first, InvalidInput)
    assert "SIGABRT" in first.message
    assert all("y" in outputs for outputs in others)
    assert len(opener.opened) == 2
