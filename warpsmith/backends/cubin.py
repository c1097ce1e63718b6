"""Contents of a cubin, read from its ELF tables: entries and writable globals. Nothing is executed."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHT_SYMTAB = 2
_STT_OBJECT = 1
_STO_CUDA_ENTRY = 0x10
_WRITABLE = (".nv.global", ".nv.global.init")
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
    writable_globals: tuple[str, ...]
    """`__device__` variables that a kernel could use to remember earlier launches."""
    parameters: Mapping[str, tuple[tuple[int, int], ...]]
    """Offset and size in bytes of every parameter of a kernel, in order, by symbol."""


def read_cubin(binary: bytes) -> CubinContents:
    """Entries and writable globals of a 64-bit cubin.

    Raises:
        ValueError: not a 64-bit ELF file.
    """
    try:
        return _read(binary)
    except (struct.error, IndexError, OverflowError) as exc:
        raise ValueError("a truncated or malformed cubin") from exc


def _read(binary: bytes) -> CubinContents:
    header = _HEADER.unpack_from(binary, 0)
    if header[0][:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    offset, size, count, names_index = header[6], header[11], header[12], header[13]
    sections = [_SECTION.unpack_from(binary, offset + i * size) for i in range(count)]
    names_at = sections[names_index][4]
    names = [_text(binary, names_at + s[0]) for s in sections]
    entries: set[str] = set()
    writable: set[str] = set()
    parameters = {
        name.removeprefix(_INFO): _parameters(binary, s[4], s[4] + s[5])
        for name, s in zip(names, sections, strict=True)
        if name.startswith(_INFO)
    }
    for section in sections:
        if section[1] != _SHT_SYMTAB:
            continue
        strings_at = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name_at, info, other, index, _, _ = _SYMBOL.unpack_from(binary, at)
            name = _text(binary, strings_at + name_at)
            home = names[index] if 0 < index < len(names) else ""
            if other & _STO_CUDA_ENTRY and home == f".text.{name}":
                entries.add(name)
            if info & 0xF == _STT_OBJECT and home in _WRITABLE:
                writable.add(name)
    return CubinContents(tuple(sorted(entries)), tuple(sorted(writable)), parameters)


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


def _text(binary: bytes, at: int) -> str:
    return binary[at : binary.index(b"\0", at)].decode(errors="replace")
