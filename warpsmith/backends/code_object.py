"""What a code object for an AMD device says of its kernels, in its own notes. Nothing is executed.

The notes are MessagePack, as LLVM's guide to the AMDGPU back end describes them (code object version 5).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from warpsmith.backends.elf import read_elf

_NOTE = struct.Struct("<III")
_METADATA = 32
"""Type of a note with metadata (`NT_AMDGPU_METADATA`)."""
_NOTES = 7
_MOST_VALUES = 1 << 20
_FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_LENGTHS = {
    0xC4: (">B", bytes),
    0xC5: (">H", bytes),
    0xC6: (">I", bytes),
    0xD9: (">B", str),
    0xDA: (">H", str),
    0xDB: (">I", str),
    0xDC: (">H", list),
    0xDD: (">I", list),
    0xDE: (">H", dict),
    0xDF: (">I", dict),
}


@dataclass(frozen=True)
class KernelNote:
    """A kernel of a code object. Registers are 32 bits wide, one for each lane or (scalar) each wavefront."""

    name: str
    vector_registers: int
    accumulators: int
    """Vector registers of matrix instructions, which share a file with the others on gfx90a and later."""
    scalar_registers: int
    spilled_vector: int
    """Vector registers that lie in memory."""
    spilled_scalar: int
    private_bytes: int
    """Memory of each lane."""
    local_bytes: int
    """Local memory of a block (LDS), without what a launch adds."""
    wavefront: int


def read_code_object(binary: bytes) -> tuple[KernelNote, ...]:
    """The kernels of a code object.

    Raises:
        ValueError: it is none, or has no notes.
    """
    try:
        elf = read_elf(binary)
    except (struct.error, IndexError, OverflowError) as exc:
        raise ValueError(f"a broken ELF file ({exc})") from exc
    for section in elf.sections:
        if section.kind != _NOTES:
            continue
        for kind, content in _notes(binary[section.offset : section.offset + section.size]):
            if kind == _METADATA:
                return tuple(_kernel(k) for k in _Reader(content).value()["amdhsa.kernels"])
    raise ValueError("the code object has no notes of its kernels")


def _kernel(fields: dict[str, Any]) -> KernelNote:
    return KernelNote(
        name=str(fields[".name"]),
        vector_registers=int(fields[".vgpr_count"]),
        accumulators=int(fields.get(".agpr_count", 0)),
        scalar_registers=int(fields[".sgpr_count"]),
        spilled_vector=int(fields.get(".vgpr_spill_count", 0)),
        spilled_scalar=int(fields.get(".sgpr_spill_count", 0)),
        private_bytes=int(fields[".private_segment_fixed_size"]),
        local_bytes=int(fields[".group_segment_fixed_size"]),
        wavefront=int(fields[".wavefront_size"]),
    )


def _notes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _NOTE.size <= len(data):
        name, size, kind = _NOTE.unpack_from(data, at)
        begin = at + _NOTE.size + name + -name % 4
        yield kind, data[begin : begin + size]
        at = begin + size + -size % 4


class _Reader:
    """Values of MessagePack."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._left = _MOST_VALUES

    def value(self) -> Any:
        """The next value."""
        self._left -= 1
        if self._left < 0:
            raise ValueError("the notes of the code object are too long")
        head = self._take(1)[0]
        if head < 0x80:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head < 0xC0:
            kind, size = {8: (dict, head & 15), 9: (list, head & 15)}.get(head >> 4, (str, head & 31))
            return self._sized(kind, size)
        if head in _FIXED:
            return _FIXED[head]
        if head in _NUMBERS:
            return self._number(_NUMBERS[head])
        if head in _LENGTHS:
            form, kind = _LENGTHS[head]
            return self._sized(kind, self._number(form))
        raise ValueError(f"the notes of the code object hold a value of an unknown type ({head:#x})")

    def _sized(self, kind: type, size: int) -> Any:
        if kind is dict:
            return {self.value(): self.value() for _ in range(size)}
        if kind is list:
            return [self.value() for _ in range(size)]
        data = self._take(size)
        return data.decode(errors="replace") if kind is str else data

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return number

    def _take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) != size:
            raise ValueError("the notes of the code object end too early")
        self._at += size
        return found
