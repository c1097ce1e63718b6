"""A loaded cubin through PyCUDA: its kernels and its device variables. Runs in device children."""

from collections.abc import Sequence
from typing import Any

from warpsmith.backends.base import Bound
from warpsmith.backends.binaries.cubin import read_cubin, variable_named
from warpsmith.backends.cuda.arguments import parameter_buffer
from warpsmith.backends.cuda.extended_launch import ExtendedLaunch
from warpsmith.backends.cuda.memory import CudaAddressSpace
from warpsmith.backends.program_variables import ProgramVariables
from warpsmith.domain.jobs.launch_size import LaunchSize


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


class CudaProgram(ProgramVariables):
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
        self._driver = driver
        self._module: Any = module
        self.functions = functions
        super().__init__(CudaAddressSpace(driver), variables)

    def launch_of(
        self, number: int, arguments: Sequence[Bound], size: LaunchSize
    ) -> tuple[CudaFunction, Sequence[Bound], LaunchSize]:
        """The function of a launch of the sequence, with what it takes."""
        return self.functions[number], arguments, size

    def _place(self, name: str) -> tuple[int, int] | None:
        try:
            address, size = self._module.get_global(name)
        except self._driver.Error:
            return None
        return int(address), int(size)

    def _variable(self, name: str) -> str:
        return variable_named(read_cubin(self._binary), name)

    def unload(self) -> None:
        """See `Program.unload`."""
        self._module = None
        self.functions = ()
