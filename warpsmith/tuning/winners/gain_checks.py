"""Confirms a gain on inputs that no launch had before, and by the worker's own clock.

A store of earlier inputs with their answers is never wrong. It can only be fast on inputs that come again,
and blocks of new ones find it by that effect, however it stores. A process that reports times of its own
making cannot make the worker wait less.
"""

import math
import secrets
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.plan import TimingPlan
from warpsmith.domain.templates.outcome import Interval, Rejected
from warpsmith.measure.protocol import winner_blocks
from warpsmith.measure.statistics import speedup_interval
from warpsmith.tuning.timing.paired_blocks import TimedBlocks, TimedSide, interleaved, joined
from warpsmith.verify.run_report import Timed

FRESH_PAIRS = 2
"""Block pairs with new inputs in each pair of processes."""
LEAST_FRESH_PAIRS = 3
"""Block pairs that an interval needs."""
FRESH_SAMPLES = 3
FRESH_LAUNCHES = 8
"""Launches of a sample with new inputs, each with others; fewer if one takes long."""
FRESH_S = 0.1
"""Seconds of launches that suffice for a block with new inputs: long launches vary little."""
FRESH_SAMPLE_US = 2000.0
"""Length in µs from which a sample gains nothing from further launches."""
MOST_BY_CACHES = 1.5
"""Factor between the gains on inputs that come again and on new ones that caches may explain: inputs that
were just written lie elsewhere in them."""
BY_CHANCE = 1.25
"""Factor between the same two gains that may be luck where their intervals overlap: few blocks have new
inputs."""
CLOCKED_S = 0.03
"""Seconds of launches between two readings of the worker's clock: the host's share varies by milliseconds."""
CLOCKED_SAMPLE_US = 1000.0
"""Least length of a sample between the readings, µs, where launches may follow each other: a short one ends
while the host still enqueues, so that its time is no wait."""
HIDDEN_S = 50e-6
"""Seconds of a sample that the host's calls around it may hide."""
CLOCKED_PAIRS = 3
"""Pairs of readings of both sides in a round."""
CLOCKED_ROUNDS, AGREEING_ROUNDS = 3, 2
"""Limit on the rounds, and how many of them must doubt a winner's times, each by itself."""
BUSY_SHARE = 0.25
"""Share of the seconds in doubt by which a reading of the user's kernel is usually longer than the shortest
one, from which the host is too busy for the worker's clock."""
BUSY_RATIO = 1.5
"""Ratio of the slowest to the fastest block of the user's kernel on new inputs from which the host is too
busy to compare with."""
SHORTEST = 3
"""Number of readings of a side, the shortest, whose spread is the error of the shortest one."""
MOST_CLOCKED_LAUNCHES = 1024
"""Limit on the launches of a sample between the readings."""


def fresh_plan(cache: CacheState, launch_us: float) -> TimingPlan:
    """Timing plan of a block with new inputs.

    Args:
        launch_us: time of a launch, µs.
    """
    launches = max(1, min(FRESH_LAUNCHES, int(FRESH_SAMPLE_US / max(launch_us, 1.0))))
    return TimingPlan(cache, FRESH_SAMPLES, launches, enough_s=FRESH_S, least=1, is_warm=True, fresh=True)


Quiet = AbstractContextManager[None]


@dataclass(frozen=True)
class Doubt:
    """Reason for not publishing a gain."""

    words: str
    busy: bool = False
    """The host disturbs the user's kernel, too, by as much: the winner keeps its place, without a claim."""


@dataclass
class FreshBlocks:
    """Blocks of both kernels with new inputs, over all pairs of processes."""

    parts: list[TimedBlocks] = field(default_factory=list)

    def time(self, own: TimedSide, winner: TimedSide, timed: TimedBlocks, turn: int, processes: int) -> None:
        """Time the blocks of one pair of processes.

        Args:
            timed: the blocks with the workload's own inputs so far.
            turn: number of the pair of processes, from 0.
            processes: how many there are.
        """
        launch_us = max(s for side in "AB" for block in timed.samples[side] for s in block)
        plan = fresh_plan(own.session.job.objective.cache, launch_us)
        pairs = max(FRESH_PAIRS, math.ceil(LEAST_FRESH_PAIRS / processes))
        order = winner_blocks(pairs, secrets.randbits(32) + turn)
        part = interleaved(order, own.unchecked_block(plan), winner.unchecked_block(plan), None)
        assert not isinstance(part, Rejected), "nothing is checked"
        self.parts.append(part)

    def confirmed(
        self, gain: Interval, own: TimedSide, winner: TimedSide, timed: TimedBlocks, quiet: Quiet
    ) -> Interval | Doubt:
        """Result of `shown`; a doubt is put to new blocks, and only one that they share remains.

        Args:
            gain: on inputs that come again.
            timed: the blocks with the workload's own inputs.
            quiet: context in which the host does nothing but time.
        """
        found = self.shown(gain)
        if isinstance(found, Interval):
            return found
        again = FreshBlocks()
        with quiet:
            again.time(own, winner, timed, turn=0, processes=1)
        self.parts += again.parts
        if isinstance(again.shown(gain), Interval):
            blocks = joined(self.parts).samples
            return speedup_interval(blocks["A"], blocks["B"])
        return Doubt(found, busy=self.is_disturbed)

    @property
    def is_disturbed(self) -> bool:
        """True if the times of the user's kernel alone differ by as much as is in doubt."""
        medians = [float(np.median(block)) for block in joined(self.parts).samples["A"]]
        return max(medians) > BUSY_RATIO * min(medians)

    def shown(self, gain: Interval) -> Interval | str:
        """The gain that may be published, or why none may.

        Args:
            gain: on inputs that come again.

        Returns:
            The gain itself if new inputs do not contradict it; that on new inputs if it is lower; words if it
            is so much lower that something must be kept from launch to launch.
        """
        blocks = joined(self.parts).samples
        if len(blocks["A"]) < LEAST_FRESH_PAIRS:
            return gain
        fresh = speedup_interval(blocks["A"], blocks["B"])
        if fresh.high >= gain.low and fresh.estimate * BY_CHANCE >= gain.estimate:
            return gain
        if fresh.high * MOST_BY_CACHES >= gain.low:
            return fresh
        return (
            f"it is {gain.estimate:.2f}x on inputs that come again and {fresh.estimate:.2f}x "
            f"[{fresh.low:.2f}, {fresh.high:.2f}] on inputs that are new to every launch"
        )


def clock_doubt(own: TimedSide, winner: TimedSide, launch_us: float) -> Doubt | None:
    """Doubt if the worker's own clock contradicts the times that two processes report; None: it agrees.

    Both do the same number of launches. What a block takes beyond its launches is alike on both sides, so
    the blocks of the winner must be shorter by what its times are shorter. Where the host disturbs them too
    much to tell, the times stand.

    Args:
        launch_us: time of a launch of the user's kernel, µs.
    """
    launches = max(1, min(MOST_CLOCKED_LAUNCHES, math.ceil(CLOCKED_SAMPLE_US / max(launch_us, 0.01))))
    samples = max(1, math.ceil(CLOCKED_S * 1e6 / (launches * max(launch_us, 0.01))))
    cache = own.session.job.objective.cache
    plan = TimingPlan(cache, samples, launches, enough_s=1000.0, least=samples, is_warm=True)

    def read(turn: int) -> tuple[Timed, Timed]:
        sides = (own, winner) if turn % 2 else (winner, own)
        timed = [side.clocked(plan) for side in sides]
        return (timed[0], timed[1]) if turn % 2 else (timed[1], timed[0])

    return doubt_of([read(turn) for turn in range(CLOCKED_PAIRS)] for _ in range(CLOCKED_ROUNDS))


def doubt_of(rounds: Iterable[Sequence[tuple[Timed, Timed]]]) -> Doubt | None:
    """See `clock_doubt`.

    Args:
        rounds: readings of the user's kernel and of the winner; asked for until one shows that the times are
            right.
    """
    readings: list[tuple[Timed, Timed]] = []
    doubting = 0
    for some in rounds:
        saved_s, least_s, most_s = lost_seconds(some)
        if most_s < saved_s / 2:
            return None
        doubting += 0 < saved_s / 2 < least_s
        readings += some
    saved_s, least_s, _ = lost_seconds(readings)
    if doubting < AGREEING_ROUNDS or not 0 < saved_s / 2 < least_s:
        return None
    words = f"its process reports to save {1000 * saved_s:.3g} ms that the worker's clock does not show"
    rests = [timed.wall_s - _reported_s(timed) for timed, _ in readings]
    return Doubt(words, busy=float(np.median(rests)) - min(rests) > BUSY_SHARE * saved_s)


def lost_seconds(readings: Sequence[tuple[Timed, Timed]]) -> tuple[float, float, float]:
    """Seconds that the winner's process reports to save, and bounds of what the worker does not see of them.

    Args:
        readings: timings of the user's kernel and of the winner with the same plan; at least two.
    """
    saved_s = float(np.median([_reported_s(a) - _reported_s(b) for a, b in readings]))
    # Other work only lengthens what the host takes beyond the launches: the shortest are undisturbed.
    sides = zip(*readings, strict=True)
    rests = [sorted(timed.wall_s - _reported_s(timed) for timed in side) for side in sides]
    lost_s = rests[1][0] - rests[0][0]
    spread_s = max(rest[min(SHORTEST, len(rest)) - 1] - rest[0] for rest in rests)
    error_s = spread_s + HIDDEN_S * max(len(timed.samples.samples_us) for pair in readings for timed in pair)
    return saved_s, lost_s - error_s, lost_s + error_s


def _reported_s(timed: Timed) -> float:
    return sum(timed.samples.samples_us) * timed.samples.launches / 1e6
