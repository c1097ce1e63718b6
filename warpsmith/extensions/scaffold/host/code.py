"""Host code as far as launches depend on it: blocks, macros, functions, and what each variable is set to."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from warpsmith.extensions.scaffold.host.events import Event, events_of
from warpsmith.extensions.scaffold.host.expressions import is_float_type, split_list
from warpsmith.extensions.scaffold.host.regions import Header, Region, regions_of
from warpsmith.source.lexing.tokens import Token, tokenise
from warpsmith.source.tree.work_limit import spend

_LONGEST_LAUNCH = 4000


@dataclass(frozen=True)
class Callable:
    """A macro or function of one expression."""

    parameters: tuple[str, ...]
    body: tuple[Token, ...]
    gives: str = ""
    """`int` or `float` for a function; empty for a macro."""
    float_parameters: frozenset[str] = frozenset()


@dataclass
class HostCode:
    """Text of host code, indexed. `at` is always an index of `items`."""

    name: str
    text: str
    items: list[Token] = field(default_factory=list)
    regions: tuple[Region, ...] = ()
    functions: tuple[Region, ...] = ()
    events: dict[str, list[Event]] = field(default_factory=dict)
    macros: dict[str, set[str]] = field(default_factory=dict)
    """Values of object-like macros, all of a name."""
    callables: dict[str, list[Callable]] = field(default_factory=dict)
    closers: dict[int, int] = field(default_factory=dict)

    def line(self, at: int) -> int:
        """Line of a token, from 1."""
        return self.text.count("\n", 0, self.items[at].start) + 1

    def function(self, at: int) -> Region | None:
        """The outermost function around a place."""
        found = bisect_left(self.functions, at, key=lambda r: r.start) - 1
        region = self.functions[found] if found >= 0 else None
        return region if region is not None and region.end >= at else None

    def around(self, at: int) -> list[Region]:
        """Regions around a place within its function, outermost first."""
        function = self.function(at)
        if function is None:
            return []
        begin = bisect_left(self.regions, function.start, key=lambda r: r.start)
        end = bisect_left(self.regions, at + 1, key=lambda r: r.start)
        spend(max(1, end - begin))
        return [r for r in self.regions[begin:end] if r.start <= at <= r.end]


def read_host_code(name: str, text: str, launching: str) -> HostCode:
    """The index of a text.

    Args:
        launching: macros that use this name are expanded where they stand in functions.
    """
    tokens = tokenise(text)
    code = HostCode(name, text)
    _read_macros(code, tokens.items)
    code.items = list(_expanded(tokens.items, _launching(tokens.items, launching)))
    spend(len(code.items))
    code.closers = _closers(code.items)
    code.regions, code.functions, headers = regions_of(code.items, code.closers)
    changing = {h.name for h in headers if _changes_arguments(h)}
    for variable, event in events_of(code.items, code.closers, changing):
        if code.function(event.at) is not None or event.is_declaration:
            code.events.setdefault(variable, []).append(event)
    for header in headers:
        _read_function(code, header)
    for events in code.events.values():
        events.sort(key=lambda e: e.at)
    return code


def _changes_arguments(header: Header) -> bool:
    parts = ([t.text for t in p] for p in split_list(header.parameters))
    return any("&" in words and "const" not in words for words in parts)


def _read_function(code: HostCode, header: Header) -> None:
    """Declare a function's parameters and template parameters, and keep it if it is one expression."""
    names: list[str] = []
    floats = set()
    for part in split_list(header.parameters):
        words = [t.text for t in part]
        words = words[: words.index("=")] if "=" in words else words
        name = next((t for t in reversed(words) if re.match(r"[A-Za-z_]", t)), "")
        names.append(name)
        if is_float_type(words[:-1]):
            floats.add(name)
        event = Event(header.body.start, True, type_words=tuple(words[:-1]))
        code.events.setdefault(name, []).append(event)
    for name in _template_names(header.before):
        code.events.setdefault(name, []).append(Event(header.body.start, True))
    body = code.items[header.body.start + 1 : header.body.end]
    if len(body) > 2 and body[0].text == "return" and [t.text for t in body].count(";") == 1:
        gives = "float" if is_float_type([t.text for t in header.before]) else "int"
        made = Callable(tuple(names), tuple(body[1:-1]), gives, frozenset(floats))
    else:
        made = Callable(tuple(names), (), "int")
    code.callables.setdefault(header.name, []).append(made)


def _template_names(before: Sequence[Token]) -> Iterator[str]:
    """Names of template parameters, with which a function may begin."""
    if before and before[0].text == "template":
        for here, following in pairwise(before):
            if here.kind == "name" and following.text in (",", ">", "="):
                yield here.text


def _closers(items: Sequence[Token]) -> dict[int, int]:
    """The index of each closing bracket by that of the opening one."""
    found: dict[int, int] = {}
    waiting: list[int] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    for n, token in enumerate(items):
        if token.text in ("(", "[", "{"):
            waiting.append(n)
        elif token.text in pairs:
            while waiting and items[waiting[-1]].text != pairs[token.text] and token.text == "}":
                waiting.pop()
            if waiting and items[waiting[-1]].text == pairs[token.text]:
                found[waiting.pop()] = n
    return found


def _read_macros(code: HostCode, items: Sequence[Token]) -> None:
    for token in items:
        if token.kind != "directive" or token.text != "define":
            continue
        plain = re.match(r"(\w+)(?:\s+(.*))?$", token.rest)
        called = re.match(r"(\w+)\(([\w\s,]*)\)\s*(.*)$", token.rest)
        if plain is not None:
            code.macros.setdefault(plain.group(1), set()).add(plain.group(2) or "")
        elif called is not None:
            names = tuple(p.strip() for p in called.group(2).split(",") if p.strip())
            found = Callable(names, tokenise(called.group(3)).items)
            code.callables.setdefault(called.group(1), []).append(found)


def _launching(items: Sequence[Token], name: str) -> dict[str, tuple[tuple[str, ...] | None, list[Token]]]:
    """Parameters and tokens of macros that launch the kernel; None for those without a parameter list."""
    found: dict[str, tuple[tuple[str, ...] | None, list[Token]]] = {}
    seen: set[str] = set()
    for token in items:
        match = re.match(r"(\w+)(?:\(([^()]*)\))?(?=\W)(.*)$", token.rest)
        if token.kind != "directive" or token.text != "define" or match is None:
            continue
        if match.group(1) in seen:
            found.pop(match.group(1), None)  # which definition is meant depends on the place
            continue
        seen.add(match.group(1))
        is_launch = "<<<" in token.rest or "aunchKernel" in token.rest
        if is_launch and len(token.rest) <= _LONGEST_LAUNCH and re.search(rf"\b{name}\b", token.rest):
            listed = match.group(2)
            names = None if listed is None else tuple(p.strip() for p in listed.split(","))
            body = [t for t in tokenise(match.group(3)).items if t.kind != "directive"]
            found[match.group(1)] = (names, body)
    return found


def _expanded(
    items: Sequence[Token], macros: dict[str, tuple[tuple[str, ...] | None, list[Token]]]
) -> Iterator[Token]:
    """The tokens with these macros expanded; all tokens of an expansion start where the macro's name does."""
    n = 0
    while n < len(items):
        token = items[n]
        names, body = macros.get(token.text, (None, []))
        if token.kind != "name" or not body:
            yield token
            n += 1
            continue
        given: dict[str, Sequence[Token]] = {}
        n += 1
        if names is not None:
            end = _closing(items, n)
            if end == n:
                yield token
                continue
            parts = split_list(items[n + 1 : end])
            given = dict(zip(names, parts, strict=False))
            if names and names[-1] == "..." and len(parts) >= len(names):
                commas = sum(len(p) + 1 for p in parts[: len(names) - 1])
                given["__VA_ARGS__"] = items[n + 1 + commas : end]
            n = end + 1
        for part in body:
            for t in given.get(part.text, (part,)):
                spend(1)
                yield Token(t.kind, t.text, token.start, t.rest)


def _closing(items: Sequence[Token], at: int) -> int:
    """Index of the bracket that closes the one at `at`; `at` if there is none near."""
    depth = 0
    for n in range(at, min(at + _LONGEST_LAUNCH, len(items))):
        depth += (items[n].text == "(") - (items[n].text == ")")
        if depth <= 0:
            return n
    return at
