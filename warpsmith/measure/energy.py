"""Energy of a launch: a device's energy counter, read while many launches run.

The counter counts the whole device and moves in steps of some 10 to 100 ms. So the power is taken between the
first and the last step of a long run, and a launch needs that power for its device time.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Protocol, Self

from warpsmith.domain.job import CacheState
from warpsmith.domain.plan import TimingPlan

RUN_S = 0.8
"""Device time of a run: enough for several steps of the counter."""
SAMPLE_US = 5000.0
"""Of a sample: what the host does between two is little against it."""
MOST_LAUNCHES = 4096
"""In a sample."""
SETTLE_S = 0.15
"""At the start of a run, while clocks come up and launches are prepared."""
LEAST_S = 0.2
"""Between the first and the last step that count."""
POLL_S = 0.004

Reading = tuple[float, float]
"""Seconds and joules, both from an arbitrary start."""


class EnergyCounter(Protocol):
    """A device's own energy counter."""

    def energy_j(self) -> float | None:
        """Joules since some moment in the past; None where the device does not count."""
        ...


def energy_plan(cache: CacheState, time_us: float) -> TimingPlan:
    """Launches for about `RUN_S`, few samples of many launches each.

    Args:
        time_us: of one launch.
    """
    launches = max(1, min(MOST_LAUNCHES, round(SAMPLE_US / time_us)))
    samples = max(3, round(RUN_S * 1e6 / (launches * time_us)))
    return TimingPlan(cache, samples, launches)


def power_w(readings: Sequence[Reading]) -> float | None:
    """Mean power between the first and the last step of the counter; None where there are too few.

    Args:
        readings: of one run, in order, taken far more often than the counter moves.
    """
    if not readings:
        return None
    begun = readings[0][0] + SETTLE_S
    steps = [after for before, after in pairwise(readings) if after[1] != before[1] and after[0] >= begun]
    if len(steps) < 2 or steps[-1][0] - steps[0][0] < LEAST_S:
        return None
    return (steps[-1][1] - steps[0][1]) / (steps[-1][0] - steps[0][0])


def pareto(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Names of those that no other beats: none is as good in both numbers and better in one."""
    return tuple(
        name
        for name, (a, b) in points.items()
        if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in points.values())
    )


class EnergyWatch:
    """Reads a counter in a thread of its own while the block runs."""

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
