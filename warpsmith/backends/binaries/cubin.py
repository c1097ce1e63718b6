"""Contents of a cubin, read from its ELF tables: entries and writable globals. Nothing is executed."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpsmith.backends.binaries.elf import Elf, read_elf

_SHT_SYMTAB = 2
_STT_OBJECT = 1
_STO_CUDA_ENTRY = 0x10
_WRITABLE = (".nv.global", ".nv.global.init")
_CONSTANT = ".nv.constant"
_INFO = ".nv.info."
_SIZED = 4
"""Form of an attribute that has a size and contents; the others have two bytes."""
_PARAMETER = 0x17
_PARAMETER_INFO = struct.Struct("<IHHI")


@dataclass(frozen=True)
class CubinContents:
    """Names found in a cubin."""

    entries: tuple[str, ...]
    """Kernels (`__global__` functions) by symbol."""
    constants: tuple[str, ...]
    """`__constant__` variables."""
    writable_globals: tuple[str, ...]
    """`__device__` variables that a kernel could use to remember earlier launches."""
    parameters: Mapping[str, tuple[tuple[int, int], ...]]
    """Offset and size in bytes of every parameter of a kernel, in order, by symbol."""


def variable_named(contents: CubinContents, name: str) -> str:
    """The symbol of a variable with this name, in whatever namespace; empty if there is none, or several."""
    return named_among((*contents.constants, *contents.writable_globals), name)


def named_among(known: Sequence[str], name: str) -> str:
    """The symbol among those known that has this name, in whatever namespace; empty: none, or several."""
    if name in known:
        return name
    found = [v for v in known if v.startswith("_ZN") and v.endswith(f"{len(name)}{name}E")]
    return found[0] if len(found) == 1 else ""


def read_cubin(binary: bytes) -> CubinContents:
    """Entries and writable globals of a 64-bit cubin.

    Raises:
        ValueError: not a 64-bit ELF file.
    """
    try:
        return _read(read_elf(binary))
    except (struct.error, IndexError, OverflowError) as exc:
        raise ValueError("a truncated or malformed cubin") from exc


def _read(elf: Elf) -> CubinContents:
    entries: set[str] = set()
    writable: set[str] = set()
    constants: set[str] = set()
    parameters = {
        s.name.removeprefix(_INFO): _parameters(elf.binary, s.offset, s.offset + s.size)
        for s in elf.sections
        if s.name.startswith(_INFO)
    }
    for symbol in (x for s in elf.sections if s.kind == _SHT_SYMTAB for x in elf.symbols(s)):
        home = elf.sections[symbol.section].name if 0 < symbol.section < len(elf.sections) else ""
        if symbol.other & _STO_CUDA_ENTRY and home == f".text.{symbol.name}":
            entries.add(symbol.name)
        if symbol.kind == _STT_OBJECT and home in _WRITABLE:
            writable.add(symbol.name)
        elif symbol.kind == _STT_OBJECT and home.startswith(_CONSTANT):
            constants.add(symbol.name)
    named = tuple(tuple(sorted(names)) for names in (entries, constants, writable))
    return CubinContents(named[0], named[1], named[2], parameters)


def _parameters(binary: bytes, at: int, end: int) -> tuple[tuple[int, int], ...]:
    """Offset and size of every parameter, from the attributes of a kernel."""
    found = {}
    while at < end:
        form, attribute, size = struct.unpack_from("<BBH", binary, at)
        at += 4
        if form != _SIZED:
            continue
        if attribute == _PARAMETER:
            _, ordinal, offset, bits = _PARAMETER_INFO.unpack_from(binary, at)
            found[ordinal] = (offset, bits >> 18)
        at += size
    return tuple(found[n] for n in sorted(found))
