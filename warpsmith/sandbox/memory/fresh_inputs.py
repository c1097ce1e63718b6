"""Inputs that no launch had before, written between timed samples. Runs in the device child."""

import secrets

import numpy as np

from warpsmith.backends.base import Array, Device, Memory
from warpsmith.domain.arguments.draw import ARRANGED, Draw
from warpsmith.domain.jobs.memory import DEFAULT_CACHE_BYTES
from warpsmith.domain.jobs.plan import BufferPlan, WorkloadPlan
from warpsmith.verify.arranged import rearranged
from warpsmith.verify.dtypes import numpy_dtype
from warpsmith.verify.inputs import TILE_ELEMENTS, draw_buffer, pool_of

MOST_ARRANGED = 1 << 22
"""Elements above which an arranged input stays as it is: the host would write it longer than it is read."""
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
        self._arranged: dict[str, Array] = {}
        self._rng = np.random.Generator(np.random.PCG64(secrets.randbits(128)))

    def write(self, buffer: BufferPlan, memory: Memory, at: int, turn: int) -> None:
        """Fill a buffer that begins at byte `at`; constants, files and images stay.

        Args:
            turn: secret bits, the same for the inputs of a launch: parts of a routing belong together.
        """
        if buffer.draw is not None and buffer.draw.distribution in ARRANGED:
            if buffer.image is None and 0 < buffer.elements <= MOST_ARRANGED:
                memory.write(self._anew(buffer, buffer.draw, turn), at)
            return
        pool = self._pool(buffer)
        if pool is None:
            return
        source, elements = pool
        size, tile = buffer.dtype.size_bytes, min(TILE_ELEMENTS, buffer.elements)
        begins = [secrets.randbelow(elements - tile + 1) * size for _ in range(-(-buffer.elements // tile))]
        memory.gather(source, begins, tile * size, slice(at, at + buffer.size_bytes))

    def free(self) -> None:
        """Free all memory."""
        for pool in self._pools.values():
            if pool is not None:
                pool[0].free()
        self._pools = {}

    def _anew(self, buffer: BufferPlan, draw: Draw, turn: int) -> Array:
        if draw.routing is not None:
            return draw_buffer(buffer, self._plan.seed, self._variant ^ turn, self._plan.family)
        if buffer.name not in self._arranged:
            self._arranged[buffer.name] = draw_buffer(
                buffer, self._plan.seed, self._variant, self._plan.family
            )
        own = self._arranged[buffer.name].astype(np.int64)
        return rearranged(own, buffer, draw, self._rng).astype(numpy_dtype(buffer.dtype))

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
