"""Energy of two kernels on one workload, in turns."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.domain.job import Job, Metric
from warpsmith.domain.kernel import Role
from warpsmith.domain.outcome import Comparison
from warpsmith.measure.energy import RUN_S, EnergyCounter, EnergyWatch, energy_plan, power_w
from warpsmith.measure.protocol import winner_blocks
from warpsmith.tuning.blocks import Side
from warpsmith.tuning.seconds import SpareTime

PAIRS = 3
"""Runs of each kernel."""
ENERGIES_S = 1.2 * 2 * PAIRS * RUN_S
"""That the energies of two kernels take."""
MIN_SAVING = 0.02
"""No difference in energy below this is called one."""


@dataclass(frozen=True)
class Energies:
    """Millijoules of one launch."""

    baseline_mj: float
    winner_mj: float
    spread: float
    """Largest relative difference between two runs of the same kernel."""


def saves_energy(comparison: Comparison) -> bool:
    """Whether a winner needs less than the baseline, beyond what runs of one kernel differ by."""
    before, after = comparison.baseline_mj, comparison.best_mj
    if before is None or after is None:
        return False
    return after < before * (1 - max(MIN_SAVING, comparison.energy_spread or 0.0))


def counts_energy(counter: EnergyCounter | None) -> bool:
    """Whether a device has a counter that can be read."""
    return counter is not None and counter.energy_j() is not None


def measurable(job: Job) -> bool:
    """Whether a long run of launches needs no work between them that would be counted, too."""
    return all(a.role is not Role.INOUT for a in job.kernel.arguments)


def energies(
    job: Job, counter: EnergyCounter, sides: Mapping[str, Side], times_us: Mapping[str, float], seed: int
) -> Energies | None:
    """Energy of a launch of both, in interleaved runs; None where the device does not tell.

    Args:
        sides: the baseline, `A`, and the winner, `B`.
        times_us: of a launch of each, so that runs are long enough.

    Raises:
        ChildDied: a child is gone.
    """
    if not measurable(job) or counter.energy_j() is None:
        return None
    found: dict[str, list[float]] = {"A": [], "B": []}
    for name in winner_blocks(PAIRS, seed):
        side, plan = sides[name], energy_plan(job.objective.cache, times_us[name])
        device = side.bench.device(side.workload)
        with EnergyWatch(counter) as watch:
            timed = device.time(side.handle, side.workload.key, side.size, plan)
        watts = power_w(watch.readings)
        if watts is None:
            return None
        found[name].append(watts * float(np.median(timed.samples_us)) / 1000.0)
    return Energies(
        float(np.median(found["A"])), float(np.median(found["B"])), max(map(_spread, found.values()))
    )


def energies_in_time(
    job: Job,
    counter: EnergyCounter | None,
    sides: Mapping[str, Side],
    times_us: Mapping[str, float],
    seed: int,
    spare: SpareTime,
) -> Energies | None:
    """See `energies`; None as well where nobody asked for them and there is no time."""
    if counter is None or not (job.objective.metric is Metric.ENERGY or spare.fits(ENERGIES_S)):
        return None
    began = time.monotonic()
    found = energies(job, counter, sides, times_us, seed)
    spare.took(time.monotonic() - began)
    return found


def _spread(runs: Sequence[float]) -> float:
    return (max(runs) - min(runs)) / min(runs)
