"""Blocks of timings, the user's kernel and a winner in turns, with what the device says meanwhile."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from warpsmith.domain.job import CacheState, Workload
from warpsmith.domain.outcome import Conditions, Rejected
from warpsmith.domain.plan import LaunchSize, TimingPlan
from warpsmith.measure.protocol import search_plan
from warpsmith.measure.statistics import summarise
from warpsmith.tuning.ports import ConditionsPort
from warpsmith.tuning.session.device_session import DeviceSession

LAST_CHECKS = 2
"""Launches that are looked at when all blocks of a process are done."""
REDONE = 3
"""How often a block is timed again whose clocks were held down."""
MIN_BLOCK_SAMPLES = 3
BLOCK_S = 0.5
"""A block whose launches are so long that it would take longer has fewer samples: there are many blocks."""


@dataclass(frozen=True)
class TimedBlocks:
    """Samples by side, in order, and the conditions of all blocks."""

    samples: Mapping[str, list[Sequence[float]]]
    conditions: tuple[Conditions, ...]

    @property
    def throttled(self) -> bool:
        """Whether a block stayed throttled however often it was timed: no claim can be made."""
        return any(c.throttled for c in self.conditions)


TimeBlock = Callable[[bool], Sequence[float] | Rejected]


@dataclass(frozen=True)
class Side:
    """One kernel of a comparison in its process. Both sides are looked at alike, since that takes time."""

    session: DeviceSession
    workload: Workload
    handle: int
    size: LaunchSize

    def block(self, plan: TimingPlan) -> TimeBlock:
        """Times one block, one launch of it with inputs of its own where it is told so."""
        other = self.session.another_draw(self.workload)

        def time(redrawn: bool) -> Sequence[float] | Rejected:
            # Where it is not asked for, it happens by chance all the same.
            samples, launch = self.session.sample(
                self.handle, self.workload, self.size, plan, other=other, redraw=redrawn or None
            )
            return self.session.refuse(launch) or samples.samples_us

        return time

    def plain_us(self, plan: TimingPlan) -> float:
        """One timing of which no launch is looked at."""
        key = self.session.plan(self.workload).key
        timed = self.session.device(self.workload).time(self.handle, key, self.size, plan)
        return summarise(timed.samples.samples_us, 1).median_us

    def last_checks(self, plan: TimingPlan) -> Rejected | None:
        """Inputs that no launch had, after all that was timed."""
        # By now a kernel that remembers launches knows every address.
        time = self.block(replace(plan, samples=1))
        for _ in range(LAST_CHECKS):
            found = time(True)
            if isinstance(found, Rejected):
                return found
        return None


def block_plan(cache: CacheState) -> TimingPlan:
    """How a block is timed."""
    plan = search_plan(cache)
    samples = max(MIN_BLOCK_SAMPLES, plan.samples // 2)
    return TimingPlan(plan.cache, samples, plan.launches, enough_s=BLOCK_S, least=1)


def interleaved(
    order: Sequence[str],
    time_base: TimeBlock,
    time_winner: TimeBlock,
    conditions: ConditionsPort | None,
) -> TimedBlocks | Rejected:
    """Time blocks in `order` ("A": the user's kernel, "B": the winner).

    Every second block of a side, from a random one on, has inputs that no other launch had: the
    callables are told so.
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
    """Blocks of several pairs of processes as one."""
    samples = {side: [block for part in parts for block in part.samples[side]] for side in ("A", "B")}
    return TimedBlocks(samples, tuple(c for part in parts for c in part.conditions))
