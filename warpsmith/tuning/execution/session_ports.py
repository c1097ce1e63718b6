"""The ports of a session, and its defences."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import CaseKey, Family, WorkloadPlan
from warpsmith.measure.energy import EnergyCounter
from warpsmith.tuning.ports import (
    CeilingsPort,
    CompilerPort,
    ConditionsPort,
    CountersPort,
    DeviceOpener,
    ReferencePort,
    SanitizerPort,
)
from warpsmith.verify.defences import Defences
from warpsmith.verify.element_masks import ElementMask
from warpsmith.verify.run_report import Ranges, RunReport

NOTHING_RUNS = Defences(
    timed_launches=False,
    families=False,
    neighbours=False,
    worlds=False,
    between=False,
    floor=False,
    determinism=False,
)
"""Defences for recorded timings, for which nothing can be checked."""


@dataclass(frozen=True)
class SessionPorts:
    """The ports of a session."""

    opener: DeviceOpener
    compiler: CompilerPort
    reference: ReferencePort
    defences: Defences = field(default_factory=Defences)
    sanitizer: SanitizerPort | None = None
    """Memory sanitizer; None if the platform has none."""
    conditions: ConditionsPort | None = None
    """Clocks and throttling; None if the device cannot report its state."""
    counters: CountersPort | None = None
    """Hardware counters; None if the operator disabled them, or the platform has none."""
    energy: EnergyCounter | None = None
    """Energy counter; None if the device has none."""
    ceilings: CeilingsPort | None = None
    """Store of ceilings; None: this process holds them, for as long as it lives."""
    device_reference: ReferencePort | None = None
    """Computes the references of large cases on the device, in moments; what it finds wrong with a kernel is
    judged by `reference` in the end. None: the device has no library for that."""


@dataclass(frozen=True)
class Case:
    """A workload with one family and variant of inputs."""

    workload: Workload
    family: Family = Family.DECLARED
    variant: int = 0

    @property
    def key(self) -> CaseKey:
        """The name of these inputs."""
        return CaseKey(self.workload.key, self.family, self.variant)


def as_case(of: Workload | Case) -> Case:
    """A case as it is; of a workload, its own inputs."""
    return of if isinstance(of, Case) else Case(of)


@dataclass(frozen=True)
class LoadedKernel:
    """A binary in a device child, and its launch on one workload."""

    handle: int
    """Handle from `DevicePort.load`; void once that child is replaced."""
    workload: Workload
    size: LaunchSize


@dataclass(frozen=True)
class CheckedLaunch:
    """Data of one checked launch, not evaluated yet."""

    case: Case
    """Case whose expected outputs it must match."""
    plan: WorkloadPlan
    report: RunReport
    """Report without elements that do not count."""
    ranges: Mapping[str, Ranges] | None
    """Element ranges that were brought back, in the whole outputs; None: all were."""
    words: str = ""
    """Prefix of a rejection's reason."""
    masks: Mapping[str, ElementMask] = field(default_factory=dict)
    """Masks of the elements that count, by name, of outputs of which not all do."""
