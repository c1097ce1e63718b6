"""The user's kernel as its own reference, if the job has no other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.memory import wide_zones
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput, KernelRefused
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.tuning.execution.variants import LoadedVariants, submit
from warpsmith.tuning.ports import DevicePort
from warpsmith.verify.run_report import Array

OVERRUN_TRIES = 2
"""Launches with each kind of guard words; what chance hid from one is probably shown by the next."""


@dataclass
class OwnKernel:
    """Runs the user's kernel in a child that runs nothing else, and is kept until `close`."""

    ports: SessionPorts
    kernel: ConfiguredKernel
    _device: DevicePort | None = None
    _variants: LoadedVariants | None = None

    def outputs(
        self, cases: Iterable[tuple[WorkloadPlan, Workload]]
    ) -> list[Mapping[str, Array] | InvalidInput]:
        """Outputs of every case; a failed case is an item and not raised.

        Raises:
            InvalidInput: the kernel does not compile.
        """
        cases = list(cases)
        compiled = self._compiled([w for _, w in cases])
        found: list[Mapping[str, Array] | InvalidInput] = []
        for plan, workload in cases:
            try:
                size = launch_size(self.kernel, workload, self.ports.opener.info)
                device, handle = self._loaded(compiled, workload)
                device.prepare(plan)
                report = device.run(handle, plan.key, size)
                # A kernel that damaged its process ends it here at the latest, and cannot be a reference.
                device.release(plan.key)
                found.append(report.outputs)
            except (ChildDied, KernelRefused, ExpressionError) as exc:
                found.append(InvalidInput("kernel", f"the kernel fails as its own reference: {exc}"))
                self.close()
        return found

    def overruns(self, plans: Sequence[WorkloadPlan], workload: Workload) -> bool:
        """True if it writes outside its buffers on any of these inputs; false also if that cannot be told.

        One kind of guard words shows what the other hides: a number that is added vanishes beside larger
        ones, and one near zero may be within bounds that a kernel keeps.
        """
        try:
            compiled = self._compiled([workload])
            size = launch_size(self.kernel, workload, self.ports.opener.info)
            for plan, small in product(plans, (True, False) * OVERRUN_TRIES):
                device, handle = self._loaded(compiled, workload)
                device.prepare(plan, wide_zones(plan, small=small))
                if device.run(handle, plan.key, size).guard_violations:
                    return True
        except (ChildDied, KernelRefused, ExpressionError, InvalidInput):
            self.close()
        return False

    def _compiled(self, workloads: Sequence[Workload]) -> Compiled:
        info = self.ports.opener.info
        compiled = submit(self.ports.compiler, self.kernel, workloads, info).result()
        if isinstance(compiled, Rejected):
            raise InvalidInput("kernel", f"the kernel does not compile: {compiled.reason}")
        return compiled

    def _loaded(self, compiled: Compiled, workload: Workload) -> tuple[DevicePort, int]:
        """The child, and the handle of the kernel in it for launches on a workload."""
        if self._device is None or self._variants is None:
            self._device = self.ports.opener.open()
            self._variants = LoadedVariants(
                self.ports.compiler, self.ports.opener.info, self.kernel, compiled
            )
        return self._device, self._variants.on(self._device, workload)

    def close(self) -> None:
        """End the child; the next case opens another."""
        device, self._device, self._variants = self._device, None, None
        if device is not None:
            device.close()
