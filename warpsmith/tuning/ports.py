"""Ports: the interfaces that tuning needs from the other packages. They are small, so that a fake takes ten
lines."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Literal, Protocol

from warpsmith.domain.device import Ceilings, DeviceInfo
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import GuardZones
from warpsmith.domain.jobs.plan import CaseKey, Compiled, TimingPlan, WorkloadPlan
from warpsmith.domain.state import SliceEnd
from warpsmith.domain.templates.outcome import Conditions, Outcome, Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import InvalidInput
from warpsmith.verify.run_report import Array, Ranges, ReferenceCase, RunReport, Timed


class CompilerPort(Protocol):
    """Compiles in throw-away children; several at once."""

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        """Start compiling. The future never raises for a bad kernel: it gives `Rejected`."""
        ...


class DevicePort(Protocol):
    """Device that is driven in one child process.

    Every method raises `ChildDied` when the child crashes, hangs past its deadline or reports a
    fault of the device; the child is then gone and another must be opened.
    """

    info: DeviceInfo

    def prepare(self, plan: WorkloadPlan, guards: GuardZones | None = None) -> None:
        """Allocate and fill the buffer sets of a plan; replaces those held under the same key.

        Args:
            guards: None: the usual ones.
        """
        ...

    def release(self, case: CaseKey) -> None:
        """Free the buffers that `prepare` made of the plan with this key."""
        ...

    def load(self, compiled: Compiled) -> int:
        """Load a binary; returns a handle for `run` and `time`."""
        ...

    def unload(self, handle: int) -> None:
        """Unload a binary."""
        ...

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
        """Restore inputs, poison outputs, launch once, and bring back outputs (whole, or `ranges`).

        Args:
            repeat: launch a second time, over a result of which a random half is overwritten.
        """
        ...

    def time(self, handle: int, case: CaseKey, size: LaunchSize, plan: TimingPlan) -> Timed:
        """Time by the best method of the back end; addresses rotate, in-place data is restored.

        Returns:
            The samples, and what `plan.check` asked for of one random launch among them.
        """
        ...

    def close(self) -> None:
        """End the child."""
        ...


class DeviceOpener(Protocol):
    """Opens fresh children for one device."""

    @property
    def info(self) -> DeviceInfo:
        """The device."""
        ...

    def open(self) -> DevicePort:
        """A fresh process with its own context.

        Raises:
            ChildDied: the device cannot be opened.
        """
        ...


class ConditionsPort(Protocol):
    """Reads the state of a device while kernels are timed."""

    def read(self, side: Literal["A", "B"]) -> Conditions | None:
        """Current clocks, temperature and power; None if the device does not report them."""
        ...


class CeilingsPort(Protocol):
    """Keeps the measured ceilings of a device."""

    def known(self) -> Ceilings | None:
        """Ceilings that still hold for the device as it is now; None: they must be measured."""
        ...

    def keep(self, ceilings: Ceilings) -> None:
        """Keep ceilings that were just measured."""
        ...


class SanitizerPort(Protocol):
    """Runs a kernel once under the platform's tools for memory errors, races and misused barriers."""

    def findings(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, str]:
        """First finding by tool, `Warning: ...` if the tool itself is not sure; empty if there is none.

        Raises:
            Unavailable: a tool did not finish; the message says which and why.
        """
        ...

    def expect(self, count: int) -> None:
        """Have what so many calls of `findings` need started in advance; in the thread that asks for them."""
        ...

    def settle(self) -> None:
        """Wait until what was started in advance is ready, and does nothing any more."""
        ...

    def drop(self) -> None:
        """End what was started in advance and not used."""
        ...


class CountersPort(Protocol):
    """Runs a kernel once under the platform's profiler."""

    def counters(self, compiled: Compiled, plan: WorkloadPlan, size: LaunchSize) -> Mapping[str, float]:
        """Hardware counters by name.

        Raises:
            Unavailable: the profiler does not run here, or may not.
        """
        ...


class ReferencePort(Protocol):
    """Computes expected outputs outside of every candidate's process."""

    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """Run a NumPy reference on several cases in sandboxed children: flat, and in `wanted_dtype`.

        A failed case is an `InvalidInput` item of the result and is not raised; it names the function's
        error.
        """
        ...

    def halt(self) -> None:
        """Make what other threads have asked for stand still, until `go_on`."""
        ...

    def go_on(self) -> None:
        """End a halt; nothing happens if there is none."""
        ...


class Searcher(Protocol):
    """Proposes configurations and is told results; never executes anything."""

    def ask(self, count: int) -> Sequence[Configuration]:
        """Up to `count` configurations not asked before; fewer or none if the space is exhausted."""
        ...

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """The objective of a configuration (lower is better), or None if it was rejected."""
        ...

    @property
    def forecast(self) -> "CompileForecast | None":
        """Forecast for compiling ahead. None: nothing is compiled before it is asked for."""
        return None

    @property
    def cut_off(self) -> SliceEnd | None:
        """Reason for handing out nothing although the search may go on; None: the space is exhausted."""
        return None


class CompileForecast(Protocol):
    """Configurations that a searcher will probably ask for, and what it learns from compiling them early."""

    def likely(self, count: int, after: Sequence[Configuration] = ()) -> Sequence[Configuration]:
        """Up to `count` configurations without a report that it may ask for soon, likeliest first. Asks
        nothing.

        Args:
            after: configurations that run before its next request without its having asked for them.
        """
        ...

    def learn(self, configuration: Configuration, occupancy: float | None, spills: bool) -> None:
        """Record a compiler's report.

        Args:
            occupancy: resident warps divided by the most that fit; None if unknown.
            spills: whether registers are spilled to memory.
        """
        ...

    def exclude(self, configuration: Configuration) -> None:
        """The configuration does not compile and is never to be asked for. It does not count as a trial."""
        ...


class TrialSink(Protocol):
    """Store of a slice's trials; commits about once a second."""

    def proposed(self, configurations: Sequence[Configuration]) -> None:
        """Record configurations that are about to run."""
        ...

    def finished(self, configuration: Configuration, outcome: Outcome, seconds: float) -> None:
        """Record a finished trial, which is never run again."""
        ...

    def alive(self) -> bool:
        """Flush, renew the lease, and return whether to continue (False: lease lost, job cancelled)."""
        ...
