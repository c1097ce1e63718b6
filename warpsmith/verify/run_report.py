"""What one checked launch brought back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.plan import TimingSamples, WorkloadPlan

Array = NDArray[np.generic]
Ranges = Sequence[tuple[int, int]]
"""Half-open element ranges of a flattened buffer."""
ReferenceCase = tuple[WorkloadPlan, Mapping[str, int]]
"""What a reference is computed for: a plan, and the dimensions of its workload."""


@dataclass(frozen=True)
class RunReport:
    """One checked launch: poisoned outputs before it, guards and read-only inputs looked at after it."""

    outputs: Mapping[str, Array]
    """Every mutated argument: its whole flat contents, or the asked ranges joined in order."""
    guard_violations: tuple[str, ...]
    """Buffers whose guard zones changed."""
    changed_inputs: tuple[str, ...]
    """Read-only inputs that changed."""
    repeated: Mapping[str, Array] | None = None
    """The same of a second launch on the same inputs, where one was asked for."""
    changed_globals: tuple[str, ...] = ()
    """Device variables that are not what they were when the binary was loaded."""
    poison: Mapping[str, bytes] = field(default_factory=dict)
    """Four bytes, again and again, that outputs held before the launch, by name; none where they were not
    filled. For messages alone."""


@dataclass(frozen=True)
class TimedReport:
    """One random launch among those that were timed."""

    run: RunReport
    other: bool
    """It had the other inputs of the `TimedCheck`, not the workload's own."""


@dataclass(frozen=True)
class Timed:
    """What one timing brought back."""

    samples: TimingSamples
    report: TimedReport | None = None
    """None if no launch was to be checked, or the timing ended before the launch that was."""
