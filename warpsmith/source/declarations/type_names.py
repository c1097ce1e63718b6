"""Names of types that a source declares: aliases and enumerations."""

from collections.abc import Iterator
from itertools import takewhile

from warpsmith.source.lexing.brackets import joined
from warpsmith.source.lexing.scopes import namespaces, scopes
from warpsmith.source.lexing.tokens import Token, tokenise


def enumerations(text: str) -> dict[str, str]:
    """Enumerations of a source with their namespaces, by their own names."""
    tokens = tokenise(text)
    found: dict[str, str] = {}
    for at, scope in scopes(tokens):
        if tokens.items[at].text == "enum" and None not in scope:
            words = [t for t in tokens.items[at + 1 : at + 3] if t.text not in ("class", "struct")]
            if words and words[0].kind == "name":
                found.setdefault(words[0].text, "::".join([*namespaces(scope), words[0].text]))
    return found


def type_aliases(items: tuple[Token, ...]) -> Iterator[tuple[str, str]]:
    """Type names of the file with only one meaning."""
    found: dict[str, set[str]] = {}
    for n, token in enumerate(items):
        if token.text not in ("using", "typedef"):
            continue
        words = list(takewhile(lambda t: t.text not in (";", "{", "}", "("), items[n + 1 : n + 20]))
        end = items[n + 1 + len(words) : n + 2 + len(words)]
        if end and end[0].text != ";":
            continue  # the type of a function or of a struct, or something longer
        if token.text == "using" and len(words) > 2 and words[1].text == "=":
            found.setdefault(words[0].text, set()).add(joined(words[2:]).removeprefix("typename "))
        elif token.text == "typedef" and len(words) > 1 and words[-1].kind == "name":
            found.setdefault(words[-1].text, set()).add(joined(words[:-1]))
    return ((name, next(iter(kinds))) for name, kinds in found.items() if len(kinds) == 1)
