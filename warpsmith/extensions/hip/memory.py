"""Device memory of HIP by its address. Not run on AMD hardware."""

from collections.abc import Callable
from typing import Any

from warpsmith.backends.addressed_memory import Bytes
from warpsmith.extensions.hip.calls import must

_COPY = "a copy failed"


class HipAddressSpace:
    """Implements `addressed_memory.AddressSpace` on the thread's current device."""

    def __init__(self, hip: Any) -> None:
        self._hip = hip

    def allocate(self, size_bytes: int) -> tuple[int, Callable[[], None]]:
        """See `AddressSpace.allocate`."""
        (allocation,) = must(self._hip.hipMalloc(size_bytes), f"{size_bytes} bytes cannot be allocated")
        address = int(allocation)

        def free() -> None:
            must(self._hip.hipFree(address), "memory cannot be freed")

        return address, free

    def write(self, address: int, host: Bytes) -> None:
        """See `AddressSpace.write`."""
        if host.nbytes:
            must(self._hip.hipMemcpyHtoD(address, host.ctypes.data, host.nbytes), _COPY)

    def read(self, host: Bytes, address: int) -> None:
        """See `AddressSpace.read`."""
        if host.nbytes:
            must(self._hip.hipMemcpyDtoH(host.ctypes.data, address, host.nbytes), _COPY)

    def copy(self, to: int, source: int, size_bytes: int) -> None:
        """See `AddressSpace.copy`."""
        if size_bytes:
            must(self._hip.hipMemcpyDtoD(to, source, size_bytes), _COPY)

    def fill(self, address: int, word: int, width: int, count: int) -> None:
        """See `AddressSpace.fill`."""
        if not count:
            return
        hip = self._hip
        if width == 4:
            # Its parameter is a signed int.
            must(hip.hipMemsetD32(address, word - (word >> 31 << 32), count), _COPY)
        else:
            fill = {1: hip.hipMemsetD8, 2: hip.hipMemsetD16}[width]
            must(fill(address, word, count), _COPY)
