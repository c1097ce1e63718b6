"""Inspects the shared object of a kernel before it is loaded. Pure.

PoCL makes a shared object of every kernel and loads it into the process that launches it. An honest one has
functions, constants and room for local arrays, and asks the process for next to nothing.
"""

import re
import struct
from dataclasses import dataclass

from warpsmith.backends.binaries.elf import SYMBOL_TABLES, Elf, Section, Symbol, read_elf

_SHARED_OBJECT = 3
_WRITE, _ALLOCATED, _EXECUTE = 1, 2, 4
_LOADED, _THREAD_LOCAL, _STACK = 1, 7, 0x6474E551
_SEGMENT_EXECUTE, _SEGMENT_WRITE = 1, 2

_CODE = frozenset({".text", ".plt", ".plt.got", ".plt.sec"})
_CHANGED_BY_LOADING = frozenset({".dynamic", ".got", ".got.plt", ".data.rel.ro"})
_LOCAL_ARRAYS = ".bss"
"""PoCL keeps `__local` arrays of a kernel here."""
_VARIABLES = ".data"
_CONSTANTS = re.compile(
    r"\.(rodata(\..*)?|eh_frame|eh_frame_hdr|hash|gnu\.hash|dynsym|dynstr|gnu\.version|gnu\.version_r|rela\.dyn"
    r"|rela\.plt|relr\.dyn|note\..*)"
)
_TAGS = {
    **dict.fromkeys((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 16, 20, 23, 24, 30, 35, 36, 37), True),
    **dict.fromkeys((0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFF9, 0x6FFFFFFB, 0x6FFFFFFE, 0x6FFFFFFF), True),
}
"""Entries of `.dynamic` that name tables. Those that name functions to run, or text to change, are absent."""
_FLAGS, _CHANGES_TEXT = 30, 4

_NO_TYPE, _OBJECT, _FUNCTION = 0, 1, 2
_KINDS = (_NO_TYPE, _OBJECT, _FUNCTION, 3, 4)
"""The last two are sections and files. Absent: common and thread-local data, and functions that choose."""
_BINDINGS = (0, 1)
_DEFINED = range(1, 0xFF00)
_RELOCATIONS = {62: frozenset({1, 6, 7, 8}), 183: frozenset({257, 1025, 1026, 1027})}
"""By machine (x86-64, AArch64): absolute, global data, jump slot, relative."""
_PADDING = re.compile(
    rb"(?:\x66*\x2e?\x0f\x1f(?:\x00|\x40\x00|\x44\x00\x00|\x80\x00{4}|\x84\x00{5})|\x66*\x90|\xcc|\x00"
    rb"|\x1f\x20\x03\xd5)*"
)
"""Bytes that compilers write between functions: instructions that do nothing (x86, AArch64), or zeros."""
_OF_PROCESS = re.compile(
    r"(mem(cpy|move|set)|snprintf|__(u?(div|mod)[dt]i[34]|mulodi4|(extend|trunc)\w+f2|gnu_[fh]2[fh]_ieee)"
    r"|(fma|fmod|pow|exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|tan|sqrt|cbrt|hypot|floor|ceil|trunc"
    r"|l?l?rint|l?l?round|nearbyint|roundeven|copysign|fmin|fmax|fabs|fdim|ldexp|remainder|erf|erfc|tgamma"
    r"|a?(sin|cos|tan)h?|atan2)[fl]?)"
)
"""Functions of the process that a compiler calls by itself: they compute, and copy memory."""


@dataclass(frozen=True)
class NativeObject:
    """Result of the inspection of a shared object."""

    problem: str
    """Reason why the object must not be loaded; empty if nothing was found."""
    shared_names: tuple[str, ...] = ()
    """Functions that it defines and yet finds by name: one of the process with the same name would be
    called."""


def inspect(binary: bytes, variables: bool = False) -> NativeObject:
    """Look into a shared object.

    Args:
        variables: data that is written and outlives launches may be there, since the user's kernel has it.
    """
    try:
        elf = read_elf(binary)
        uses = [(kind, symbol) for kind, symbol in elf.relocations()]
        problem = _sections(elf, variables) or _loading(elf) or _symbols(elf) or _relocations(elf, uses)
    except (ValueError, struct.error, IndexError, OverflowError) as exc:
        return NativeObject(f"it cannot be read: {exc}")
    shared = {s.name for _, s in uses if s.section in _DEFINED and s.name}
    return NativeObject(problem, tuple(sorted(shared)))


def _sections(elf: Elf, variables: bool) -> str:
    if elf.kind != _SHARED_OBJECT:
        return "it is no shared object"
    for section in elf.sections:
        problem = _section(section, variables) if section.flags & _ALLOCATED else ""
        if problem:
            return problem
    return ""


def _section(section: Section, variables: bool) -> str:
    name, flags = section.name, section.flags & (_WRITE | _EXECUTE)
    if name == _VARIABLES and flags == _WRITE:
        return "" if variables else "it has data that launches could change (.data)"
    if name in _CODE:
        return "" if flags == _EXECUTE else f"the section {name} can be written or is no code"
    if name in _CHANGED_BY_LOADING or name == _LOCAL_ARRAYS:
        return "" if flags == _WRITE else f"the section {name} is not plain data"
    if _CONSTANTS.fullmatch(name) is None:
        return f"it has a section that no kernel needs: {name}"
    return f"the section {name} is not constant" if flags else ""


def _loading(elf: Elf) -> str:
    for kind, flags in elf.segments:
        if kind == _THREAD_LOCAL:
            return "it has thread-local data"
        if kind == _LOADED and flags & _SEGMENT_EXECUTE and flags & _SEGMENT_WRITE:
            return "it has memory that can be written and executed"
        if kind == _STACK and flags & _SEGMENT_EXECUTE:
            return "it asks for a stack that can be executed"
    for tag, value in elf.dynamic():
        if tag not in _TAGS or (tag == _FLAGS and value & _CHANGES_TEXT):
            return f"it asks the loader for more than tables (tag {tag:#x})"
    return ""


def _symbols(elf: Elf) -> str:
    tables = [s for s in elf.sections if s.kind in SYMBOL_TABLES]
    if SYMBOL_TABLES[0] not in {t.kind for t in tables}:
        return "its symbols were removed"
    functions: dict[int, list[Symbol]] = {}
    for symbol in (x for table in tables for x in elf.symbols(table)):
        problem = _symbol(elf, symbol)
        if problem:
            return problem
        if symbol.kind == _FUNCTION and _is_code(elf, symbol):
            functions.setdefault(symbol.section, []).append(symbol)
    foreign = any(not _is_padded(elf, n, found) for n, found in functions.items())
    return "it has bytes among code that belong to no function" if foreign else ""


def _symbol(elf: Elf, symbol: Symbol) -> str:
    if symbol.kind not in _KINDS or symbol.binding not in _BINDINGS:
        return f"the symbol {symbol.name} is weak, thread-local or chosen while loading"
    if symbol.section == 0 and not _may_be_called(symbol.name):
        return f"it calls {symbol.name}, which is not of the kernel's language"
    return f"{symbol.name} is data among code" if _is_code(elf, symbol) and symbol.kind == _OBJECT else ""


def _is_code(elf: Elf, symbol: Symbol) -> bool:
    return symbol.section in _DEFINED and elf.sections[symbol.section].flags & _EXECUTE != 0


def _may_be_called(name: str) -> bool:
    # A linker may write the version of a function behind its name.
    return not name or _OF_PROCESS.fullmatch(name.split("@", maxsplit=1)[0]) is not None


def _is_padded(elf: Elf, section: int, functions: list[Symbol]) -> bool:
    """True if what lies between the functions of a section is padding."""
    code = elf.sections[section]
    end = code.address
    for address, size in [*sorted({(f.address, f.size) for f in functions}), (code.address + code.size, 0)]:
        gap = elf.binary[code.offset + end - code.address : code.offset + address - code.address]
        if address > end and _PADDING.fullmatch(gap) is None:
            return False
        end = max(end, address + size)
    return True


def _relocations(elf: Elf, uses: list[tuple[int, Symbol]]) -> str:
    known = _RELOCATIONS.get(elf.machine)
    if known is None:
        return f"objects of this machine ({elf.machine}) are not known"
    strange = next((kind for kind, _ in uses if kind not in known), None)
    return "" if strange is None else f"it asks the loader to compute an address ({strange})"
