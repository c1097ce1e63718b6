"""Launches between pages without access rights, with write-protected inputs, on devices that are CPUs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import GuardZones, PagesAt
from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.errors import ChildDied, KernelRefused, Unavailable
from warpsmith.sandbox.hosts.device_host import ChildDevice, ChildOpener
from warpsmith.verify.run_report import RunReport

PROTECTION = "write protection"


@dataclass(frozen=True)
class GuardPages:
    """Implements `tuning.ports.SanitizerPort` for kernels that run on the host's cores."""

    opener: ChildOpener

    def expect(self, count: int) -> None:
        """See `SanitizerPort.expect`; a child opens quickly, and would slow down what is timed meanwhile."""

    def settle(self) -> None:
        """See `SanitizerPort.settle`; nothing waits."""

    def drop(self) -> None:
        """See `SanitizerPort.drop`; nothing waits."""

    def findings(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, str]:
        """See `SanitizerPort.findings`. A kernel that needs aligned buffers has no answer right behind."""
        found = {PROTECTION: ""}
        try:
            for at, report in self._launches(compiled, plan, size):
                tool = f"guard pages {at.value}"
                if isinstance(report, RunReport):
                    names = ", ".join(report.guard_violations)
                    found[tool] = names and f"reads or writes {names}"
                    written = ", ".join(report.changed_inputs)
                    found[PROTECTION] = found[PROTECTION] or (written and f"writes to the input {written}")
                elif at is not PagesAt.RIGHT_BEHIND:
                    found[tool] = f"ended its process: {report.detail}"
        except (ChildDied, KernelRefused) as exc:
            raise Unavailable(f"guard pages: {exc}") from exc
        return found

    def _launches(
        self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize
    ) -> Iterator[tuple[PagesAt, RunReport | ChildDied]]:
        """A launch at each place, or how it ended the child. Raises `ChildDied` for what the kernel did
        not do."""
        device: ChildDevice | None = None
        try:
            for at in PagesAt:
                device = device or self.opener.open()
                device.prepare(plan, GuardZones(0, pages=at))
                handle = device.load(compiled)
                try:
                    yield at, device.run(handle, plan.key, size)
                except ChildDied as exc:
                    if exc.cause == "timeout":
                        raise
                    device.close()
                    device = None
                    yield at, exc
        finally:
            if device is not None:
                device.close()
