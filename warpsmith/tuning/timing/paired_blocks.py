"""Alternating blocks of timings of the user's kernel and a winner, with the device's state during each."""

import secrets
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from statistics import median
from typing import Literal

from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.plan import TimingPlan
from warpsmith.domain.templates.outcome import Conditions, Interval, Rejected
from warpsmith.measure.protocol import search_plan
from warpsmith.measure.statistics import speedup_interval, summarise
from warpsmith.tuning.ports import ConditionsPort
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.verify.run_report import Timed

LAST_CHECKS = 2
"""Number of launches that are checked after all blocks of a process."""
REDONE = 3
"""Limit on repeated timings of a block whose clocks were throttled."""
LEAST_STEADY = 3
"""Pairs without throttling from which there is an interval of theirs."""
MIN_BLOCK_SAMPLES = 3
BLOCK_S = 0.5
"""Seconds above which a block has fewer samples; there are many blocks."""


@dataclass(frozen=True)
class TimedBlocks:
    """Samples by side, in order, and the conditions of all blocks."""

    samples: Mapping[str, list[Sequence[float]]]
    conditions: tuple[Conditions, ...]
    processes: tuple[int, ...] = ()
    """Numbers of pairs by pair of processes; empty: all are of one."""

    @cached_property
    def speedup(self) -> Interval:
        """Speed-up with its interval, which holds the median of every pair of processes."""
        return self._interval(range(len(self.samples["A"])))

    def intervals(self) -> list[Interval]:
        """Speed-ups that a claim has to hold by: of all pairs and, if some stayed throttled, of the others;
        none if most stayed throttled."""
        if not any(c.throttled for c in self.conditions):
            return [self.speedup]
        count = len(self.samples["A"])
        held = [[bool(c.throttled) for c in self.conditions if c.side == side] for side in ("A", "B")]
        steady = [n for n, pair in enumerate(zip(*held, strict=False)) if not any(pair)]
        if len(self.conditions) < 2 * count or len(steady) < max(LEAST_STEADY, count / 2):
            return []
        return [self.speedup, self._interval(steady)]

    def _interval(self, pairs: Sequence[int]) -> Interval:
        """See `speedup`, by these pairs alone."""
        own, winner = ([self.samples[side][n] for n in pairs] for side in ("A", "B"))
        found = speedup_interval(own, winner)
        ends = [*accumulate(self.processes)]
        ratios: dict[int, list[float]] = {}
        for n, a, b in zip(pairs, own, winner, strict=True):
            ratios.setdefault(bisect(ends, n), []).append(median(a) / median(b))
        medians = [median(some) for some in ratios.values()]
        return found.model_copy(update={"low": min(found.low, *medians), "high": max(found.high, *medians)})


TimeBlock = Callable[[bool], Sequence[float] | Rejected]


@dataclass(frozen=True)
class TimedSide:
    """Kernel of a comparison in its process. Both sides are checked alike, since checks take time."""

    session: DeviceSession
    loaded: LoadedKernel

    def block(self, plan: TimingPlan) -> TimeBlock:
        """Returns a function that times one block; called with True, one launch gets freshly drawn inputs."""
        other = self.session.inputs.another_draw(self.loaded.workload)

        def time(redrawn: bool) -> Sequence[float] | Rejected:
            # Where it is not asked for, it happens by chance all the same.
            samples, launch = self.session.sampler.sample(
                self.loaded, plan, other=other, redraw=redrawn or None
            )
            return self.session.checker.refusal(launch) or samples.samples_us

        return time

    def unchecked_block(self, plan: TimingPlan) -> TimeBlock:
        """Returns a function that times one block, of which no launch is checked."""
        return lambda _: self.session.sampler.time(self.loaded, plan).samples_us

    def clocked(self, plan: TimingPlan) -> Timed:
        """Time once with the worker's own clock around; no launch is checked."""
        return self.session.sampler.clocked(self.loaded, plan)

    def checked_us(self, plan: TimingPlan) -> float | Rejected:
        """Median of one timing, in µs, of which one launch is checked."""
        timed = self.block(plan)(False)
        return timed if isinstance(timed, Rejected) else summarise(timed, 1).median_us

    def last_checks(self, plan: TimingPlan) -> Rejected | None:
        """Launches on new inputs after all timings; returns a rejection, or None."""
        # By now a kernel that remembers launches knows every address.
        time = self.block(replace(plan, samples=1))
        for _ in range(LAST_CHECKS):
            found = time(True)
            if isinstance(found, Rejected):
                return found
        return None


def block_plan(cache: CacheState) -> TimingPlan:
    """Timing plan of a block."""
    plan = search_plan(cache)
    samples = max(MIN_BLOCK_SAMPLES, plan.samples // 2)
    return TimingPlan(plan.cache, samples, plan.launches, enough_s=BLOCK_S, least=1)


def interleaved(
    order: Sequence[str], time_base: TimeBlock, time_winner: TimeBlock, conditions: ConditionsPort | None
) -> TimedBlocks | Rejected:
    """Time blocks in `order` ("A": the user's kernel, "B": the winner).

    Every second block of a side, starting at random, has inputs of no other launch: its function is called
    with True.
    """
    samples: dict[str, list[Sequence[float]]] = {"A": [], "B": []}
    seen: list[Conditions] = []
    lot = secrets.randbelow(2)
    for word in order:
        side: Literal["A", "B"] = "A" if word == "A" else "B"
        for _ in range(1 + REDONE):
            redrawn = len(samples[side]) % 2 == lot
            block = time_base(redrawn) if side == "A" else time_winner(redrawn)
            if isinstance(block, Rejected):
                return block
            timed = block
            now = None if conditions is None else conditions.read(side)
            if now is None or not now.throttled:
                break
        samples[side].append(timed)
        if now is not None:
            seen.append(now)
    return TimedBlocks(samples, tuple(seen))


def joined(parts: Sequence[TimedBlocks]) -> TimedBlocks:
    """Blocks of several pairs of processes, joined."""
    samples = {side: [block for part in parts for block in part.samples[side]] for side in ("A", "B")}
    counts = tuple(len(part.samples["A"]) for part in parts)
    return TimedBlocks(samples, tuple(c for part in parts for c in part.conditions), counts)
