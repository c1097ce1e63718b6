"""Names of a source that a macro would replace where no number can stand."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile

from warpsmith.domain.reserved_words import C_WORDS
from warpsmith.source.lexing.tokens import Token, Tokens, tokenise

_OF_MEMBERS = frozenset((".", "->", "::"))
_ENDS_DECLARATOR = frozenset(("=", ";", ",", ")", "[", "{", ">", ":"))
_QUALIFIERS = frozenset("* & const volatile static extern inline restrict".split())  # noqa: SIM905
_TYPES = frozenset(
    "auto bool char class double enum float half int long short signed struct typename union "  # noqa: SIM905
    "unsigned void".split()
)


def replaced_names(
    text: str, names: Collection[str], macros: Mapping[str, str]
) -> dict[str, tuple[str, int]]:
    """Kind and line of the first use of each name that is a declaration, a call or a member.

    Names that the text itself defines as macros are left out.

    Args:
        macros: all that are given to the compiler, with these names among them; branches depend on them.
    """
    found: dict[str, tuple[str, int]] = {}
    if not any(name in text for name in names):
        return found
    tokens = tokenise(text, macros)
    items = [tokens.items[n] for n in tokens.forward(0)]
    left = set(names) - set(_defined_anew(tokens, names))
    for at, item in enumerate(items):
        if (
            item.text in left
            and item.text not in found
            and item.kind == "name"
            and (kind := _kind(items, at))
        ):
            found[item.text] = kind, text.count("\n", 0, item.start) + 1
    return found


def _defined_anew(tokens: Tokens, names: Collection[str]) -> Iterator[str]:
    for at, token in enumerate(tokens.items):
        if token.kind == "directive" and token.text in ("define", "undef"):
            name = re.match(r"\w*", token.rest)[0]  # type: ignore[index]
            if name in names and tokens.are_taken(at):
                yield name


def _kind(items: Sequence[Token], at: int) -> str:
    after = items[at + 1].text if at + 1 < len(items) else ""
    before = items[at - 1].text if at else ""
    if before in _OF_MEMBERS or after in _OF_MEMBERS:
        return "member" if before in _OF_MEMBERS else "object"
    if after == "(":
        return "function"
    if after not in _ENDS_DECLARATOR:
        return ""
    is_declared = _declares(items[:at]) or (before == "," and _declares_several(items, at))
    return "variable" if is_declared else ""


def _declares(before: Sequence[Token]) -> bool:
    """True if tokens end with a type, such as `float *` or `Params const`."""
    rest = list(before[-8:])
    while rest and _qualifies(rest[-1].text):
        rest.pop()
    is_pointer = bool(before) and before[-1].text in ("*", "&")
    if not rest or rest[-1].kind != "name":
        return False
    # `a * n` multiplies, unless the first is known to be a type.
    return rest[-1].text in _TYPES or (not is_pointer and rest[-1].text not in C_WORDS)


def _declares_several(items: Sequence[Token], at: int) -> bool:
    """True for a declarator behind others, as `n` in `int i = f(0), n = 1`."""
    depth, start = 0, at
    while start and depth <= 0 and items[start - 1].text not in (";", "{", "}", "<"):
        start -= 1
        depth += (items[start].text in ("(", "[")) - (items[start].text in (")", "]"))
    if depth > 0 and (start == 0 or items[start - 1].text != "for"):
        return False
    begin = items[start + (depth > 0) : at]
    types = list(takewhile(lambda t: t.text in _TYPES or _qualifies(t.text), begin))
    return depth <= 1 and any(t.text in _TYPES for t in types)


def _qualifies(word: str) -> bool:
    return word in _QUALIFIERS or (word.startswith("__") and not word.endswith("_t"))
