"""Inputs that no launch had before, written between timed samples. Runs in the device child."""

import secrets

import numpy as np

from warpsmith.backends.base import Device, Memory
from warpsmith.domain.jobs.memory import DEFAULT_CACHE_BYTES
from warpsmith.domain.jobs.plan import BufferPlan, WorkloadPlan
from warpsmith.verify.inputs import TILE_ELEMENTS, pool_of

_MOST_DISPLACED_BYTES = 256 << 20
_WORD = b"\x5a\xc3\x96\x0f"


class OtherMemory:
    """Memory of a process that is written to displace everything else from the caches."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._memory: Memory | None = None

    def fill_caches(self) -> None:
        """Write it. The first write of a page is slow on CPUs, so the memory stays."""
        if self._memory is None:
            cache_bytes = self._device.info.limits.l2_bytes or DEFAULT_CACHE_BYTES
            self._memory = self._device.allocate(min(2 * cache_bytes, _MOST_DISPLACED_BYTES))
        self._memory.fill(_WORD, 0, self._memory.size_bytes // len(_WORD) * len(_WORD))


class FreshInputs:
    """Fills inputs from pools of values on the device, tile by tile, each tile from a random place.

    Drawing every input anew would take the host longer than all launches. A tile that begins elsewhere in the
    pool differs in nearly every element, so that a store of earlier inputs finds none of them again.
    """

    def __init__(self, device: Device, plan: WorkloadPlan) -> None:
        self._device = device
        self._plan = plan
        self._variant = secrets.randbits(62) | 1 << 62
        self._pools: dict[str, tuple[Memory, int] | None] = {}

    def write(self, buffer: BufferPlan, memory: Memory, at: int) -> bool:
        """Fill a buffer that begins at byte `at`; False if its elements depend on each other and stay."""
        pool = self._pool(buffer)
        if pool is None:
            return False
        source, elements = pool
        size, tile = buffer.dtype.size_bytes, min(TILE_ELEMENTS, buffer.elements)
        begins = [secrets.randbelow(elements - tile + 1) * size for _ in range(-(-buffer.elements // tile))]
        memory.gather(source, begins, tile * size, slice(at, at + buffer.size_bytes))
        return True

    def free(self) -> None:
        """Free all memory."""
        for pool in self._pools.values():
            if pool is not None:
                pool[0].free()
        self._pools = {}

    def _pool(self, buffer: BufferPlan) -> tuple[Memory, int] | None:
        if buffer.name not in self._pools:
            values = None
            if buffer.image is None and buffer.elements:
                values = pool_of(buffer, self._plan.seed, self._variant, self._plan.family)
            if values is None:
                self._pools[buffer.name] = None
            else:
                memory = self._device.allocate(values.nbytes)
                memory.write(np.ascontiguousarray(values))
                self._pools[buffer.name] = memory, values.size
        return self._pools[buffer.name]
