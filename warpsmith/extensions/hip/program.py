"""A loaded code object: its kernels and its device variables. Not run on AMD hardware."""

import ctypes
from collections.abc import Sequence
from typing import Any

from warpsmith.backends.base import Bound, LaunchRefused
from warpsmith.backends.binaries.cubin import named_among
from warpsmith.backends.binaries.elf import variables_of
from warpsmith.backends.cuda.arguments import parameter_places
from warpsmith.backends.program_variables import ProgramVariables
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.extensions.hip.calls import HipError, must, refusal_or_fault, values
from warpsmith.extensions.hip.memory import HipAddressSpace

_IMAGES = (b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")
"""First bytes of a code object, and of a bundle of several, plain and compressed."""


class HipProgram(ProgramVariables):
    """A loaded code object and its entries."""

    def __init__(self, hip: Any, compiled: Compiled) -> None:
        """Load it.

        Raises:
            LaunchRefused: the runtime does not accept it, or it has no such kernel.
        """
        # The call has no parameter for the length: the runtime reads as far as the contents tell it to.
        if not compiled.binary.startswith(_IMAGES):
            raise LaunchRefused("the binary was refused: it is no code object")
        self._hip = hip
        self._binary = compiled.binary
        # The runtime may read its image later than it loads it.
        self._image = ctypes.create_string_buffer(compiled.binary, len(compiled.binary))
        try:
            (self._module,) = values(hip.hipModuleLoadData(ctypes.addressof(self._image)))
        except HipError as exc:
            raise refusal_or_fault(exc, "the binary was refused") from exc
        try:
            self._functions = [self._function(entry) for entry in compiled.entries]
        except HipError as exc:
            self.unload()
            raise refusal_or_fault(exc, "the binary was refused") from exc
        super().__init__(HipAddressSpace(hip), compiled.globals)

    def enqueue(self, number: int, arguments: Sequence[Bound], size: LaunchSize, stream: Any) -> None:
        """Launch the kernel of that number of the sequence, without waiting.

        Raises:
            LaunchRefused: the runtime refused the launch.
            DeviceFault: the device has faulted.
        """
        if size.cluster != (1, 1, 1):
            raise LaunchRefused("the launch was refused: HIP's launches have no clusters of blocks")
        hip, function = self._hip, self._functions[number]
        contents, places = parameter_places(arguments)
        data = ctypes.create_string_buffer(contents, max(1, len(contents)))
        extents = (*size.grid, *size.block, size.shared_bytes)
        try:
            if size.cooperative:
                # This launch takes no buffer of all parameters, only the address of each.
                addresses = _addresses(*(ctypes.addressof(data) + place for place in places))
                values(
                    hip.hipModuleLaunchCooperativeKernel(
                        function, *extents, stream, ctypes.addressof(addresses)
                    )
                )
                return
            length = ctypes.c_size_t(len(contents))
            extra = _addresses(
                hip.HIP_LAUNCH_PARAM_BUFFER_POINTER,
                ctypes.addressof(data),
                hip.HIP_LAUNCH_PARAM_BUFFER_SIZE,
                ctypes.addressof(length),
                hip.HIP_LAUNCH_PARAM_END,
            )
            values(hip.hipModuleLaunchKernel(function, *extents, stream, None, ctypes.addressof(extra)))
        except HipError as exc:
            raise refusal_or_fault(exc, "the launch was refused") from exc

    def _function(self, entry: str) -> Any:
        (found,) = values(self._hip.hipModuleGetFunction(self._module, entry.encode()))
        return found

    def _place(self, name: str) -> tuple[int, int] | None:
        try:
            address, size = values(self._hip.hipModuleGetGlobal(self._module, name.encode()))
        except HipError:
            return None
        return None if address is None else (int(address), int(size))

    def _variable(self, name: str) -> str:
        return named_among(variables_of(self._binary), name)

    def unload(self) -> None:
        """See `Program.unload`."""
        must(self._hip.hipModuleUnload(self._module), "the binary cannot be unloaded")
        self._functions = []


def _addresses(*found: int) -> Any:
    return (ctypes.c_void_p * max(1, len(found)))(*found)
