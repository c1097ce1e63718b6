"""The user's kernel as its own reference, if the job has no other."""

from collections.abc import Iterable, Mapping

from warpsmith.domain.job import Workload
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import WorkloadPlan, expecting_launches, launch_size
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput, KernelRefused
from warpsmith.tuning.ports import DevicePort
from warpsmith.tuning.session.session_ports import SessionPorts
from warpsmith.verify.run_report import Array


def run_own_kernel(
    ports: SessionPorts, kernel: ConfiguredKernel, cases: Iterable[tuple[WorkloadPlan, Workload]]
) -> list[Mapping[str, Array] | InvalidInput]:
    """Outputs of every case, in processes that ran no candidate; a failed case is an item and not raised.

    Raises:
        InvalidInput: the kernel does not compile.
    """
    cases = list(cases)
    info = ports.opener.info
    compiled = ports.compiler.submit(expecting_launches(kernel, [w for _, w in cases], info), info).result()
    if isinstance(compiled, Rejected):
        raise InvalidInput("kernel", f"the kernel does not compile: {compiled.reason}")
    found: list[Mapping[str, Array] | InvalidInput] = []
    device: DevicePort | None = None
    handle = 0
    try:
        for plan, workload in cases:
            try:
                if device is None:
                    device = ports.opener.open()
                    handle = device.load(compiled)
                device.prepare(plan)
                report = device.run(handle, plan.key, launch_size(kernel, workload, device.info))
                # A kernel that damaged its process ends it here at the latest, and cannot be a reference.
                device.release(plan.key)
                found.append(report.outputs)
            except (ChildDied, KernelRefused, ExpressionError) as exc:
                found.append(InvalidInput("kernel", f"the kernel fails as its own reference: {exc}"))
                if device is not None:
                    device.close()
                device = None
    finally:
        if device is not None:
            device.close()
    return found
