"""A kernel's source with the macros written out that stand between a rule and what it needs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.lexing.conditionals import given_macros
from warpsmith.source.lexing.tokens import Directive, blank, directives
from warpsmith.source.macros.macro_expansion import (
    Expander,
    Macro,
    Stuck,
    definition,
    end_of_call,
    reached,
    uses_of,
)
from warpsmith.source.tree.conditional_text import OPENING, ConditionalGroup, KnownMacros, whole_numbers
from warpsmith.source.tree.syntax_tree import Edit, Source, apply_edits, find
from warpsmith.source.tree.work_limit import spend

_OF_COMPILERS = re.compile(r"_|cl_|CL_|POCL|CLK_|(?:unix|linux|NULL|WIN32|APPLE)\b")
"""Beginnings of the names of macros that a compiler may define by itself."""
_GUARD = re.compile(r"\w+_(?:H|HH|HPP|CL|CLH|CUH|INCLUDED|GUARD)_*", re.I)
_OF_RULES = "WS_"
_THREADS = r"\b(?:threadIdx|blockIdx|blockDim|gridDim|get_\w+_(?:id|size|offset)|get_num_groups)\b"
_HIDING = re.compile(rf"\[|->|(?<![=!<>])=(?!=)|\+\+|--|[;{{}}&?]|{_THREADS}|(?:^|[-+(,=*/%?:&|<>])\s*\*")
"""Text that a rule has to see: memory accesses, coordinates, assignments, statements."""
_CALL = re.compile(r"(?!(?:sizeof|defined)\b)[A-Za-z_]\w*\s*\(")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_MOST_ROUNDS = 4
_MOST_GROWTH = 4


@dataclass(frozen=True)
class WrittenOut:
    """A text in which macros are written out."""

    text: str
    hid: bool = False
    """True if one of these macros did more than arithmetic on its arguments."""
    brought: Mapping[str, str] = field(default_factory=dict)
    """Words that no function had before, with the macro that brought them."""


def written_out(source: Source, options: Iterable[str], own: Iterable[str]) -> WrittenOut:
    """The source's text with macros written out in the kernel and in the functions that it calls.

    Macros that stand for numbers and names stay, and so does every macro that may be defined elsewhere, or in
    two ways. Lines keep their numbers.

    Args:
        options: of the compiler; the macros that they define stay.
        own: other macros that stay, such as parameters.
    """
    hid = False
    text = written = source.text
    brought: dict[str, str] = {}
    if "define" not in text and not any("define" in t for t in source.library):
        return WrittenOut(text)
    given = given_macros(options)
    for _ in range(_MOST_ROUNDS):
        writer = _MacroWriter(source, given, frozenset(own))
        edits = list(writer.edits())
        hid |= writer.hid
        brought = writer.brought | brought
        made = apply_edits(source.text, edits)
        if not edits or len(made) > len(text) * _MOST_GROWTH + 4000:
            break
        written = made
        if not writer.brought.keys() & source.functions.keys():
            break
        source = Source(made, source.backend, source.entry, source.library)
    return WrittenOut(written, hid, brought)


@dataclass
class _MacroGroup(ConditionalGroup):
    """A conditional that is being read, with the macros that its branches change."""

    before: dict[str, Macro | None] = field(default_factory=dict)
    """Macros before the conditional."""
    changed: set[str] = field(default_factory=set)
    """Macros that a branch defines of which nobody knows whether it is taken."""


class _MacroReading:
    """Follows the macros of a text; None stands for a macro that may be one or another, or none."""

    def __init__(self, text: str, lines: Sequence[Directive], known: KnownMacros) -> None:
        self.macros: dict[str, Macro | None] = {}
        self.twice: set[str] = set()
        """Macros that are defined more than once."""
        self._end = len(text)
        self._directives = lines
        self._known = known
        self._groups: list[_MacroGroup] = []

    def parts(self) -> Iterator[tuple[int, int]]:
        """Parts between the directives; `macros` are those that hold there.

        Parts that are certainly not compiled are among them, because rules read them too.
        """
        begin = 0
        for d in self._directives:
            yield begin, d.start
            begin = d.end
            if d.keyword in OPENING:
                group = _MacroGroup.opened(d, self._known, is_live=self._is_live())
                group.before = dict(self.macros)
                self._groups.append(group)
            elif d.keyword in ("elif", "else") and self._groups:
                self._left(self._groups[-1])
                is_live = all(g.live for g in self._groups[:-1])
                self._groups[-1].enter(d, self._known, is_live=is_live)
            elif d.keyword == "endif" and self._groups:
                self._left(group := self._groups.pop())
                self.macros |= dict.fromkeys(group.changed)
            elif self._is_live():
                self._learnt(d)
        yield begin, self._end

    def _is_live(self) -> bool:
        return all(g.live for g in self._groups)

    def _left(self, group: _MacroGroup) -> None:
        """Leave a branch: what it defined may hold behind the conditional, and not in its other branches."""
        if not (group.is_open and group.live):
            return
        absent = object()
        names = self.macros.keys() | group.before.keys()
        group.changed |= {n for n in names if self.macros.get(n, absent) != group.before.get(n, absent)}
        self.macros = dict(group.before)

    def _learnt(self, directive: Directive) -> None:
        self._known.follow(directive, is_certain=not any(g.is_open for g in self._groups))
        if directive.keyword == "undef":
            self.macros.pop(directive.rest, None)
        found = definition(directive.text) if directive.keyword == "define" else None
        if found is not None:
            self.twice |= {found[0]} & self.macros.keys()
            self.macros[found[0]] = found[1]


class _MacroWriter:
    """The uses of macros in one text that are to be written out."""

    def __init__(self, source: Source, given: Mapping[str, str], own: frozenset[str]) -> None:
        self.hid = False
        self.brought: dict[str, str] = {}
        self._there: set[str] = set()
        self._source = source
        self._given = given
        self._own = own | given.keys()
        # One character a byte, so that places are those of the tree.
        self._text = source.data.decode("latin-1")
        self._masked = blank(self._text)
        self._directives = tuple(directives(self._text))
        self._headers = _of_headers(source, given, self._own)
        self._names = {v.name for v in source.variables}

    def edits(self) -> Iterator[Edit]:
        """Edits of the source's text."""
        ranges = [_range_of(f) for f in self._source.reachable]
        self._there = {w for a, b in ranges for w in _WORD.findall(self._masked[a:b])}
        last = max((d.end for d in self._directives if d.keyword == "include"), default=0)
        absent = dict.fromkeys(self._headers)
        reading = _MacroReading(self._text, self._directives, self._known())
        for begin, end in reading.parts():
            inside = [(max(begin, a), min(end, b)) for a, b in ranges if a < end and begin < b]
            if inside:
                headers = self._headers if begin >= last else absent
                yield from self._written(sorted(inside), {**headers, **reading.macros})

    def _known(self) -> KnownMacros:
        opencl = self._source.backend.language.is_opencl_c

        guard = _guard_of(self._directives)

        def ours(name: str) -> bool:
            return name == guard or (opencl and name not in self._headers and not _may_be_given(name))

        return KnownMacros(whole_numbers(self._given), set(self._own), ours)

    def _written(self, ranges: list[tuple[int, int]], macros: Mapping[str, Macro | None]) -> Iterator[Edit]:
        wanted = {n: m for n, m in macros.items() if m is not None and self._is_wanted(n, macros)}
        kept = {n: m for n, m in macros.items() if n not in wanted} | dict.fromkeys(self._own)
        called = {n for n, m in kept.items() if m is None or m.parameters is not None}
        expander = Expander(wanted, kept)
        for begin, end in ranges:
            text, masked = self._text[:end], self._masked[:end]
            at = begin
            for use in uses_of(masked[begin:end], {*wanted, *called}):
                start, stop = begin + use.start(), begin + use.end()
                if start < at:
                    continue
                at = end_of_call(masked, stop) or stop
                if use.group() not in wanted:
                    continue
                try:
                    at, made = expander.use_at(text, start)
                except Stuck:
                    continue
                yield self._edit(use.group(), start, at, made, macros)

    def _edit(self, name: str, start: int, end: int, made: str, macros: Mapping[str, Macro | None]) -> Edit:
        """Edit that writes a use of a macro out; notes whether the macro hid something and brought words."""
        spend(len(made))
        self.hid |= self._hides(name, macros)
        new = (w for w in _WORD.findall(made) if w not in self._there)
        self.brought = dict.fromkeys(new, name) | self.brought
        lines = self._text.count("\n", start, end)
        return Edit(start, end, made.encode("latin-1").decode() + "\n" * lines)

    def _is_wanted(self, name: str, macros: Mapping[str, Macro | None]) -> bool:
        """True for a macro that a rule has to look through."""
        macro = macros[name]
        if macro is None or not macro.is_writable or name in self._own or name.startswith(_OF_RULES):
            return False
        if macro.parameters is not None:
            return True
        if _is_type(macro.body):
            return True
        return bool(_CALL.search(macro.body)) or self._hides(name, macros)

    def _hides(self, name: str, macros: Mapping[str, Macro | None]) -> bool:
        """True for a macro that does more than arithmetic on its arguments, maybe by another one."""

        def words_of(name: str) -> frozenset[str]:
            macro = macros.get(name)
            return frozenset() if macro is None else macro.words.difference(macro.parameters or ())

        names = reached({name}, words_of)
        used = filter(None, map(macros.get, names))
        hides = any(_HIDING.search(macro.body) for macro in used)
        return hides or any(not self._names.isdisjoint(words_of(n)) for n in names)


def _may_be_given(name: str) -> bool:
    """True for a name that a compiler may define by itself; an include guard is none."""
    return _OF_COMPILERS.match(name) is not None and _GUARD.fullmatch(name) is None


def _is_type(body: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w ]*", body) is not None and element_type(body, {})[0] is not None


def _of_headers(source: Source, given: Mapping[str, str], own: frozenset[str]) -> dict[str, Macro | None]:
    """Macros of the source's headers; None for those that are defined in more than one place."""
    if not source.library:
        return {}
    texts = [source.data.decode("latin-1"), *(t.encode().decode("latin-1") for t in source.library)]
    lines = [tuple(directives(text)) for text in texts]
    names = [_defined_in(listed) for listed in lines]
    places = Counter(name for own_names in names for name in own_names)
    found: dict[str, Macro | None] = {}
    for text, listed, here in list(zip(texts, lines, names, strict=True))[1:]:
        # A name that another text defines may be there before this one.
        ours = {n for n in here if places[n] == 1 and not _may_be_given(n)} | {_guard_of(listed)}
        reading = _MacroReading(text, listed, KnownMacros(whole_numbers(given), set(own), ours.__contains__))
        for _ in reading.parts():
            pass
        for name, macro in reading.macros.items():
            found[name] = macro if places[name] == 1 and name not in reading.twice else None
    return found


def _defined_in(lines: Sequence[Directive]) -> set[str]:
    changes = (_WORD.match(d.rest) for d in lines if d.keyword in ("define", "undef"))
    return {m.group() for m in changes if m is not None}


def _range_of(function: Node) -> tuple[int, int]:
    """A function's parameters and body."""
    listed = find(function, "parameter_list")[:1]
    return (listed[0].start_byte if listed else function.start_byte), function.end_byte


def _guard_of(lines: Sequence[Directive]) -> str:
    """The macro of a text's include guard; empty if it has none."""
    if [d.keyword for d in lines[:2]] == ["ifndef", "define"] and lines[0].rest == lines[1].rest:
        return lines[0].rest
    return ""
