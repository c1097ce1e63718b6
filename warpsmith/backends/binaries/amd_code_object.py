"""Contents of a code object of AMD: kernels with their resources, and writable globals. Nothing is executed.

Its metadata is a note of MessagePack; the User Guide for AMDGPU Backend of LLVM says what it has.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from warpsmith.backends.binaries.elf import Elf, read_elf
from warpsmith.backends.binaries.messagepack import unpacked

_EM_AMDGPU = 224
_NOTES = 7
_METADATA = 32
"""Type of the note `NT_AMDGPU_METADATA`."""
_SHT_SYMTAB = 2
_SHF_WRITE = 1
_STT_OBJECT = 1
_NOTE = struct.Struct("<III")


@dataclass(frozen=True)
class AmdKernel:
    """Resources of a kernel. Registers are those of a lane (vector) or of a wave (scalar)."""

    name: str
    """Its symbol."""
    vector_registers: int
    """Vector registers of a lane, accumulators included where both are of one file (gfx90a, gfx942)."""
    scalar_registers: int
    spilled_vector_registers: int
    spilled_scalar_registers: int
    shared_bytes: int
    """Static LDS of a block."""
    private_bytes: int
    """Scratch memory of a lane, spilled registers included."""
    wavefront: int
    most_threads: int
    """Threads of a block for which it was compiled."""
    parameters: tuple[tuple[int, int], ...]
    """Offset and size in bytes of every parameter, in order."""


@dataclass(frozen=True)
class CodeObject:
    """Names found in a code object."""

    kernels: Mapping[str, AmdKernel]
    writable_globals: tuple[str, ...]


def read_code_object(binary: bytes) -> CodeObject:
    """Kernels and writable globals of a code object.

    Raises:
        ValueError: not a 64-bit ELF file of AMD, or one whose metadata cannot be read.
    """
    try:
        elf = read_elf(binary)
        if elf.machine != _EM_AMDGPU:
            raise ValueError("not a code object of AMD")
        found = [_kernel(k) for note in _metadata(elf) for k in note["amdhsa.kernels"]]
        return CodeObject({k.name: k for k in found}, tuple(sorted(_globals(elf))))
    except (struct.error, LookupError, OverflowError, TypeError, AttributeError) as exc:
        raise ValueError("a truncated or malformed code object") from exc


def _metadata(elf: Elf) -> Iterator[Any]:
    for section in elf.sections:
        at, end = section.offset, section.offset + section.size
        while section.kind == _NOTES and at < end:
            name_size, size, kind = _NOTE.unpack_from(elf.binary, at)
            at += _NOTE.size + _padded(name_size)
            if kind == _METADATA:
                yield unpacked(elf.binary[at : at + size])
            at += _padded(size)


def _padded(size: int) -> int:
    return size + -size % 4


def _kernel(fields: Mapping[str, Any]) -> AmdKernel:
    own = [a for a in fields.get(".args", ()) if not a[".value_kind"].startswith("hidden_")]
    return AmdKernel(
        name=fields[".name"],
        vector_registers=fields[".vgpr_count"],
        scalar_registers=fields[".sgpr_count"],
        spilled_vector_registers=fields.get(".vgpr_spill_count", 0),
        spilled_scalar_registers=fields.get(".sgpr_spill_count", 0),
        shared_bytes=fields[".group_segment_fixed_size"],
        private_bytes=fields[".private_segment_fixed_size"],
        wavefront=fields[".wavefront_size"],
        most_threads=fields[".max_flat_workgroup_size"],
        parameters=tuple((a[".offset"], a[".size"]) for a in own),
    )


def _globals(elf: Elf) -> Iterator[str]:
    for symbol in (x for s in elf.sections if s.kind == _SHT_SYMTAB for x in elf.symbols(s)):
        has_home = 0 < symbol.section < len(elf.sections)
        is_written = has_home and elf.sections[symbol.section].flags & _SHF_WRITE
        if symbol.kind == _STT_OBJECT and is_written and not symbol.name.startswith("__hip_cuid_"):
            yield symbol.name
