"""Finds the symbol of a binary that a C++ name expression refers to. Runs in compile children."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

MARK = "warpsmith_mark"
_MANGLED_MARK = f"{len(MARK)}{MARK}I"


def marked(source: str, entries: Sequence[str]) -> str:
    """`source` with added kernels whose own names contain the mangled names of `entries`; C++17.

    Naming an entry there also makes the compiler instantiate the template.
    """
    marks = "".join(f"template __global__ void {MARK}<&{entry}>();\n" for entry in entries)
    return f"{source}\ntemplate <auto* entry> __global__ void {MARK}() {{}}\n{marks}"


def is_mark(symbol: str) -> bool:
    """True if a symbol is the kernel that `marked` adds."""
    return _MANGLED_MARK in symbol


def match_entry(expression: str, symbols: Sequence[str]) -> str | None:
    """The symbol that a name expression refers to; None if that is ambiguous.

    If only one symbol has the parts of the qualified name, it is chosen. Among several instances of a
    template, the one that the mark names is chosen. Both names are demangled first, since mangling
    abbreviates repeated parts differently in each.
    """
    name = expression.split("<", 1)[0].replace(" ", "")
    mangled = "".join(f"{len(part)}{part}" for part in name.split("::") if part)
    found = [s for s in symbols if mangled in s and not is_mark(s)]
    if len(found) == 1:
        return found[0]
    # Two instances of one template in a sequence have a mark each, and which is which stays open.
    wanted = " ".join(demangled(s) for s in symbols if is_mark(s))
    meant = [s for s in found if f"<&({demangled(s)})>" in wanted]
    return meant[0] if len(meant) == 1 else None


def demangled(symbol: str) -> str:
    """A symbol as C++; unchanged if it is not mangled or cannot be demangled here."""
    library = _runtime()
    if library is None:
        return symbol
    found = _demangled(library, symbol)
    # Older libraries know these types only as what they were called before.
    older = symbol.replace("DF16_", "Dh").replace("DF16b", "De")
    if found == symbol != older:
        found = _demangled(library, older)
        return symbol if found == older else found.replace("decimal128", "__bf16")
    return found


def _demangled(library: Any, symbol: str) -> str:
    status = ctypes.c_int()
    text = library.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return symbol
    found = ctypes.cast(text, ctypes.c_char_p).value or b""
    library.free(ctypes.c_void_p(text))
    return found.decode(errors="replace")


@cache
def _runtime() -> Any:
    """The C++ runtime library, present on every machine with a host compiler; None on others."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None
    library.__cxa_demangle.restype = ctypes.c_void_p
    library.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return library
