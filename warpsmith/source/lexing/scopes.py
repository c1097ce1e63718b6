"""Namespaces around a token."""

import re
from collections.abc import Iterator

from warpsmith.source.lexing.brackets import joined
from warpsmith.source.lexing.tokens import Token, Tokens

EXTERN_C = "extern C"
"""Entry for an `extern "C"` block among the namespaces."""

Scope = tuple[str | None, ...]
"""Namespaces, outermost first; None for the braces of a function, a type or an initialiser."""


def scopes(tokens: Tokens) -> Iterator[tuple[int, Scope]]:
    """The index of every name and directive, with the scope around it.

    Every branch of a conditional starts in the scope in which the first one started.
    """
    scope: list[Scope] = []
    saved: list[list[Scope]] = []
    recent: list[Token] = []
    for at, token in enumerate(tokens.items):
        if token.kind == "directive":
            scope = _in_branch(token.text, scope, saved)
        elif token.text == "{":
            scope.append(_opened(recent))
        elif token.text == "}" and scope:
            scope.pop()
        if token.text in ("{", "}", ";"):
            recent = []
        elif token.kind != "directive":
            recent.append(token)
        if token.kind in ("name", "directive"):
            yield at, tuple(name for names in scope for name in names)


def _in_branch(keyword: str, scope: list[Scope], saved: list[list[Scope]]) -> list[Scope]:
    """The scope behind a preprocessor line; `saved` holds the scopes in front of the conditionals around."""
    if keyword in ("if", "ifdef", "ifndef"):
        saved.append(list(scope))
    elif keyword in ("elif", "else") and saved:
        return list(saved[-1])
    elif keyword == "endif" and saved:
        saved.pop()
    return scope


def namespaces(scope: Scope) -> tuple[str, ...]:
    """The named scopes around, without `extern "C"` and the braces of functions and types."""
    return tuple(s for s in scope if s is not None and s != EXTERN_C)


def _opened(before: list[Token]) -> Scope:
    """The scope opened by a brace after these tokens; an anonymous namespace adds no name."""
    words = [t.text for t in before]
    if len(before) >= 2 and before[-2].text == "extern" and before[-1].kind == "string":
        return (EXTERN_C,)
    if "namespace" not in words:
        return (None,)
    named = joined(before[words.index("namespace") + 1 :])
    return tuple(re.findall(r"\w+", re.sub(r"\[\[.*?\]\]|__attribute__\(\(.*?\)\)|\binline\b", "", named)))
