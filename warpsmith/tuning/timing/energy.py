"""Energy of two kernels on one workload, measured alternately."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Comparison, Rejected, Stage, WorkloadTiming
from warpsmith.measure.energy import EnergyCounter, EnergyWatch, energy_plan, power_w
from warpsmith.measure.protocol import winner_blocks
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import CheckedLaunch
from warpsmith.tuning.timing.paired_blocks import TimedSide

PAIRS = 3
"""Number of runs of each kernel."""
SILENT = "the device's energy counter did not move as it should"
MIN_SAVING = 0.02
"""Least relative difference in energy that is ever claimed."""


@dataclass(frozen=True)
class Energies:
    """Millijoules per launch of both kernels."""

    baseline_mj: float
    winner_mj: float
    spread: float
    """Largest relative difference between two runs of the same kernel."""


def saves_energy(comparison: Comparison) -> bool:
    """True if a winner needs less energy than the baseline by more than runs of one kernel differ."""
    before, after = comparison.baseline_mj, comparison.best_mj
    if before is None or after is None:
        return False
    return after < before * (1 - max(MIN_SAVING, comparison.energy_spread or 0.0))


def counts_energy(counter: EnergyCounter | None) -> bool:
    """True if a device has an energy counter that can be read."""
    return counter is not None and counter.energy_j() is not None


def launch_mj(
    side: TimedSide, counter: EnergyCounter, time_us: float
) -> tuple[float | None, CheckedLaunch | None]:
    """Millijoules per launch from one run, and the outputs of a random launch of it.

    Args:
        time_us: time of a launch, µs; sets the length of the run.

    Raises:
        ChildDied: the child is gone.
    """
    plan = energy_plan(side.session.job.objective.cache, time_us)
    with EnergyWatch(counter) as watch:
        timed, launch = side.session.sampler.sample(side.loaded, plan, other=None)
    watts = power_w(watch.readings)
    return (None if watts is None else watts * float(np.median(timed.samples_us)) / 1000.0), launch


def metered(side: TimedSide, timing: WorkloadTiming) -> WorkloadTiming | Rejected:
    """A timing extended by the energy of a launch.

    Raises:
        ChildDied: the child is gone.
    """
    counter, us = side.session.ports.energy, time_us(side.session.job, timing)
    millijoules, launch = (None, None) if counter is None or us is None else launch_mj(side, counter, us)
    refused = side.session.checker.refusal(launch)
    if refused is None and millijoules is None:
        return Rejected(stage=Stage.TIMING, reason=SILENT, workload=side.loaded.workload.key)
    return refused or timing.model_copy(update={"energy_mj": millijoules})


def energies(
    job: Job,
    counter: EnergyCounter | None,
    sides: Mapping[str, TimedSide],
    times_us: Mapping[str, float],
    seed: int,
) -> Energies | Rejected | None:
    """Energy per launch of both, in interleaved runs; None if the job does not ask for it, or if the device
    does not report it.

    Rejected if a launch of such a run has wrong outputs.

    Args:
        sides: the baseline, `A`, and the winner, `B`.
        times_us: time of a launch of each, µs; sets the lengths of the runs.

    Raises:
        ChildDied: a child is gone.
    """
    if counter is None or not job.objective.measures_energy or counter.energy_j() is None:
        return None
    found: dict[str, list[float]] = {"A": [], "B": []}
    for name in winner_blocks(PAIRS, seed):
        millijoules, launch = launch_mj(sides[name], counter, times_us[name])
        refused = sides[name].session.checker.refusal(launch)
        if refused is not None:
            return refused
        if millijoules is None:
            return None
        found[name].append(millijoules)
    return Energies(
        float(np.median(found["A"])), float(np.median(found["B"])), max(map(_spread, found.values()))
    )


def _spread(runs: Sequence[float]) -> float:
    return (max(runs) - min(runs)) / min(runs)
