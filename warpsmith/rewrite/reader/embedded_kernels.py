"""Kernel sources embedded in host code: in string literals, or in a macro that makes a string."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from warpsmith.rewrite.reader.tokens import blank

_RAW = r'(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\((?P<raw>.*?)\)(?P=mark)"'
_PLAIN = r'"(?P<plain>(?:\\.|[^"\\\n])*)"'
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_PIECE = re.compile(rf"{_COMMENT}|{_RAW}|{_PLAIN}|'(?:\\.|[^'\\\n])'", re.S)
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_WORDS = frozenset(("if", "for", "while", "switch", "return", "sizeof", "defined", "__attribute__"))


@dataclass(frozen=True)
class Embedded:
    """A device source inside of another file."""

    text: str
    line: int
    """First line, from 1."""
    macro: str = ""
    """Macro that makes a string of it; empty for literals."""


def embedded_sources(text: str, markers: frozenset[str]) -> tuple[Embedded, ...]:
    """Every stretch of kernel source that a file holds as text, in order.

    Args:
        markers: words that make a function a kernel.
    """
    kernel = re.compile(rf"\b(?:{'|'.join(map(re.escape, markers))})\b[^;{{}}]*\(")
    found = [e for e in (*_literals(text), *_stringified(text)) if kernel.search(e.text)]
    return tuple(sorted(found, key=lambda e: e.line))


def _literals(text: str) -> Iterator[Embedded]:
    """String literals, those that follow one another joined as a compiler does."""
    parts: list[str] = []
    start = end = 0
    for match in _PIECE.finditer(text):
        if match.group().startswith(("//", "/*")):
            continue
        value = _value(match)
        between = re.sub(_COMMENT, "", text[end : match.start()], flags=re.S)
        if parts and (value is None or between.strip(" \t\r\n\\")):
            yield Embedded("".join(parts), text.count("\n", 0, start) + 1)
            parts = []
        if value is not None:
            start = match.start() if not parts else start
            parts.append(value)
            end = match.end()
    if parts:
        yield Embedded("".join(parts), text.count("\n", 0, start) + 1)


def _value(match: "re.Match[str]") -> str | None:
    """Value of a string literal; None for a character literal."""
    if match.group("raw") is not None:
        return match.group("raw")
    if match.group("plain") is None:
        return None
    try:
        value = ast.literal_eval(f'"{match.group("plain")}"')
    except (SyntaxError, ValueError):
        return match.group("plain")
    return str(value)


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
