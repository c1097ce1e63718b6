"""Names of a binary's variables without what a compiler derives from the source as a whole."""

import re

_NESTED = re.compile(r"_ZN(?:K)?(?=\d)")
_LENGTH = re.compile(r"[1-9]\d*")
_UNIT = re.compile(r"(_INTERNAL_|_GLOBAL__N__)\w+")


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
