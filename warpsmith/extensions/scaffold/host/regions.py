"""Blocks, loops, branches and functions of host code."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warpsmith.source.lexing.tokens import Token
from warpsmith.source.tree.work_limit import spend

_TYPES = frozenset(("namespace", "class", "struct", "union", "enum", "extern"))
_LOOPS = ("for", "while", "do")
_ATTRIBUTES = frozenset(
    ("__attribute__", "__launch_bounds__", "decltype", "alignas", "__align__", "noexcept")
)


@dataclass(frozen=True)
class Region:
    """Tokens from `start` to `end`, both included."""

    start: int
    end: int
    kind: str
    """`block`, `loop`, `branch`, or `function` (from its brace on)."""
    body: int = 0
    """First token behind the header of a loop."""


@dataclass(frozen=True)
class Header:
    """Head of a function: name, parameter list, and the tokens before."""

    name: str
    parameters: tuple[Token, ...]
    before: tuple[Token, ...]
    """Tokens from the start of its declaration to its name."""
    body: Region


def regions_of(
    items: Sequence[Token], closers: Mapping[int, int]
) -> tuple[tuple[Region, ...], tuple[Region, ...], list[Header]]:
    """All regions, the outermost functions, and the functions' headers, each in order."""
    headers = list(_headers(items, closers))
    functions = tuple(h.body for h in headers)
    found = [
        *functions,
        *_controls(items, closers),
        *_branches(items),
        *_cases(items, closers),
        *(Region(n, closers[n], "block") for n, t in enumerate(items) if t.text == "{" and n in closers),
    ]
    return tuple(sorted(found, key=lambda r: (r.start, -r.end))), functions, headers


def _headers(items: Sequence[Token], closers: Mapping[int, int]) -> Iterator[Header]:
    begin = n = 0
    while n < len(items):
        token = items[n]
        if token.text in (";", "}") or token.kind == "directive":
            begin = n + 1
        elif token.text == "{" and n in closers:
            header = _header(items, closers, begin, n)
            if header is not None:
                yield header
                n = closers[n]
            elif not any(t.text in _TYPES for t in items[begin:n]):
                n = closers[n]  # an initialiser
            begin = n + 1
        n += 1


def _header(items: Sequence[Token], closers: Mapping[int, int], begin: int, brace: int) -> Header | None:
    n = begin
    if items[n].text == "template":
        while n < brace and items[n].text != ">":
            n += 1
    for at in range(n, brace):
        spend(1)
        if items[at].text in ("=", "namespace", "class", "struct", "union", "enum"):
            return None
        named = at > begin and items[at - 1].kind == "name" and items[at - 1].text not in _ATTRIBUTES
        if items[at].text == "(" and named and closers.get(at, brace) < brace:
            return Header(
                items[at - 1].text,
                tuple(items[at + 1 : closers[at]]),
                tuple(items[begin : at - 1]),
                Region(brace, closers[brace], "function"),
            )
    return None


def _controls(items: Sequence[Token], closers: Mapping[int, int]) -> Iterator[Region]:
    for n, token in enumerate(items):
        if token.kind != "name" or token.text not in ("if", "else", "switch", "catch", *_LOOPS):
            continue
        body = n + 1
        while body < len(items) and items[body].text in ("constexpr",):
            body += 1
        if token.text not in ("else", "do") and body in closers:
            body = closers[body] + 1
        kind = "loop" if token.text in _LOOPS else "branch"
        yield Region(n, _end(items, closers, body), kind, body)


def _end(items: Sequence[Token], closers: Mapping[int, int], at: int) -> int:
    """The last token of a statement."""
    while at < len(items):
        spend(1)
        text = items[at].text
        if text == "{":
            return closers.get(at, at)
        if text in (";", "}"):
            return at
        at = closers.get(at, at) + 1
    return len(items) - 1


def _branches(items: Sequence[Token]) -> Iterator[Region]:
    """Branches of the preprocessor."""
    waiting: list[int] = []
    for n, token in enumerate(items):
        if token.kind != "directive":
            continue
        if token.text in ("elif", "else", "endif") and waiting:
            yield Region(waiting.pop(), n, "branch")
        if token.text in ("if", "ifdef", "ifndef", "elif", "else"):
            waiting.append(n)


def _cases(items: Sequence[Token], closers: Mapping[int, int]) -> Iterator[Region]:
    """Cases of switches; each ends where the next one begins."""
    waiting: list[tuple[int, int]] = []
    ends: list[int] = []
    for n, token in enumerate(items):
        if token.text == "{":
            ends.append(closers.get(n, n))
        elif token.text == "}" and ends:
            ends.pop()
            while waiting and waiting[-1][1] <= n:
                yield Region(waiting.pop()[0], n, "branch")
        elif token.kind == "name" and token.text in ("case", "default") and ends:
            if waiting and waiting[-1][1] == ends[-1]:
                yield Region(waiting.pop()[0], n - 1, "branch")
            waiting.append((n, ends[-1]))
