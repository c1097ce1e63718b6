"""Device memory of CUDA: single allocations, and slabs out of which small buffers are taken."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpsmith.backends.base import Array, DeviceFault, Memory, pieces_of

SLAB_BYTES = 64 << 20
LARGEST_PIECE_BYTES = 8 << 20
"""Buffers above this size are allocations of their own."""
PIECE_STEP_BYTES = 4096
"""Sizes of pieces are multiples of this, so that a freed one serves the next of about its size."""


class CudaMemory:
    """Device memory; see `backends.base.Memory`."""

    def __init__(self, driver: Any, size_bytes: int, address: int, free: Callable[[], None]) -> None:
        self.size_bytes = size_bytes
        self.address = address
        """Device address of the first byte."""
        self._driver = driver
        self._free = free

    def write(self, data: Array, offset_bytes: int = 0) -> None:
        """See `Memory.write`."""
        host = np.ascontiguousarray(data).view(np.uint8)
        self._guarded(lambda: self._driver.memcpy_htod(self.address + offset_bytes, host))

    def read(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """See `Memory.read`."""
        host = np.empty(size_bytes, np.uint8)
        self._guarded(lambda: self._driver.memcpy_dtoh(host, self.address + offset_bytes))
        return host.data

    def copy_from(self, other: Memory, size_bytes: int, offset_bytes: int = 0) -> None:
        """See `Memory.copy_from`."""
        assert isinstance(other, CudaMemory)
        source, destination = other.address + offset_bytes, self.address + offset_bytes
        self._guarded(lambda: self._driver.memcpy_dtod(destination, source, size_bytes))

    def gather(self, source: Memory, begins: Sequence[int], piece_bytes: int, to: slice) -> None:
        """See `Memory.gather`."""
        assert isinstance(source, CudaMemory)
        places = pieces_of(begins, piece_bytes, to)
        copy, here, there = self._driver.memcpy_dtod, self.address, source.address
        self._guarded(lambda: [copy(here + at, there + begin, size) for at, begin, size in places])

    def fill(self, pattern: bytes, offset_bytes: int, size_bytes: int) -> None:
        """See `Memory.fill`."""
        at, width = self.address + offset_bytes, len(pattern)
        fill = {1: self._driver.memset_d8, 2: self._driver.memset_d16, 4: self._driver.memset_d32}[width]
        word = int.from_bytes(pattern, "little")
        self._guarded(lambda: fill(at, word, size_bytes // width))

    def free(self) -> None:
        """See `Memory.free`."""
        self._free()

    def _guarded(self, call: Callable[[], object]) -> None:
        try:
            call()
        except self._driver.Error as exc:
            raise DeviceFault(f"a copy failed: {exc}") from exc


class Slabs:
    """Takes small buffers out of large ones: the driver needs a millisecond for each, and another to free it.

    Slabs live as long as the process. Freed pieces are used again, for buffers of the same size first.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._free: dict[int, list[int]] = {}
        """Addresses of free pieces by size."""
        self._slabs: list[Any] = []
        self._next, self._end = 0, 0

    def allocate(self, size_bytes: int, *, apart: bool) -> CudaMemory:
        """Device memory.

        Args:
            apart: an allocation of its own, however small, whose bounds a sanitizer knows.

        Raises:
            DeviceFault: there is not enough.
        """
        if apart or size_bytes > LARGEST_PIECE_BYTES:
            allocation = self._allocated(size_bytes)
            return CudaMemory(self._driver, size_bytes, int(allocation), allocation.free)
        piece = -(-max(1, size_bytes) // PIECE_STEP_BYTES) * PIECE_STEP_BYTES
        waiting = self._free.setdefault(piece, [])
        if not waiting and self._next + piece > self._end:
            slab = self._allocated(SLAB_BYTES)
            self._slabs.append(slab)
            self._next, self._end = int(slab), int(slab) + SLAB_BYTES
        if waiting:
            address = waiting.pop()
        else:
            address, self._next = self._next, self._next + piece
        return CudaMemory(self._driver, size_bytes, address, lambda: waiting.append(address))

    def _allocated(self, size_bytes: int) -> Any:
        try:
            return self._driver.mem_alloc(max(1, size_bytes))
        except self._driver.Error as exc:
            raise DeviceFault(f"{size_bytes} bytes cannot be allocated: {exc}") from exc
