"""Small fakes of the tuning ports: a device whose kernels are NumPy functions, and what goes with it."""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import GuardZones
from warpsmith.domain.jobs.plan import (
    CaseKey,
    Compiled,
    Family,
    TimingPlan,
    TimingSamples,
    WorkloadPlan,
)
from warpsmith.domain.templates.outcome import CompileFacts, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, InvalidInput, KernelRefused
from warpsmith.testing.jobs import DEVICE
from warpsmith.tuning.session.device_session import SessionPorts
from warpsmith.verify.inputs import draw_inputs
from warpsmith.verify.run_report import Array, Ranges, ReferenceCase, RunReport, Timed, TimedReport

GIVE_UP_SAMPLES = 3
"""After as many samples above the limit, a timing ends."""
TimeModel = Callable[[Configuration, str], float]
"""Microseconds of a configuration on a workload."""
Fault = Callable[[Configuration], str]
"""Fault of a configuration: '', 'compile', 'wrong', 'guard', 'timed' (wrong when timed),
'unsteady' (wrong when repeated), 'idle' (writes nothing), 'input' (writes into its input), 'spoils' (writes
outside its buffers, so that what runs after it in the same child is wrong) or a cause of `ChildDied`."""


@dataclass
class FakeCompiler:
    """Compiles nothing: the binary names the configuration."""

    fault: Fault
    compiled: dict[bytes, Configuration] = field(default_factory=dict)

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        """See `CompilerPort.submit`."""
        future: Future[Compiled | Rejected] = Future()
        if kernel.configuration and self.fault(kernel.configuration) == "compile":
            future.set_result(Rejected(stage=Stage.COMPILE, reason="error: no"))
            return future
        binary = configuration_key(kernel.configuration).encode()
        self.compiled[binary] = kernel.configuration
        future.set_result(Compiled(binary, kernel.kernel.entry, CompileFacts()))
        return future


@dataclass
class FakeDevice:
    """Doubles `x` into `y`, as `warpsmith.testing.jobs.scale_job` asks."""

    info: DeviceInfo
    model: TimeModel
    fault: Fault
    compiled: dict[bytes, Configuration]
    plans: dict[CaseKey, WorkloadPlan] = field(default_factory=dict)
    loaded: list[Configuration] = field(default_factory=list)
    dead: bool = False
    spoilt: bool = False
    gives_up: bool = False
    """True if a timing heeds `TimingPlan.give_up_above_us`."""

    def prepare(self, plan: WorkloadPlan, guards: GuardZones | None = None) -> None:
        """See `DevicePort.prepare`."""
        self.plans[plan.key] = plan

    def release(self, case: CaseKey) -> None:
        """See `DevicePort.release`."""
        del self.plans[case]

    def load(self, compiled: Compiled) -> int:
        """See `DevicePort.load`."""
        if compiled.binary not in self.compiled:
            raise KernelRefused("that is no binary of the fake compiler")
        self.loaded.append(self.compiled[compiled.binary])
        return len(self.loaded) - 1

    def unload(self, handle: int) -> None:
        """See `DevicePort.unload`."""
        assert not self.dead

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
        """See `DevicePort.run`."""
        assert not self.dead, "a dead child was used"
        if math.prod(size.block) > self.info.limits.max_threads_per_block:
            raise KernelRefused(f"a block of {math.prod(size.block)} threads")
        if not self.loaded[handle] and "x" in {b.name for b in self.plans[case].buffers}:
            # The kernel that shows whether a device is well copies.
            return RunReport({"y": draw_inputs(self.plans[case])["x"]}, (), ())
        fault = self.fault(self.loaded[handle])
        if fault in ("timeout", "signal", "device"):
            self.dead = True
            raise ChildDied(fault, "as the test asked")
        y = _doubled(self.plans[case])
        if fault == "idle":
            y = np.frombuffer(secrets.token_bytes(y.nbytes), np.float32)
        elif fault == "wrong" or self.spoilt:
            # Beside large inputs a one more would be within the tolerance.
            y = np.float32(1.5) * y + np.float32(1)
        self.spoilt |= fault == "spoils"
        if ranges is not None:
            y = np.concatenate([y[a:b] for a, b in ranges["y"]])
        guards = ("y",) if fault in ("guard", "spoils") else ()
        again = {"y": y + np.float32(fault == "unsteady")} if repeat else None
        return RunReport({"y": y}, guards, ("x",) if fault == "input" else (), again)

    def time(self, handle: int, case: CaseKey, size: LaunchSize, plan: TimingPlan) -> Timed:
        """See `DevicePort.time`."""
        assert not self.dead, "a dead child was used"
        # The kernels that measure the device have no parameters.
        value = self.model(self.loaded[handle], case.workload) if self.loaded[handle] else 0.001
        report = None
        if plan.check is not None:
            other = plan.check.other is not None
            family, variant = plan.check.other or (Family.DECLARED, 0)
            of = replace(self.plans[case], family=family, variant=variant)
            y = _doubled(of)
            if self.fault(self.loaded[handle]) == "timed":
                y += 1.0 + np.abs(y)  # a plain 1 would not show beside large inputs
            y = np.concatenate([y[a:b] for a, b in plan.check.ranges["y"]])
            report = TimedReport(RunReport({"y": y}, (), ()), other)
        launches = 10 if value < 10_000.0 else 1
        count = plan.samples_of(value * launches)
        samples = tuple(value * (1 + 0.001 * i) for i in range(count))
        limit = plan.give_up_above_us
        if (
            self.gives_up
            and limit is not None
            and count > GIVE_UP_SAMPLES
            and min(samples[:GIVE_UP_SAMPLES]) > limit
        ):
            return Timed(TimingSamples(samples[:GIVE_UP_SAMPLES], launches, complete=False))
        return Timed(TimingSamples(samples, launches), report, sum(samples) * launches / 1e6)

    def close(self) -> None:
        """See `DevicePort.close`."""
        self.dead = True


def _doubled(plan: WorkloadPlan) -> NDArray[np.float32]:
    return np.float32(2.0) * draw_inputs(plan)["x"].astype(np.float32)


@dataclass
class FakeOpener:
    """Opens fake devices."""

    model: TimeModel
    fault: Fault
    compiled: dict[bytes, Configuration]
    info: DeviceInfo = DEVICE
    opened: list[FakeDevice] = field(default_factory=list)
    opens: int = 10**9
    """Number of times that the device comes up before it is broken for good."""
    gives_up: bool = False
    """See `FakeDevice.gives_up`. Limits follow from what finished first, so tests of a search do without."""

    def open(self) -> FakeDevice:
        """See `DeviceOpener.open`."""
        if len(self.opened) >= self.opens:
            raise ChildDied("device", "it has fallen off the bus")
        self.opened.append(FakeDevice(self.info, self.model, self.fault, self.compiled))
        self.opened[-1].gives_up = self.gives_up
        return self.opened[-1]


class FakeReference:
    """Right for `scale_job` only."""

    def numpy(
        self, source: str, function: str, plan: WorkloadPlan, dims: Mapping[str, int]
    ) -> Mapping[str, Array]:
        """The result of one case."""
        return {"y": 2.0 * draw_inputs(plan)["x"].astype(np.float64)}

    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """See `ReferencePort.numpy_many`."""
        if function and f"def {function}(" not in source:
            refused = InvalidInput("reference", f"the source defines no function {function!r}")
            return [refused] * len(cases)
        return [self.numpy(source, function, plan, dims) for plan, dims in cases]

    def halt(self) -> None:
        """See `ReferencePort.halt`: nothing runs."""

    def go_on(self) -> None:
        """See `ReferencePort.go_on`."""


@dataclass
class ListSink:
    """Keeps trials in lists."""

    proposals: list[Configuration] = field(default_factory=list)
    trials: list[tuple[Configuration, Outcome]] = field(default_factory=list)
    stop_after: int | None = None
    """Trials after which the slice is told to end."""
    lost: bool = False
    """True if the lease is somebody else's; nothing more is recorded then."""

    def proposed(self, configurations: Sequence[Configuration]) -> None:
        """See `TrialSink.proposed`."""
        self.proposals.extend(configurations)

    def finished(self, configuration: Configuration, outcome: Outcome, seconds: float) -> None:
        """See `TrialSink.finished`."""
        if not self.lost:
            self.trials.append((configuration, outcome))

    def alive(self) -> bool:
        """See `TrialSink.alive`."""
        return not self.lost and (self.stop_after is None or len(self.trials) < self.stop_after)


def fake_ports(model: TimeModel, fault: Fault = lambda c: "") -> tuple[SessionPorts, FakeOpener]:
    """Ports over one fake device, and its opener to look into."""
    compiler = FakeCompiler(fault)
    opener = FakeOpener(model, fault, compiler.compiled)
    return SessionPorts(opener, compiler, FakeReference()), opener
