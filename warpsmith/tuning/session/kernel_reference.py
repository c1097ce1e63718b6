"""The user's kernel as its own reference, if the job has no other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from warpsmith.domain.job import Workload
from warpsmith.domain.launch_size import expecting_launches, launch_size
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import WorkloadPlan
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput, KernelRefused
from warpsmith.tuning.ports import DevicePort
from warpsmith.tuning.session.session_ports import SessionPorts
from warpsmith.verify.run_report import Array


@dataclass
class OwnKernel:
    """Runs the user's kernel in a child that runs nothing else, and is kept until `close`."""

    ports: SessionPorts
    kernel: ConfiguredKernel
    _device: DevicePort | None = None
    _handle: int = 0

    def outputs(
        self, cases: Iterable[tuple[WorkloadPlan, Workload]]
    ) -> list[Mapping[str, Array] | InvalidInput]:
        """Outputs of every case; a failed case is an item and not raised.

        Raises:
            InvalidInput: the kernel does not compile.
        """
        cases = list(cases)
        info = self.ports.opener.info
        expecting = expecting_launches(self.kernel, [w for _, w in cases], info)
        compiled = self.ports.compiler.submit(expecting, info).result()
        if isinstance(compiled, Rejected):
            raise InvalidInput("kernel", f"the kernel does not compile: {compiled.reason}")
        found: list[Mapping[str, Array] | InvalidInput] = []
        for plan, workload in cases:
            try:
                if self._device is None:
                    self._device = self.ports.opener.open()
                    self._handle = self._device.load(compiled)
                size = launch_size(self.kernel, workload, info)
                self._device.prepare(plan)
                report = self._device.run(self._handle, plan.key, size)
                # A kernel that damaged its process ends it here at the latest, and cannot be a reference.
                self._device.release(plan.key)
                found.append(report.outputs)
            except (ChildDied, KernelRefused, ExpressionError) as exc:
                found.append(InvalidInput("kernel", f"the kernel fails as its own reference: {exc}"))
                self.close()
        return found

    def close(self) -> None:
        """End the child; the next case opens another."""
        device, self._device = self._device, None
        if device is not None:
            device.close()
