"""A source with its own macros replaced by what they stand for."""

import re
from collections.abc import Mapping

from warpsmith.source.lexing.tokens import blank, directives
from warpsmith.source.macros.macro_expansion import Expander, Macro, Stuck, definition, uses_of

_STATEMENTS = re.compile(r"[;{}#\"]")
_LONGEST = 400
_MOST_GROWTH = 4


def expanded(text: str, more: tuple[str, ...] = (), given: Mapping[str, str] | None = None) -> str:
    """The text with macros that are defined once, in this text or in one of its headers, put in place.

    Comments become spaces. Macros of several statements stay as they are. What is defined in a branch counts:
    this is for guesses; `written_out` is for proofs.

    Args:
        more: texts of headers.
        given: macros given to the compiler.
    """
    plain = blank(text)
    macros = _defined_once((plain, *map(blank, more)), given or {})
    if not macros:
        return plain
    parts, at = [], 0
    for d in directives(plain):
        parts += [_replaced(plain[at : d.start], macros), d.text]
        at = d.end
    parts.append(_replaced(plain[at:], macros))
    whole = "".join(parts)
    return whole if len(whole) <= len(plain) * _MOST_GROWTH + _LONGEST else plain


def _defined_once(texts: tuple[str, ...], given: Mapping[str, str]) -> dict[str, Macro]:
    """Short macros with one definition, without those of several statements."""
    found: dict[str, Macro | None] = {name: Macro(None, value) for name, value in given.items()}
    for line in (d for text in texts for d in directives(text) if d.keyword == "define"):
        made = definition(line.text)
        if made is not None:
            found[made[0]] = made[1] if found.get(*made) == made[1] else None
    known = ((n, m) for n, m in found.items() if m is not None)
    return {n: m for n, m in known if 0 < len(m.body) < _LONGEST and not _STATEMENTS.search(m.body)}


def _replaced(text: str, macros: Mapping[str, Macro]) -> str:
    expander = Expander(macros, {})
    out, at = [], 0
    for use in uses_of(text, macros):
        if use.start() < at:
            continue
        try:
            end, made = expander.use_at(text, use.start())
        except Stuck:
            continue
        out += [text[at : use.start()], made]
        at = end
    return "".join([*out, text[at:]])
