"""The ports a bench works through, and what it checks with."""

from dataclasses import dataclass, field

from warpsmith.domain.job import Workload
from warpsmith.domain.plan import Family
from warpsmith.tuning.ports import CompilerPort, DeviceOpener, ReferencePort
from warpsmith.verify.defences import Defences

NOTHING_RUNS = Defences(
    timed_launches=False, families=False, neighbours=False, drift=False, floor=False, determinism=False
)
"""For recorded timings, of which there is nothing to check."""


@dataclass(frozen=True)
class Tools:
    """The ports a bench works through."""

    opener: DeviceOpener
    compiler: CompilerPort
    reference: ReferencePort
    defences: Defences = field(default_factory=Defences)


@dataclass(frozen=True)
class Case:
    """A workload with one family and variant of inputs."""

    workload: Workload
    family: Family = Family.DECLARED
    variant: int = 0

    @property
    def key(self) -> str:
        """The workload's key, and what is not its own draw."""
        if self.family is Family.DECLARED and self.variant == 0:
            return self.workload.key
        return f"{self.workload.key}#{self.family.value}{self.variant}"
