"""Device children that report times as a kernel could that took over the process in which it runs.

No file of the corpus does that; what it would gain is shown with a stand-in between the real child and
the worker.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import GuardZones
from warpsmith.domain.jobs.plan import CaseKey, Compiled, TimingPlan, WorkloadPlan
from warpsmith.tuning.ports import DeviceOpener, DevicePort
from warpsmith.verify.run_report import Ranges, RunReport, Timed

Times = tuple[float, ...]
FORGERIES: dict[str, Callable[[Times], Times]] = {
    "forged": lambda times: tuple(1e-4 * us for us in times),
    "forged_to_a_third": lambda times: tuple(us / 3 for us in times),
    "forged_to_a_half": lambda times: tuple(us / 2 for us in times),
    "forged_to_one_value": lambda times: (min(times) / 3,) * len(times),
    "forged_by_a_part": lambda times: tuple(us - 0.6 * min(times) for us in times),
    "forged_after_the_first": lambda times: (*times[:1], *(us / 3 for us in times[1:])),
}
"""What a forger reports in place of its times, µs, by the word of a case."""


@dataclass
class ForgedDevice:
    """Passes everything on but the times of some binaries, which it makes shorter."""

    device: DevicePort
    binaries: Mapping[bytes, Callable[[Times], Times]]
    info: DeviceInfo
    forged: dict[int, Callable[[Times], Times]] = field(default_factory=dict)
    """What is reported, by handle."""

    def prepare(self, plan: WorkloadPlan, guards: GuardZones | None = None) -> None:
        self.device.prepare(plan, guards)

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
        samples = replace(timed.samples, samples_us=self.forged[handle](timed.samples.samples_us))
        return replace(timed, samples=samples)

    def close(self) -> None:
        self.device.close()


@dataclass
class ForgingOpener:
    """Opens real children; the times of `binaries` are replaced."""

    opener: DeviceOpener
    binaries: dict[bytes, Callable[[Times], Times]] = field(default_factory=dict)

    @property
    def info(self) -> DeviceInfo:
        return self.opener.info

    def open(self) -> ForgedDevice:
        return ForgedDevice(self.opener.open(), self.binaries, self.info)
