"""Source with the conditionals resolved that known macros decide; the others stay as they are."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from warpsmith.source.lexing.conditionals import decided
from warpsmith.source.lexing.tokens import Directive, directives

_OPENING = ("if", "ifdef", "ifndef")
_DEFINED = re.compile(r"\bdefined\b\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_NOT_FIRST = re.compile(r"!\s*\w+\s*[-+*%=<>!]")
"""A form that Python's `not` reads otherwise than C's `!`."""


class Unbalanced(Exception):
    """A conditional lacks its `#if` or its `#endif`."""


@dataclass
class Known:
    """What is known of macros at a place of the text.

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
        """Whether the branch of an `#if`, `#elif`, `#ifdef` or `#ifndef` is taken; None: not known."""
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

    def learn(self, directive: Directive) -> None:
        """Follow a `#define` or `#undef` that is certainly reached."""
        found = re.match(r"(\w+)(?:\s+(.*))?$|(\w+)", directive.rest)
        if directive.keyword not in ("define", "undef") or found is None:
            return
        name = found.group(1) or found.group(3)
        self.values.pop(name, None)
        self.unsure.discard(name)
        self.present.discard(name)
        if directive.keyword == "define":
            self.present.add(name)
            if re.fullmatch(r"\d+", found.group(2) or "") and str(int(found.group(2))) == found.group(2):
                self.values[name] = int(found.group(2))

    def doubt(self, directive: Directive) -> None:
        """Follow a `#define` or `#undef` that may be reached or not."""
        found = re.match(r"\w+", directive.rest)
        if directive.keyword in ("define", "undef") and found is not None:
            self.values.pop(found.group(), None)
            self.unsure.add(found.group())

    def _is_defined(self, name: str) -> bool | None:
        if name in self.unsure:
            return None
        return True if name in self.present else (False if self.ours(name) else None)


@dataclass
class _Group:
    """A conditional that is being read."""

    kept: bool
    """Whether a condition was open, so that the conditional itself stays."""
    over: bool
    """Whether a branch was certainly taken."""
    live: bool
    """Whether the present branch may be taken."""


def resolved(text: str, values: Mapping[str, int], present: set[str], ours: Callable[[str], bool]) -> str:
    """`text` without the branches that are certainly not taken, and without the lines that chose.

    Raises:
        Unbalanced: a conditional lacks its `#if` or its `#endif`.
    """
    known = Known(dict(values), set(present), ours)
    return "".join(_parts(text, known))


def _parts(text: str, known: Known) -> Iterator[str]:
    groups: list[_Group] = []
    begin = 0
    for directive in directives(text):
        if all(g.live for g in groups):
            yield text[begin : directive.start]
        begin = directive.start
        if directive.keyword in _OPENING:
            yield from _opened(groups, directive, known)
        elif directive.keyword in ("elif", "else"):
            yield from _next(groups, directive, known)
        elif directive.keyword == "endif":
            yield from _closed(groups, directive)
        else:
            if all(g.live for g in groups):
                (known.doubt if any(g.kept for g in groups) else known.learn)(directive)
            continue
        begin = min(directive.end + 1, len(text))
    if groups:
        raise Unbalanced("#endif is missing")
    yield text[begin:]


def _opened(groups: list[_Group], directive: Directive, known: Known) -> Iterator[str]:
    if not all(g.live for g in groups):
        groups.append(_Group(kept=False, over=True, live=False))
        return
    taken = known.holds(directive)
    groups.append(_Group(kept=taken is None, over=taken is True, live=taken is not False))
    if taken is None:
        yield directive.text + "\n"


def _next(groups: list[_Group], directive: Directive, known: Known) -> Iterator[str]:
    if not groups:
        raise Unbalanced(f"#{directive.keyword} without #if")
    group, around = groups[-1], all(g.live for g in groups[:-1])
    if group.over or not around:
        group.live = False
        return
    taken = True if directive.keyword == "else" else known.holds(directive)
    group.live, group.over = taken is not False, taken is True
    if taken is None:
        yield directive.text.replace("elif", "elif" if group.kept else "if", 1) + "\n"
        group.kept = True
    elif taken and group.kept:
        yield "#else\n"


def _closed(groups: list[_Group], directive: Directive) -> Iterator[str]:
    if not groups:
        raise Unbalanced("#endif without #if")
    if groups.pop().kept and all(g.live for g in groups):
        yield directive.text + "\n"
