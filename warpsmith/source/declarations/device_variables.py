"""Variables of a CUDA source that lie on the device, and those that only a host program would fill."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from warpsmith.source.lexing.tokens import blank

_DECLARED = re.compile(r"\b__(?:constant|device)__\b(?:\s*(?:__align__|alignas)\s*\(\w*\))?([^;={}()]*)")
_DECLARATOR = re.compile(r"(\w+)\s*((?:\[[^\[\]]*\]\s*)*)$")
_QUALIFIERS = {"const", "static", "volatile", "extern", "__constant__", "__device__", "__managed__"}


@dataclass(frozen=True)
class DeviceVariable:
    """A `__constant__` or `__device__` variable."""

    name: str
    line: int
    """From 1."""
    type_text: str
    """Without qualifiers."""
    extents: tuple[str, ...]
    """Extents of an array as written; empty for other variables."""
    is_constant: bool
    has_value: bool
    """True for a variable with an initialiser."""


def device_variables(source: str) -> list[DeviceVariable]:
    """All variables, in order; in whatever branch of the preprocessor, and in whatever namespace."""
    text = blank(source)
    found: list[DeviceVariable] = []
    line, counted = 1, 0
    for match in _DECLARED.finditer(text):
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        found += _declared(match, text[match.end() : match.end() + 1], line)
    return found


def _declared(match: re.Match[str], end: str, line: int) -> Iterator[DeviceVariable]:
    if end not in (";", "=", "{"):
        return
    is_constant, kind = "__constant__" in match.group(), ""
    declarators = match.group(1).split(",")
    for n, text in enumerate(declarators):
        named = _DECLARATOR.search(text)
        if named is None:
            return
        words = [w for w in text[: named.start()].split() if w not in _QUALIFIERS]
        kind = kind or " ".join(words)
        if not kind or "struct" in words[:1]:
            return
        extents = tuple(re.findall(r"\[\s*([^\[\]]*?)\s*\]", named.group(2)))
        has_value = end != ";" and n == len(declarators) - 1
        yield DeviceVariable(named.group(1), line, kind, extents, is_constant, has_value)


def unfilled_constants(source: str) -> list[DeviceVariable]:
    """The `__constant__` variables that are used and have no initialiser."""
    if "__constant__" not in source:
        return []
    uses = Counter(re.findall(r"\w+", blank(source)))
    return [v for v in device_variables(source) if v.is_constant and not v.has_value and uses[v.name] > 1]
