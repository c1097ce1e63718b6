"""The buffer of a CUDA kernel's parameters: each argument at its place, by the rules of C."""

from collections.abc import Sequence

from warpsmith.backends.base import Bound, LocalSlot, Packed
from warpsmith.domain.arguments.layout import POINTER_BYTES, MemoryLayout
from warpsmith.domain.jobs.by_value_plan import ParameterSlot


def parameter_buffer(arguments: Sequence[Bound]) -> bytes:
    """All arguments of a launch, in the kernel's order."""
    return parameter_places(arguments)[0]


def parameter_places(arguments: Sequence[Bound]) -> tuple[bytes, tuple[int, ...]]:
    """All arguments of a launch in one buffer, and the byte at which each begins."""
    data, places = bytearray(), []
    for argument in arguments:
        extent, contents = _placed(argument)
        data += bytes(-len(data) % extent.align)
        places.append(len(data))
        data += contents
    return bytes(data), tuple(places)


def _placed(argument: Bound) -> tuple[MemoryLayout, bytes]:
    if argument is None or isinstance(argument, tuple):
        address = 0 if argument is None else argument[0].address + argument[1]
        return MemoryLayout(POINTER_BYTES, POINTER_BYTES), address.to_bytes(POINTER_BYTES, "little")
    assert not isinstance(argument, LocalSlot), "the job form has no such argument for CUDA"
    if isinstance(argument, Packed):
        return MemoryLayout(len(argument.data), argument.align), argument.data
    contents = argument.tobytes()
    return MemoryLayout(len(contents), len(contents)), contents


def parameter_mismatch(wanted: Sequence[ParameterSlot], found: Sequence[tuple[int, int]]) -> str:
    """Difference of a kernel's parameters from the job's arguments; empty if none, or if they are not known.

    Args:
        found: offset and size in bytes of each of the kernel's parameters.
    """
    if not wanted or not found:
        return ""
    if len(wanted) != len(found):
        names = ", ".join(p.name for p in wanted)
        return f"the kernel has {len(found)} parameters, and the job {len(wanted)} arguments ({names})"
    for n, (parameter, (offset, size)) in enumerate(zip(wanted, found, strict=True)):
        if parameter.size_bytes != size:
            words = f"argument {n} ({parameter.name}) has {parameter.size_bytes} bytes in the job"
            return f"{words} and {size} in the kernel"
        if parameter.offset_bytes != offset:
            words = (
                f"argument {n} ({parameter.name}) begins at byte {parameter.offset_bytes} of the parameters"
            )
            return f"{words} by the job and at {offset} in the kernel: its alignment differs (align)"
    return ""
