"""Memory between the launches of a sequence: guarded, spoiled, never given or compared. In the device child.

All buffer sets share it, so that a timed launch finds there what a launch on other inputs left, as it does in
its output.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.backends.base import Device, Memory, Pointer
from warpsmith.domain.jobs.plan import ScratchPlan
from warpsmith.sandbox.memory.canaries import violations
from warpsmith.sandbox.memory.spoiling import fill_with_poison, spoil


@dataclass(frozen=True)
class _Guarded:
    plan: ScratchPlan
    memory: Memory
    size_bytes: int
    canaries: tuple[bytes, bytes]

    @property
    def guard(self) -> int:
        return len(self.canaries[0])


class Scratch:
    """The scratch of one configuration on one workload.

    Args:
        sizes_bytes: of each argument with the role `scratch`, in order.
        guard_bytes: on either side of each.
    """

    def __init__(
        self, device: Device, plans: Sequence[ScratchPlan], sizes_bytes: Sequence[int], guard_bytes: int
    ) -> None:
        self.sizes_bytes = tuple(sizes_bytes)
        self._parts = [
            _allocated(device, plan, size, guard_bytes)
            for plan, size in zip(plans, self.sizes_bytes, strict=True)
        ]

    @property
    def pointers(self) -> dict[str, Pointer]:
        """The memory by argument name."""
        return {part.plan.name: (part.memory, part.guard) for part in self._parts}

    def poison(self) -> None:
        """Overwrite all of it, so that no launch reads what an earlier one left."""
        for part in self._parts:
            fill_with_poison(part.memory, part.guard, part.size_bytes)

    def spoil(self) -> None:
        """Overwrite a random part, so that a launch that relies on what an earlier one left is wrong.

        A launch that looks there for a mark of its own may still find it, and by chance what is overwritten
        looks like results.
        """
        for part in self._parts:
            each, likely = part.plan.dtype.size_bytes, bool(secrets.randbits(1))
            spoil(part.memory, part.guard, part.size_bytes, each, [(0, part.size_bytes // each)], likely)

    def guard_violations(self) -> list[str]:
        """Arguments whose guard zones changed."""
        found = (violations(p.plan.name, p.memory, p.canaries, p.size_bytes) for p in self._parts)
        return [name for names in found for name in names]

    def free(self) -> None:
        """Free all memory."""
        for part in self._parts:
            part.memory.free()
        self._parts = []


def _allocated(device: Device, plan: ScratchPlan, size_bytes: int, guard_bytes: int) -> _Guarded:
    canaries = secrets.token_bytes(guard_bytes), secrets.token_bytes(guard_bytes)
    part = _Guarded(plan, device.allocate(size_bytes + 2 * guard_bytes), size_bytes, canaries)
    if guard_bytes:
        part.memory.write(np.frombuffer(canaries[0], np.uint8), 0)
        part.memory.write(np.frombuffer(canaries[1], np.uint8), guard_bytes + size_bytes)
    return part
