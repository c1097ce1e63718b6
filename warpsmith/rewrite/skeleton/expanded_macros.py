"""A source with its own macros replaced by what they stand for."""

import re
from collections.abc import Mapping

from warpsmith.rewrite.reader.tokens import blank

_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)\n]*\))?((?:[^\n]*\\\n)*[^\n]*)", re.M)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_STATEMENTS = re.compile(r"[;{}#\"]")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_DEEPEST = 6
_LONGEST = 400
_MOST_GROWTH = 4


def expanded(text: str, more: tuple[str, ...] = (), given: Mapping[str, str] | None = None) -> str:
    """The text with macros that are defined once, in this text or in one of its headers, put in place.

    Comments become spaces. Macros of several statements stay as they are.

    Args:
        more: texts of headers.
        given: macros given to the compiler.
    """
    plain = blank(text)
    found: dict[str, tuple[tuple[str, ...] | None, str] | None] = {}
    for name, value in (given or {}).items():
        found[name] = (None, value)
    for source in (plain, *(blank(t) for t in more)):
        for m in _DEFINITION.finditer(source):
            listed = None if m.group(2) is None else tuple(w.strip() for w in m.group(2)[1:-1].split(","))
            body = " ".join(m.group(3).replace("\\\n", " ").split())
            known = (listed, body)
            found[m.group(1)] = known if found.get(m.group(1), known) == known else None
    macros = {
        n: m for n, m in found.items() if m and m[1] and len(m[1]) < _LONGEST and not _STATEMENTS.search(m[1])
    }
    if not macros:
        return plain
    parts, at = [], 0
    for directive in _DIRECTIVE.finditer(plain):
        parts.append(_replaced(plain[at : directive.start()], macros, 0, len(plain) * _MOST_GROWTH))
        parts.append(directive.group())
        at = directive.end()
    parts.append(_replaced(plain[at:], macros, 0, len(plain) * _MOST_GROWTH))
    whole = "".join(parts)
    return whole if len(whole) <= len(plain) * _MOST_GROWTH + _LONGEST else plain


def _replaced(
    text: str, macros: Mapping[str, tuple[tuple[str, ...] | None, str]], depth: int, most: int
) -> str:
    if depth > _DEEPEST or len(text) > most:
        return text
    out, at = [], 0
    for m in _WORD.finditer(text):
        if m.start() < at or m.group() not in macros or text[max(0, m.start() - 1) : m.start()] == ".":
            continue
        names, body = macros[m.group()]
        end = m.end()
        if names is not None:
            call = _arguments(text, end)
            if call is None or len(call[0]) != len(names):
                continue
            given, end = dict(zip(names, call[0], strict=True)), call[1]
            body = _put(body, given)
        fewer = {n: v for n, v in macros.items() if n != m.group()}
        out += [text[at : m.start()], _replaced(body, fewer, depth + 1, most)]
        at = end
    return "".join([*out, text[at:]])


def _put(body: str, given: Mapping[str, str]) -> str:
    """A macro's text with arguments in the place of its parameters."""
    return _WORD.sub(lambda w: f"({given[w.group()]})" if w.group() in given else w.group(), body)


def _arguments(text: str, at: int) -> tuple[list[str], int] | None:
    """Arguments of a call whose bracket follows, and where it ends."""
    opening = re.compile(r"\s*\(").match(text, at)
    if opening is None:
        return None
    depth, found, start = 1, [], opening.end()
    for n in range(opening.end(), min(len(text), opening.end() + 2000)):
        c = text[n]
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 or (depth == 1 and c == ","):
            found.append(text[start:n].strip())
            start = n + 1
        if depth == 0:
            return found, n + 1
    return None
