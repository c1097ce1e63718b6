"""Reports of a child on one checked launch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.jobs.plan import TimingSamples, WorkloadPlan

Array = NDArray[np.generic]
Ranges = Sequence[tuple[int, int]]
"""Half-open element ranges of a flattened buffer."""
ReferenceCase = tuple[WorkloadPlan, Mapping[str, int]]
"""Input of a reference: a plan, and the dimensions of its workload."""


@dataclass(frozen=True)
class RunReport:
    """Report of a launch: outputs poisoned before it, guards and read-only inputs checked after it."""

    outputs: Mapping[str, Array]
    """Every mutated argument: its whole flat contents, or the requested ranges joined in order."""
    guard_violations: tuple[str, ...]
    """Buffers whose guard zones changed."""
    changed_inputs: tuple[str, ...]
    """Read-only inputs that changed."""
    repeated: Mapping[str, Array] | None = None
    """Outputs of a second launch on the same inputs; None if there was none."""
    repeated_ranges: Mapping[str, Ranges] = field(default_factory=dict)
    """Ranges of the elements of `repeated`, by name; a lacking output has those of the first launch."""
    changed_globals: tuple[str, ...] = ()
    """Device variables that differ from their values after loading."""
    poison: Mapping[str, bytes] = field(default_factory=dict)
    """The repeated four bytes that outputs held before the launch, by name; empty if they were not filled."""

    def where_repeated(self, name: str, elements: Array) -> Array:
        """Elements of an output that the second launch brought back as well."""
        ranges = self.repeated_ranges.get(name)
        return elements if ranges is None else np.concatenate([elements[a:b] for a, b in ranges])


@dataclass(frozen=True)
class TimedReport:
    """Report of a random launch among the timed ones."""

    run: RunReport
    other: bool
    """True if it had the other inputs of the `TimedCheck` instead of the workload's own."""


@dataclass(frozen=True)
class Timed:
    """Samples and report of one timing."""

    samples: TimingSamples
    report: TimedReport | None = None
    """Checked launch; None if none was to be checked, or the timing ended before it."""
    wall_s: float = 0.0
    """Seconds from the request to the reply by the worker's own clock."""
