"""Device children that report times as a kernel could that took over the process in which it runs.

No file of the corpus does that; what it would gain is shown with a stand-in between the real child and
the worker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.launch_size import LaunchSize
from warpsmith.domain.plan import CaseKey, Compiled, TimingPlan, WorkloadPlan
from warpsmith.tuning.ports import DeviceOpener, DevicePort
from warpsmith.verify.run_report import Ranges, RunReport, Timed

FACTORS = {"forged": 1e-4, "forged_to_a_third": 1 / 3}
"""What the times of a forger are multiplied with, by the word of a case."""


@dataclass
class ForgedDevice:
    """Passes everything on, and makes the times of some binaries shorter."""

    device: DevicePort
    binaries: Mapping[bytes, float]
    info: DeviceInfo
    forged: dict[int, float] = field(default_factory=dict)
    """Factors by handle."""

    def prepare(self, plan: WorkloadPlan, *, small_guards: bool = False) -> None:
        self.device.prepare(plan, small_guards=small_guards)

    def release(self, case: CaseKey) -> None:
        self.device.release(case)

    def load(self, compiled: Compiled) -> int:
        handle = self.device.load(compiled)
        if compiled.binary in self.binaries:
            self.forged[handle] = self.binaries[compiled.binary]
        return handle

    def unload(self, handle: int) -> None:
        self.device.unload(handle)

    def run(
        self,
        handle: int,
        case: CaseKey,
        size: LaunchSize,
        ranges: Mapping[str, Ranges] | None = None,
        *,
        repeat: bool = False,
        poison: bool = True,
    ) -> RunReport:
        return self.device.run(handle, case, size, ranges, repeat=repeat, poison=poison)

    def time(self, handle: int, case: CaseKey, size: LaunchSize, plan: TimingPlan) -> Timed:
        timed = self.device.time(handle, case, size, plan)
        if handle not in self.forged:
            return timed
        factor = self.forged[handle]
        samples = replace(timed.samples, samples_us=tuple(factor * s for s in timed.samples.samples_us))
        return replace(timed, samples=samples)

    def close(self) -> None:
        self.device.close()


@dataclass
class ForgingOpener:
    """Opens real children; the times of `binaries` are multiplied with their factors."""

    opener: DeviceOpener
    binaries: dict[bytes, float] = field(default_factory=dict)

    @property
    def info(self) -> DeviceInfo:
        return self.opener.info

    def open(self) -> ForgedDevice:
        return ForgedDevice(self.opener.open(), self.binaries, self.info)
