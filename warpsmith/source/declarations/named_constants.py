"""Named integer constants of a source."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from warpsmith.domain.expressions import Expression
from warpsmith.errors import ExpressionError
from warpsmith.source.lexing.brackets import joined, split_commas
from warpsmith.source.lexing.number_literals import with_plain_integers
from warpsmith.source.lexing.scopes import scopes
from warpsmith.source.lexing.tokens import Tokens, tokenise

_DECLARED = re.compile(
    r"^(?:(?:static|inline|const|constexpr|__device__|__constant__|unsigned|signed) )*"
    r"(?:(?:std::)?u?int(?:8|16|32|64)?_t|(?:std::)?size_t|int|unsigned|uint|short"
    r"|long(?: long)?(?: int)?|auto)"
    r"(?: const)? (\w+)=(.*)$"
)


@dataclass(frozen=True)
class FoundConstant:
    """A name with an integer value fixed in the text."""

    name: str
    value: int
    kind: str
    """`macro` or `variable`."""
    line: int
    is_local: bool = False
    """True if it belongs to a function or a type instead of the file."""


def find_constants(text: str) -> tuple[FoundConstant, ...]:
    """Macros and constants of a source that are integers, or integer arithmetic on earlier ones."""
    tokens = tokenise(text)
    found: dict[str, FoundConstant] = {}
    values: dict[str, int] = {}
    for name, kind, value_text, start, is_local in _constant_texts(tokens):
        value = integer_value(value_text, values)
        if value is not None and name not in found:
            values[name] = value
            found[name] = FoundConstant(name, value, kind, text.count("\n", 0, start) + 1, is_local)
    return tuple(found.values())


def _constant_texts(tokens: Tokens) -> Iterator[tuple[str, str, str, int, bool]]:
    """Name, kind, value, position and locality of everything that may be an integer constant."""
    items = tokens.items
    for n, scope in scopes(tokens):
        token = items[n]
        if token.kind == "directive" and token.text == "define":
            macro = re.match(r"(\w+)\s+(\S.*)$", token.rest)
            if macro is not None:
                yield macro.group(1), "macro", macro.group(2), token.start, False
        elif token.text in ("constexpr", "const") and (n == 0 or items[n - 1].text not in ("(", ",", "<")):
            declared = list(takewhile(lambda t: t.text not in (";", "{", "}"), items[n : n + 60]))
            if any(t.kind == "directive" for t in declared):
                continue
            kind = ""
            for part in split_commas(declared):
                match = _DECLARED.match(_declarator(kind, joined(part)))
                if match is None:
                    break
                kind = "int"
                yield match.group(1), "variable", match.group(2).strip(), part[0].start, None in scope


def _declarator(kind: str, text: str) -> str:
    """A declarator after a comma, with the type of the first one."""
    return re.sub(r"\s*=\s*", "=", f"{kind} {text}".strip(), count=1)


def integer_value(text: str, known: Mapping[str, int]) -> int | None:
    """The value of integer arithmetic over literals and known names; None for anything else."""
    plain = with_plain_integers(text)
    shift = re.fullmatch(r"\(? ?(\w+) ?<< ?(\w+) ?\)?", plain)
    if shift is not None:
        plain = f"{shift.group(1)} * 2 ** {shift.group(2)}"
    try:
        value = Expression(plain.replace("/", "//")).evaluate(known)
    except ExpressionError:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
