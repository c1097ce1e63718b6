"""Finds the type that a kernel's body casts a buffer's elements to, and functions that limit their domain."""

import re
from collections.abc import Mapping

from warpsmith.domain.dtype import Dtype
from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.lexing.tokens import blank

_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|restrict|__restrict__|__restrict|(?:__)?(?:global|constant))\b"
)
_PARTIAL = r"\b(?:__|native_|half_|fast_|std::)?(?:r?sqrt|log(?:2|10)?|pow[rn]?)f?\s*\(\s*"
"""The beginning of a call of a function that is no number for negative arguments, up to its first one."""


def cast_types(body: str, name: str, types: Mapping[str, str]) -> list[tuple[Dtype, int]]:
    """Element types and lanes that a body casts a pointer to, in its order, each once.

    Args:
        types: meanings of the kernel's own type names.
    """
    text, pointer = blank(body), re.escape(name)
    of_c = rf"\(([\w\s:]+)\*[\s\w]*\)\s*\(?\s*{pointer}\b"
    of_cpp = rf"\b(?:reinterpret|static)_cast\s*<([\w\s:]+)\*[\s\w]*>\s*\(\s*{pointer}\b"
    places = sorted((m.start(), m.group(1)) for p in (of_c, of_cpp) for m in re.finditer(p, text))
    kinds = [element_type(" ".join(_QUALIFIERS.sub(" ", t).split()), types) for _, t in places]
    return [(dtype, lanes) for dtype, lanes in dict.fromkeys(kinds) if dtype is not None]


def is_under_root(body: str, name: str) -> bool:
    """True if a body takes a root, a logarithm or a power of a buffer's element itself."""
    text, pointer = blank(body), re.escape(name)
    element = rf"{pointer}\s*\[[^;\]]*\]\s*"
    values = re.findall(rf"\b(?:float|double|half|auto|T)\s+(\w+)\s*=\s*{element};", text)
    named = "|".join((element, *(rf"{re.escape(v)}\s*" for v in values)))
    return re.search(rf"{_PARTIAL}(?:{named})[,)]", text) is not None
