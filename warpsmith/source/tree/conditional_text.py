"""Source with the conditionals resolved that known macros decide; the others stay as they are."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from warpsmith.source.lexing.conditionals import decided
from warpsmith.source.lexing.tokens import Directive, directives

OPENING = ("if", "ifdef", "ifndef")
_DEFINED = re.compile(r"\bdefined\b\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_NOT_FIRST = re.compile(r"!\s*\w+\s*[-+*%=<>!]")
"""A form that Python's `not` reads otherwise than C's `!`."""


class Unbalanced(Exception):
    """A conditional lacks its `#if` or its `#endif`."""


@dataclass
class KnownMacros:
    """Values and presence of macros at a place of the text, as far as they are known.

    Args:
        values: whole numbers of macros.
        present: names of macros that are defined.
        ours: True for a name that only this text and `present` can define.
    """

    values: dict[str, int]
    present: set[str]
    ours: Callable[[str], bool]
    unsure: set[str] = field(default_factory=set)
    """Names that a branch defines of which nobody knows whether it is taken."""

    def holds(self, directive: Directive) -> bool | None:
        """True if the branch of an `#if`, `#elif`, `#ifdef` or `#ifndef` is taken; None: not known."""
        if directive.keyword in ("ifdef", "ifndef"):
            there = self._is_defined(directive.rest)
            return None if there is None else there == (directive.keyword == "ifdef")
        condition, open_question = directive.rest, False
        if _NOT_FIRST.search(condition):
            return None

        def answer(match: re.Match[str]) -> str:
            nonlocal open_question
            there = self._is_defined(match.group(1) or match.group(2))
            open_question |= there is None
            return str(int(bool(there)))

        text = _DEFINED.sub(answer, condition)
        return None if open_question else decided(text, self.values.get)

    def follow(self, directive: Directive, *, is_certain: bool) -> None:
        """Follow a `#define` or `#undef`; one that may be reached or not leaves its name unsure."""
        found = re.match(r"(\w+)(?:\s+(.*))?$|(\w+)", directive.rest)
        if directive.keyword not in ("define", "undef") or found is None:
            return
        name, value = found.group(1) or found.group(3), found.group(2) or ""
        self.values.pop(name, None)
        if not is_certain:
            self.unsure.add(name)
            return
        self.unsure.discard(name)
        self.present.discard(name)
        if directive.keyword == "define":
            self.present.add(name)
            self.values |= whole_numbers({name: value})

    def _is_defined(self, name: str) -> bool | None:
        if name in self.unsure:
            return None
        return True if name in self.present else (False if self.ours(name) else None)


@dataclass
class ConditionalGroup:
    """A conditional that is being read."""

    is_open: bool
    """True if a condition so far was not decided."""
    over: bool
    """True if a branch was certainly taken."""
    live: bool
    """True if the present branch may be taken."""

    @classmethod
    def opened(cls, directive: Directive, known: KnownMacros, *, is_live: bool) -> Self:
        """The group that an `#if`, `#ifdef` or `#ifndef` opens.

        Args:
            is_live: False inside of a branch that is not taken.
        """
        taken = known.holds(directive) if is_live else False
        return cls(taken is None, taken is True or not is_live, taken is not False)

    def enter(self, directive: Directive, known: KnownMacros, *, is_live: bool) -> bool | None:
        """Go on to the branch of an `#elif` or `#else`; None if nobody knows whether it is taken."""
        if self.over or not is_live:
            self.live = False
            return False
        taken = True if directive.keyword == "else" else known.holds(directive)
        self.live, self.over = taken is not False, taken is True
        self.is_open |= taken is None
        return taken


def whole_numbers(macros: Mapping[str, str]) -> dict[str, int]:
    """Macros that stand for a decimal number, without a sign, suffix or leading zero."""
    return {name: int(v) for name, v in macros.items() if re.fullmatch(r"0|[1-9][0-9]*", v)}


def resolved(text: str, values: Mapping[str, int], present: set[str], ours: Callable[[str], bool]) -> str:
    """`text` without the branches that are certainly not taken, and without the lines that chose.

    Raises:
        Unbalanced: a conditional lacks its `#if` or its `#endif`.
    """
    known = KnownMacros(dict(values), set(present), ours)
    return "".join(_parts(text, known))


def _parts(text: str, known: KnownMacros) -> Iterator[str]:
    groups: list[ConditionalGroup] = []
    begin = 0
    for directive in directives(text):
        is_live = all(g.live for g in groups)
        if is_live:
            yield text[begin : directive.start]
        begin = directive.start
        if directive.keyword in OPENING:
            groups.append(group := ConditionalGroup.opened(directive, known, is_live=is_live))
            if group.is_open:
                yield directive.text + "\n"
        elif directive.keyword in ("elif", "else"):
            yield from _next(groups, directive, known)
        elif directive.keyword == "endif":
            yield from _closed(groups, directive)
        else:
            if is_live:
                known.follow(directive, is_certain=not any(g.is_open for g in groups))
            continue
        begin = min(directive.end + 1, len(text))
    if groups:
        raise Unbalanced("#endif is missing")
    yield text[begin:]


def _next(groups: list[ConditionalGroup], directive: Directive, known: KnownMacros) -> Iterator[str]:
    if not groups:
        raise Unbalanced(f"#{directive.keyword} without #if")
    was_open = groups[-1].is_open
    taken = groups[-1].enter(directive, known, is_live=all(g.live for g in groups[:-1]))
    if taken is None:
        yield directive.text.replace("elif", "elif" if was_open else "if", 1) + "\n"
    elif taken and was_open:
        yield "#else\n"


def _closed(groups: list[ConditionalGroup], directive: Directive) -> Iterator[str]:
    if not groups:
        raise Unbalanced("#endif without #if")
    if groups.pop().is_open and all(g.live for g in groups):
        yield directive.text + "\n"
