"""A loaded cubin through PyCUDA: its kernels and its device variables. Runs in device children."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpsmith.backends.base import Bound, DeviceFault
from warpsmith.backends.cuda_arguments import parameter_buffer
from warpsmith.backends.cuda_extended_launch import ExtendedLaunch


class CudaFunction:
    """A kernel of a loaded cubin."""

    def __init__(self, function: Any) -> None:
        self.function: Any = function
        self.shared_bytes = 0
        self.extended: ExtendedLaunch | None = None
        self._is_prepared = False

    def parameters(self, arguments: Sequence[Bound]) -> bytes:
        """Arguments in the form of a prepared call: one value, all of whose bytes are placed here."""
        data = parameter_buffer(arguments)
        if not self._is_prepared:
            self.function.prepare([f"{len(data)}s"])
            self._is_prepared = True
        return data


class CudaProgram:
    """A loaded cubin and its entries."""

    def __init__(
        self, driver: Any, module: Any, functions: Sequence[CudaFunction], variables: Sequence[str]
    ) -> None:
        self._driver = driver
        self._module: Any = module
        self.functions = functions
        self._variables = {name: self._contents(name) for name in variables}

    def changed_globals(self) -> list[str]:
        """See `Program.changed_globals`."""
        return [n for n, was in self._variables.items() if was is not None and self._contents(n) != was]

    def _contents(self, name: str) -> bytes | None:
        try:
            address, size = self._module.get_global(name)
        except self._driver.Error:
            return None  # the driver finds no variable of internal linkage
        host = np.empty(size, np.uint8)
        try:
            self._driver.memcpy_dtoh(host, address)
        except self._driver.Error as exc:
            raise DeviceFault(f"a copy failed: {exc}") from exc
        return host.tobytes()

    def unload(self) -> None:
        """See `Program.unload`."""
        self._module = None
        self.functions = ()
