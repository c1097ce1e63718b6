"""Tables of a 64-bit ELF file: sections, segments, symbols, relocations. Nothing is executed."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_DYNAMIC = struct.Struct("<qQ")
_LITTLE_64 = b"\x7fELF\x02\x01"

SYMBOL_TABLES = (2, 11)
"""Types of the sections `.symtab` and `.dynsym`."""
_RELOCATIONS = 4
_OBJECT = 1
"""Kind of a symbol that is data."""


@dataclass(frozen=True)
class Section:
    """A section; its addresses and offsets are in bytes."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    """Index of the section that it refers to: the strings of symbols, the symbols of relocations."""


@dataclass(frozen=True)
class Symbol:
    """An entry of a symbol table."""

    name: str
    kind: int
    binding: int
    other: int
    section: int
    """Index of its section; 0 if the file uses it and does not define it."""
    address: int
    size: int


@dataclass(frozen=True)
class Elf:
    """The tables of a file."""

    kind: int
    machine: int
    sections: tuple[Section, ...]
    segments: tuple[tuple[int, int], ...]
    """Type and flags of each."""
    binary: bytes

    def symbols(self, table: Section) -> Iterator[Symbol]:
        """The entries of a symbol table, in order; the first is empty."""
        strings = self.sections[table.link]
        for at in range(table.offset, table.offset + table.size, _SYMBOL.size):
            name, info, other, section, address, size = _SYMBOL.unpack_from(self.binary, at)
            text = _text(self.binary, strings.offset + name)
            yield Symbol(text, info & 0xF, info >> 4, other, section, address, size)

    def relocations(self) -> Iterator[tuple[int, Symbol]]:
        """Type and symbol of all relocations with addends."""
        for section in self.sections:
            if section.kind != _RELOCATIONS:
                continue
            named = tuple(self.symbols(self.sections[section.link]))
            for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
                _, info, _ = _RELOCATION.unpack_from(self.binary, at)
                yield info & 0xFFFFFFFF, named[info >> 32]

    def dynamic(self) -> Iterator[tuple[int, int]]:
        """Tags and values of the section `.dynamic`."""
        for section in self.sections:
            if section.name == ".dynamic":
                at = section.offset
                yield from _DYNAMIC.iter_unpack(self.binary[at : at + section.size])


def read_elf(binary: bytes) -> Elf:
    """The tables of a file.

    Raises:
        ValueError: not a 64-bit little-endian ELF file.
        struct.error, IndexError, OverflowError: a truncated or malformed file. So may the methods of `Elf`.
    """
    header = _HEADER.unpack_from(binary, 0)
    if header[0][: len(_LITTLE_64)] != _LITTLE_64:
        raise ValueError("not a 64-bit ELF file")
    at, size, count, names_index = header[6], header[11], header[12], header[13]
    rows = [_SECTION.unpack_from(binary, at + i * size) for i in range(count)]
    names_at = rows[names_index][4]
    sections = tuple(Section(_text(binary, names_at + r[0]), *r[1:7]) for r in rows)
    at, size, count = header[5], header[9], header[10]
    segments = tuple(_SEGMENT.unpack_from(binary, at + i * size)[:2] for i in range(count))
    return Elf(header[1], header[2], sections, segments, binary)


def variables_of(binary: bytes) -> tuple[str, ...]:
    """Symbols of the objects that a file defines; none if it cannot be read."""
    try:
        elf = read_elf(binary)
        tables = [s for s in elf.sections if s.kind in SYMBOL_TABLES]
        found = {x.name for s in tables for x in elf.symbols(s) if x.kind == _OBJECT and x.section}
    except (struct.error, ValueError, IndexError, OverflowError):
        return ()
    return tuple(sorted(found))


def _text(binary: bytes, at: int) -> str:
    return binary[at : binary.index(b"\0", at)].decode(errors="replace")
