"""A loaded cubin through PyCUDA: its kernels and its device variables. Runs in device children."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpsmith.backends.base import Array, Bound, DeviceFault, LaunchRefused
from warpsmith.backends.cubin import read_cubin, variable_named
from warpsmith.backends.cuda_arguments import parameter_buffer
from warpsmith.backends.cuda_extended_launch import ExtendedLaunch
from warpsmith.domain.launch_size import LaunchSize


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
        self,
        driver: Any,
        module: Any,
        functions: Sequence[CudaFunction],
        variables: Sequence[str],
        binary: bytes,
    ) -> None:
        self._binary = binary
        self._symbols: dict[str, str] = {}
        self._driver = driver
        self._module: Any = module
        self.functions = functions
        self._variables = {name: self._contents(name) for name in variables}

    def launch_of(
        self, number: int, arguments: Sequence[Bound], size: LaunchSize
    ) -> tuple[CudaFunction, Sequence[Bound], LaunchSize]:
        """The function of a launch of the sequence, with what it takes."""
        return self.functions[number], arguments, size

    def changed_globals(self) -> list[str]:
        """See `Program.changed_globals`."""
        return [n for n, was in self._variables.items() if was is not None and self._contents(n) != was]

    def write_symbol(self, name: str, data: Array) -> None:
        """See `Program.write_symbol`."""
        symbol, host = self._symbol(name), np.ascontiguousarray(data).view(np.uint8)
        found = self._place(symbol)
        if found is None:
            raise LaunchRefused(
                f"symbol {name}: the driver finds no such variable in the binary; declare it without static "
                "and outside of nameless namespaces"
            )
        address, size = found
        if size != host.nbytes:
            raise LaunchRefused(f"symbol {name}: has {host.nbytes} bytes in the job and {size} in the kernel")
        try:
            self._driver.memcpy_htod(address, host)
        except self._driver.Error as exc:
            raise DeviceFault(f"a copy failed: {exc}") from exc
        if symbol in self._variables:
            self._variables[symbol] = host.tobytes()

    def read_symbol(self, name: str) -> bytes:
        """See `Program.read_symbol`."""
        return self._contents(self._symbol(name)) or b""

    def _symbol(self, name: str) -> str:
        """The name in the binary of a variable of the source."""
        if name not in self._symbols:
            self._symbols[name] = variable_named(read_cubin(self._binary), name)
        return self._symbols[name]

    def _place(self, name: str) -> tuple[Any, int] | None:
        """Address and size in bytes of a variable; None: the driver finds none of internal linkage."""
        try:
            address, size = self._module.get_global(name)
        except self._driver.Error:
            return None
        return address, int(size)

    def _contents(self, name: str) -> bytes | None:
        found = self._place(name)
        if found is None:
            return None
        host = np.empty(found[1], np.uint8)
        try:
            self._driver.memcpy_dtoh(host, found[0])
        except self._driver.Error as exc:
            raise DeviceFault(f"a copy failed: {exc}") from exc
        return host.tobytes()

    def unload(self) -> None:
        """See `Program.unload`."""
        self._module = None
        self.functions = ()
