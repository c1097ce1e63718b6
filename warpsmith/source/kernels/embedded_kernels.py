"""Kernel sources embedded in host code: in string literals, or in a macro that makes a string."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from warpsmith.source.kernels.host_strings import host_strings
from warpsmith.source.lexing.tokens import blank

_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_WORDS = frozenset(("if", "for", "while", "switch", "return", "sizeof", "defined", "__attribute__"))


@dataclass(frozen=True)
class Embedded:
    """A device source inside of another file."""

    text: str
    line: int
    """Line of the file, from 1, at which the first line of `text` would stand."""
    macro: str = ""
    """Macro that makes a string of it; empty for literals."""


def embedded_sources(text: str, markers: frozenset[str]) -> tuple[Embedded, ...]:
    """Every stretch of kernel source that a file holds as text, in order.

    Args:
        markers: words that make a function a kernel.
    """
    kernel = re.compile(rf"\b(?:{'|'.join(map(re.escape, markers))})\b[^;{{}}]*\(")
    literals = (Embedded(s.text, s.line) for s in host_strings(text))
    found = [e for e in (*literals, *_stringified(text)) if kernel.search(e.text)]
    return tuple(sorted(found, key=lambda e: e.line))


def _stringified(text: str) -> Iterator[Embedded]:
    """Texts between the parentheses of a macro's call, outside of all braces."""
    masked = blank(text)
    masked = re.sub(
        r"^[ \t]*#[ \t]*define\b(?:[^\n]*\\\n)*[^\n]*", lambda m: _spaces(m.group()), masked, flags=re.M
    )
    at = 0
    while (call := _CALL.search(masked, at)) is not None:
        close = _closing(masked, call.end() - 1)
        inner = masked[call.end() : close]
        if call.group(1) in _WORDS or "{" not in inner:
            at = call.end()
            continue
        yield Embedded(text[call.end() : close], text.count("\n", 0, call.end()) + 1, call.group(1))
        at = close


def _spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for match in re.finditer(r"[()]", text[opening:]):
        depth += 1 if match.group() == "(" else -1
        if depth == 0:
            return opening + match.start()
    return len(text)
