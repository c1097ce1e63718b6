"""Device memory with addresses, on top of a driver's copies: single allocations, and slabs out of which small
buffers are taken."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from warpsmith.backends.base import Array, Memory, pieces_of

Bytes = NDArray[np.uint8]
SLAB_BYTES = 64 << 20
LARGEST_PIECE_BYTES = 8 << 20
"""Buffers above this size are allocations of their own."""
PIECE_STEP_BYTES = 4096
"""Sizes of pieces are multiples of this, so that a freed one serves the next of about its size."""


class AddressSpace(Protocol):
    """Operations of a driver on device memory, by address. Every method raises `DeviceFault`."""

    def allocate(self, size_bytes: int) -> tuple[int, Callable[[], None]]:
        """The address of new memory of at least a byte, and what frees it."""
        ...

    def write(self, address: int, host: Bytes) -> None:
        """Copy contiguous host data in; returns when it is there."""
        ...

    def read(self, host: Bytes, address: int) -> None:
        """Fill contiguous host data."""
        ...

    def copy(self, to: int, source: int, size_bytes: int) -> None:
        """Copy device to device."""
        ...

    def fill(self, address: int, word: int, width: int, count: int) -> None:
        """Write `count` words of `width` bytes (1, 2 or 4)."""
        ...


class AddressedMemory:
    """Device memory; see `backends.base.Memory`."""

    def __init__(self, space: AddressSpace, size_bytes: int, address: int, free: Callable[[], None]) -> None:
        self.size_bytes = size_bytes
        self.address = address
        """Device address of the first byte."""
        self._space = space
        self._free = free

    def write(self, data: Array, offset_bytes: int = 0) -> None:
        """See `Memory.write`."""
        self._space.write(self.address + offset_bytes, np.ascontiguousarray(data).view(np.uint8))

    def read(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """See `Memory.read`."""
        host = np.empty(size_bytes, np.uint8)
        self._space.read(host, self.address + offset_bytes)
        return host.data

    def copy_from(self, other: Memory, size_bytes: int, offset_bytes: int = 0) -> None:
        """See `Memory.copy_from`."""
        self._space.copy(self.address + offset_bytes, other.address + offset_bytes, size_bytes)

    def gather(self, source: Memory, begins: Sequence[int], piece_bytes: int, to: slice) -> None:
        """See `Memory.gather`."""
        copy, here, there = self._space.copy, self.address, source.address
        for at, begin, size in pieces_of(begins, piece_bytes, to):
            copy(here + at, there + begin, size)

    def fill(self, pattern: bytes, offset_bytes: int, size_bytes: int) -> None:
        """See `Memory.fill`."""
        width, word = len(pattern), int.from_bytes(pattern, "little")
        self._space.fill(self.address + offset_bytes, word, width, size_bytes // width)

    def free(self) -> None:
        """See `Memory.free`."""
        self._free()


class Slabs:
    """Takes small buffers out of large ones: the driver needs a millisecond for each, and another to free it.

    Slabs live as long as the process. Freed pieces are used again, for buffers of the same size first.
    """

    def __init__(self, space: AddressSpace) -> None:
        self._space = space
        self._free: dict[int, list[int]] = {}
        """Addresses of free pieces by size."""
        self._slabs: list[Callable[[], None]] = []
        """What would free each. PyCUDA frees an allocation that nobody holds."""
        self._next, self._end = 0, 0

    def allocate(self, size_bytes: int, *, apart: bool) -> AddressedMemory:
        """Device memory.

        Args:
            apart: an allocation of its own, however small, whose bounds a sanitizer knows.

        Raises:
            DeviceFault: there is not enough.
        """
        if apart or size_bytes > LARGEST_PIECE_BYTES:
            return AddressedMemory(self._space, size_bytes, *self._space.allocate(max(1, size_bytes)))
        piece = -(-max(1, size_bytes) // PIECE_STEP_BYTES) * PIECE_STEP_BYTES
        waiting = self._free.setdefault(piece, [])
        if not waiting and self._next + piece > self._end:
            self._next, free = self._space.allocate(SLAB_BYTES)
            self._slabs.append(free)
            self._end = self._next + SLAB_BYTES
        if waiting:
            address = waiting.pop()
        else:
            address, self._next = self._next, self._next + piece
        return AddressedMemory(self._space, size_bytes, address, lambda: waiting.append(address))
