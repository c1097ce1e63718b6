"""Energy of a launch: a device's energy counter, read while many launches run.

The counter covers the whole device and moves in steps of 10 to 100 ms. Mean power is therefore computed
between the first and the last step of a long run. The energy of a launch is that power times its device time.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Protocol, Self

from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.plan import TimingPlan

RUN_S = 0.8
"""Device time of a run in seconds: enough for several steps of the counter."""
SAMPLE_US = 5000.0
"""Target length of a sample, µs: long enough that host work between samples is negligible."""
MOST_LAUNCHES = 4096
"""Limit on the launches per sample."""
SETTLE_S = 0.15
"""Seconds at the start of a run that are not counted, while clocks rise and launches are prepared."""
LEAST_S = 0.2
"""Least time in seconds between the first and the last counted step."""
POLL_S = 0.004

Reading = tuple[float, float]
"""Seconds and joules, both from an arbitrary start."""


class EnergyCounter(Protocol):
    """A device's own energy counter."""

    def energy_j(self) -> float | None:
        """Joules since some moment in the past; None if the device has no counter."""
        ...


def energy_plan(cache: CacheState, time_us: float) -> TimingPlan:
    """A timing plan of about `RUN_S` with few samples of many launches each.

    Args:
        time_us: time of one launch, µs.
    """
    launches = max(1, min(MOST_LAUNCHES, round(SAMPLE_US / time_us)))
    samples = max(3, round(RUN_S * 1e6 / (launches * time_us)))
    return TimingPlan(cache, samples, launches)


def power_w(readings: Sequence[Reading]) -> float | None:
    """Mean power in watts between the first and the last step of the counter; None if there are too few.

    Args:
        readings: readings of one run, in order, taken far more often than the counter moves.
    """
    if not readings:
        return None
    begun = readings[0][0] + SETTLE_S
    steps = [after for before, after in pairwise(readings) if after[1] != before[1] and after[0] >= begun]
    if len(steps) < 2 or steps[-1][0] - steps[0][0] < LEAST_S:
        return None
    return (steps[-1][1] - steps[0][1]) / (steps[-1][0] - steps[0][0])


def pareto(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Names of the points on the Pareto front: no other point is as good in both numbers and better in
    one."""
    return tuple(
        name
        for name, (a, b) in points.items()
        if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in points.values())
    )


class EnergyWatch:
    """Reads a counter in a background thread while the `with` block runs."""

    def __init__(self, counter: EnergyCounter) -> None:
        self.readings: list[Reading] = []
        self._counter = counter
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="energy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._ended.is_set():
            joules = self._counter.energy_j()
            if joules is None:
                return
            self.readings.append((time.monotonic(), joules))
            self._ended.wait(POLL_S)
