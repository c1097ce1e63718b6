"""Conditionals that leave a kernel of a source out, and the macros that put it in."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise, product

from warpsmith.source.lexing.number_literals import integer_literal
from warpsmith.source.lexing.tokens import Tokens, followed, tokenise
from warpsmith.source.macros.macro_words import defined_words

_OF_COMPILER = re.compile(r"\b(?:__(?!cplusplus\b)\w+|cl_\w+|CL_\w+)\b")
_NAME = re.compile(r"\b(?!defined\b)[A-Za-z_]\w*\b")
_MOST_NAMES = 6
_MOST_TRIES = 200
"""Limit on the sets of macros that are tried."""


@dataclass(frozen=True)
class Switch:
    """A conditional that leaves code out."""

    condition: str
    """The line as written: `#if BOX == 2`; for an `#else`, the first line of its group and `... #else`."""
    line: int
    """Line of the condition, from 1."""
    defines: Mapping[str, str] | None
    """Macros that put the code in; None: no macro that a compiler is given does."""

    @property
    def options(self) -> str:
        """`defines` as options of a compiler: `-DBOX=2`."""
        return " ".join(f"-D{name}={value}" for name, value in (self.defines or {}).items())

    def words(self, name: str, first_line: int = 1) -> str:
        """Sentence that names the condition that leaves a kernel out, and the options that put it in.

        Args:
            name: the kernel's name.
            first_line: line of the file at which the source's text begins.
        """
        said = f"`{self.condition}` (line {first_line - 1 + self.line}) leaves {name} out"
        if self.defines is None:
            return f"{said}, whatever macros are given"
        return f"{said}; {self.options} puts it in"


def switched_off(
    text: str, line: int, defines: Mapping[str, str], headers: Sequence[str] = ()
) -> Switch | None:
    """The outermost conditional around a line that leaves it out; None if none does, or if it is not sure.

    Conditions on macros of the compiler (`__OPENCL_VERSION__`, `cl_khr_fp64`) are never sure.

    Args:
        line: from 1.
        defines: macros given to the compiler.
        headers: texts of headers that may define more.
    """
    tokens = _lines_of(text)
    around = list(_around(tokens, line))
    known = {**defined_words(headers), **defines}
    if _are_taken(tokens, around, defines) or _are_taken(tokens, around, known):
        return None
    words = " ".join(tokens.items[n].rest for at in around for n in tokens.groups[at] if n <= at)
    if _OF_COMPILER.search(words):
        return None
    more = _putting_in(tokens, around, known, words)
    # Without any, all names must have their values from this text, or another file may have a say.
    if more is None and ("(" in words or not set(_NAME.findall(words)) <= tokens.macros.keys()):
        return None
    taken = followed(tokens.items, known, {})[1]
    at = next(at for at in around if at not in taken)
    return Switch(*_written(tokens, at), more)


def _written(tokens: Tokens, at: int) -> tuple[str, int]:
    """A conditional line as a reader of the source is told of it, and the line's number."""
    is_else = tokens.items[at].text == "else"
    token = tokens.items[tokens.groups[at][0] if is_else else at]
    condition = f"#{token.text} {token.rest}" + (" ... #else" if is_else else "")
    return condition, tokens.text.count("\n", 0, token.start) + 1


def _lines_of(text: str) -> Tokens:
    """The preprocessor lines of a text, with its macros."""
    whole = tokenise(text)
    return Tokens(text, tuple(t for t in whole.items if t.kind == "directive"), whole.macros)


def avoiding_error(
    text: str, line: int, defines: Mapping[str, str], headers: Sequence[str] = ()
) -> Mapping[str, str]:
    """Macros with which the first branch beside that of an `#error` is compiled; empty if none are found.

    Args:
        line: of the directive, from 1.
        defines, headers: see `switched_off`.
    """
    tokens = _lines_of(text)
    around = list(_around(tokens, line))
    if not around:
        return {}
    opening = tokens.items[tokens.groups[around[-1]][0]]
    switch = switched_off(text, text.count("\n", 0, opening.start) + 2, defines, headers)
    return (switch.defines or {}) if switch else {}


def _around(tokens: Tokens, line: int) -> Iterator[int]:
    """Indices of the conditional lines whose branches a line stands in, outermost first."""
    place = sum(len(row) + 1 for row in tokens.text.split("\n")[: line - 1])
    for group in sorted(set(tokens.groups.values())):
        for at, following in pairwise(group):
            if tokens.items[at].start < place <= tokens.items[following].start:
                yield at


def _are_taken(tokens: Tokens, around: Sequence[int], defines: Mapping[str, str]) -> bool:
    return followed(tokens.items, defines, {})[1].issuperset(around)


def _putting_in(
    tokens: Tokens, around: Sequence[int], known: Mapping[str, str], words: str
) -> dict[str, str] | None:
    """The fewest macros beside those known with which every branch around a place is taken."""
    names = list(dict.fromkeys(_NAME.findall(words)))[:_MOST_NAMES]
    written = {n for n in map(integer_literal, re.findall(r"\b\d\w*", words)) if n is not None}
    near = {n + step for n in written for step in (-1, 0, 1)}
    values = ["1", *(str(n) for n in sorted(near) if n > 1), "0"]
    tries = (
        dict(zip(chosen, held, strict=True))
        for count in (1, 2, 3)
        for chosen in combinations(names, count)
        for held in product(values, repeat=count)
    )
    return next((m for m in islice(tries, _MOST_TRIES) if _are_taken(tokens, around, {**known, **m})), None)
