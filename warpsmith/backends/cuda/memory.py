"""Device memory of CUDA by its address, through PyCUDA."""

from collections.abc import Callable
from typing import Any

from warpsmith.backends.addressed_memory import Bytes
from warpsmith.backends.base import DeviceFault


class CudaAddressSpace:
    """Implements `addressed_memory.AddressSpace` in PyCUDA's current context."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def allocate(self, size_bytes: int) -> tuple[int, Callable[[], None]]:
        """See `AddressSpace.allocate`."""
        try:
            allocation = self._driver.mem_alloc(size_bytes)
        except self._driver.Error as exc:
            raise DeviceFault(f"{size_bytes} bytes cannot be allocated: {exc}") from exc
        return int(allocation), allocation.free

    def write(self, address: int, host: Bytes) -> None:
        """See `AddressSpace.write`."""
        self._guarded(self._driver.memcpy_htod, address, host)

    def read(self, host: Bytes, address: int) -> None:
        """See `AddressSpace.read`."""
        self._guarded(self._driver.memcpy_dtoh, host, address)

    def copy(self, to: int, source: int, size_bytes: int) -> None:
        """See `AddressSpace.copy`."""
        self._guarded(self._driver.memcpy_dtod, to, source, size_bytes)

    def fill(self, address: int, word: int, width: int, count: int) -> None:
        """See `AddressSpace.fill`."""
        fill = {1: self._driver.memset_d8, 2: self._driver.memset_d16, 4: self._driver.memset_d32}[width]
        self._guarded(fill, address, word, count)

    def _guarded(self, call: Callable[..., object], *arguments: object) -> None:
        try:
            call(*arguments)
        except self._driver.Error as exc:
            raise DeviceFault(f"a copy failed: {exc}") from exc
