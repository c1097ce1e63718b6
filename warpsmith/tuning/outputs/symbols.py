"""Names of a binary's variables: what a source calls them, and what compilers put around it."""

import re

_NESTED = re.compile(r"_ZN(?:K)?(?=\d)")
_LENGTH = re.compile(r"[1-9]\d*")
_UNIT = re.compile(r"(_INTERNAL_|_GLOBAL__N__)\w+")
# Literals, substitutions, parameters, array bounds and discriminators hold digits that are no lengths.
_NO_LENGTH = re.compile(r"L[a-z]n?\d+E|S[0-9A-Z]*_|T\d*_|A\d+_|__\d+_|_\d")
_OPENS, _ARGUMENTS, _CLOSES = "NXJZ", "I", "E"


def without_unit(symbol: str) -> str:
    """A mangled name of internal linkage, without the identity of its translation unit.

    NVRTC and nvcc put static variables of a header into a namespace `_INTERNAL_...` whose name holds a hash
    of the source. So a header's constant has another name in each template that includes it.

    Returns:
        The symbol as it is if it is not such a name.
    """
    start = _NESTED.match(symbol)
    if start is None:
        return symbol
    at, parts = start.end(), [start.group()]
    while (length := _LENGTH.match(symbol, at)) is not None:
        end = length.end() + int(length.group())
        component = symbol[length.end() : end]
        if len(component) < int(length.group()):
            return symbol
        unit = _UNIT.fullmatch(component)
        name = unit.group(1) if unit else component
        parts.append(f"{len(name)}{name}")
        at = end
    return "".join(parts) + symbol[at:]


def variable_of(symbol: str) -> str:
    """Name of a symbol's variable in the source: `calls` for `_ZN3foo5callsE`.

    Source: Itanium C++ ABI, 5.1. Names in template arguments and types are others' names.

    Returns:
        The symbol as it is if it is not mangled; an empty text if it is mangled otherwise.
    """
    if not symbol.startswith("_Z"):
        return symbol
    at, name, open_kinds = 2, "", list[str]()
    while at < len(symbol):
        if skipped := _NO_LENGTH.match(symbol, at):
            at = skipped.end()
        elif length := _LENGTH.match(symbol, at):
            at = length.end() + int(length.group())
            if at > len(symbol):
                return ""
            if _ARGUMENTS not in open_kinds:
                name = symbol[length.end() : at]
        else:
            letter = symbol[at]
            if letter in _OPENS or letter == _ARGUMENTS:
                open_kinds.append(letter)
            elif letter == _CLOSES and open_kinds:
                open_kinds.pop()
            at += 1
    return name
