"""Blocks of timings, the user's kernel and a winner in turns, with what the device says meanwhile."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from warpsmith.domain.outcome import Conditions, Rejected
from warpsmith.tuning.ports import ConditionsPort

REDONE = 3
"""How often a block is timed again whose clocks were held down."""


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
