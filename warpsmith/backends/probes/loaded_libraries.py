"""Puts a function of this process in the place of one that a loaded library imports. Linux, 64 bits.

A library calls imported functions through slots, into which the loader writes addresses. A slot is
overwritten with another address; other libraries keep their own slots.
"""

import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PT_DYNAMIC = 2
_STRINGS, _SYMBOLS, _PLT_SIZE, _PLT, _TABLE, _TABLE_SIZE = 5, 6, 2, 23, 7, 8
_SYMBOL_BYTES = 24
_SLOT_KINDS = {"x86_64": (6, 7), "aarch64": (1025, 1026)}
"""Relocations that fill a slot: global data and jump slots."""


class _Segment(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("physical", ctypes.c_uint64),
        ("file_size", ctypes.c_uint64),
        ("memory_size", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    ]


class _LoadedLibrary(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("segments", ctypes.POINTER(_Segment)),
        ("count", ctypes.c_uint16),
    ]


class _Entry(ctypes.Structure):
    _fields_ = [("tag", ctypes.c_int64), ("value", ctypes.c_uint64)]


class _Relocation(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("info", ctypes.c_uint64), ("addend", ctypes.c_int64)]


_Visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_LoadedLibrary), ctypes.c_size_t, ctypes.c_void_p)


def redirect(part: str, function: str, to: Any) -> int:
    """Have libraries call another function.

    Args:
        part: part of the file names of these libraries.
        function: name of the imported function.
        to: a ctypes function of the same type. The caller keeps it alive as long as the process lives.

    Returns:
        Number of libraries that now call it.
    """
    kinds = _SLOT_KINDS.get(os.uname().machine, ())
    address = ctypes.cast(to, ctypes.c_void_p).value or 0
    found = 0
    for base, tables in _libraries(part):
        slots = [base + at for at in _slots(base, tables, function.encode(), kinds)]
        for slot in slots:
            _write(slot, address)
        found += bool(slots)
    return found


def _libraries(part: str) -> list[tuple[int, dict[int, int]]]:
    """Base address and dynamic section of the loaded libraries of that name."""
    found: list[tuple[int, dict[int, int]]] = []

    def visit(library: Any, _size: int, _data: Any) -> int:
        info = library.contents
        if part in Path(os.fsdecode(info.name or b"")).name:
            for segment in info.segments[: info.count]:
                if segment.type == _PT_DYNAMIC:
                    found.append((info.base, _tables(info.base + segment.address)))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(_Visit(visit), None)
    return found


def _tables(at: int) -> dict[int, int]:
    tables: dict[int, int] = {}
    while (entry := _Entry.from_address(at)).tag:
        tables.setdefault(entry.tag, entry.value)
        at += ctypes.sizeof(_Entry)
    return tables


def _slots(base: int, tables: dict[int, int], function: bytes, kinds: tuple[int, ...]) -> Iterator[int]:
    """Offsets of the slots; of the large table only if the one for functions has none."""
    for table, size in ((_PLT, _PLT_SIZE), (_TABLE, _TABLE_SIZE)):
        if table not in tables:
            continue
        count = tables.get(size, 0) // ctypes.sizeof(_Relocation)
        rows = (_Relocation * count).from_address(_absolute(base, tables[table]))
        offsets = [
            row.offset
            for row in rows
            if row.info & 0xFFFFFFFF in kinds and _name(base, tables, row.info >> 32) == function
        ]
        if offsets:
            yield from offsets
            return


def _name(base: int, tables: dict[int, int], symbol: int) -> bytes:
    at = _absolute(base, tables[_SYMBOLS]) + symbol * _SYMBOL_BYTES
    offset = ctypes.c_uint32.from_address(at).value
    return ctypes.string_at(_absolute(base, tables[_STRINGS]) + offset)


def _absolute(base: int, address: int) -> int:
    # Some C libraries have added the base to what they keep of the dynamic section, others not.
    return address if address >= base else base + address


def _write(slot: int, address: int) -> None:
    page = slot & -mmap.PAGESIZE
    # The loader makes the slots of some libraries read-only once it has filled them.
    size = slot + ctypes.sizeof(ctypes.c_void_p) - page
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_WRITE):
        raise OSError(ctypes.get_errno(), "a slot of a library cannot be made writable")
    ctypes.c_uint64.from_address(slot).value = address
