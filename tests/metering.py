"""A fake device that draws power, and a counter that counts it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from testbed.fakes import FakeDevice, FakeOpener, fake_ports
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import CaseKey, TimingPlan
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.session.device_session import SessionPorts
from warpsmith.verify.run_report import Timed

RUN_S = 0.15
"""That a run for the counter really takes."""
BlockFigures = dict[int, float]
"""By the number of threads of a block."""


@dataclass
class Meter:
    """Moves by the power of the kernel that is being timed."""

    watts: float = 0.0
    joules: float = 0.0
    read: float = field(default_factory=time.monotonic)
    runs: int = 0
    silent_after: int = 10**9
    """Runs after which it stands still."""

    def energy_j(self) -> float | None:
        """Joules so far."""
        now = time.monotonic()
        if self.runs <= self.silent_after:
            self.joules += self.watts * (now - self.read)
        self.read = now
        return self.joules


@dataclass
class HotDevice(FakeDevice):
    """Takes its time where launches are many, and draws the power of what runs."""

    meter: Meter = field(default_factory=Meter)
    power_w: BlockFigures = field(default_factory=dict)

    def time(self, handle: int, case: CaseKey, size: LaunchSize, plan: TimingPlan) -> Timed:
        """See `FakeDevice.time`; a run of many launches that is looked at has a power."""
        timed = super().time(handle, case, size, plan)
        if plan.launches and plan.check is not None:
            self.meter.runs += 1
            self.meter.watts = self.power_w[int(self.loaded[handle].get("BLOCK", 64))]
            time.sleep(RUN_S)
            self.meter.watts = 0.0
        return timed


@dataclass
class HotOpener(FakeOpener):
    """Opens hot devices."""

    meter: Meter = field(default_factory=Meter)
    power_w: BlockFigures = field(default_factory=dict)

    def open(self) -> FakeDevice:
        """See `FakeOpener.open`."""
        self.opened.append(
            HotDevice(
                self.info, self.model, self.fault, self.compiled, meter=self.meter, power_w=self.power_w
            )
        )
        return self.opened[-1]


def hot_ports(
    counter: Any,
    times_us: BlockFigures,
    power_w: BlockFigures,
    fault: Callable[[Configuration], str] = lambda c: "",
) -> SessionPorts:
    """Ports over a fake CUDA device, and a counter of its energy (or another one, which stays as it is)."""
    ports, opener = fake_ports(lambda c, w: times_us[int(c["BLOCK"])], fault)
    meter = counter if isinstance(counter, Meter) else Meter()
    info = DEVICE.model_copy(update={"backend": Backend.CUDA, "architecture": "sm_90"})
    hot = HotOpener(opener.model, opener.fault, opener.compiled, info, meter=meter, power_w=power_w)
    return replace(ports, opener=hot, energy=counter)


def cuda_job(**objective: Any) -> Job:
    """The scale job on one workload, as CUDA."""
    source = scale_job().kernel.model_dump(mode="json") | {"backend": "cuda"}
    return scale_job(kernel=source, objective=objective, workloads=[{"dimensions": {"n": 4096}}])
