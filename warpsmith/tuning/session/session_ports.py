"""The ports a bench works through, and what it checks with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from warpsmith.domain.job import Workload
from warpsmith.domain.plan import CaseKey, Family, WorkloadPlan
from warpsmith.measure.energy import EnergyCounter
from warpsmith.tuning.ports import (
    CompilerPort,
    ConditionsPort,
    CountersPort,
    DeviceOpener,
    ReferencePort,
    SanitizerPort,
)
from warpsmith.verify.defences import Defences
from warpsmith.verify.run_report import Ranges, RunReport

NOTHING_RUNS = Defences(
    timed_launches=False, families=False, neighbours=False, floor=False, determinism=False
)
"""For recorded timings, of which there is nothing to check."""


@dataclass(frozen=True)
class SessionPorts:
    """The ports a bench works through."""

    opener: DeviceOpener
    compiler: CompilerPort
    reference: ReferencePort
    defences: Defences = field(default_factory=Defences)
    sanitizer: SanitizerPort | None = None
    """None where the platform has none."""
    conditions: ConditionsPort | None = None
    """None where the device cannot be asked."""
    counters: CountersPort | None = None
    """None where the operator wants none, or the platform has none."""
    energy: EnergyCounter | None = None
    """None where the device has no such counter."""


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


@dataclass(frozen=True)
class CheckedLaunch:
    """What one checked launch brought back, not judged yet."""

    case: Case
    """Whose expected outputs it must have."""
    plan: WorkloadPlan
    report: RunReport
    ranges: Mapping[str, Ranges] | None
    words: str = ""
    """What goes before the reason of a rejection."""
