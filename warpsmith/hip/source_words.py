"""A source as words, the bodies of macros among them, and edits that keep its lines."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from warpsmith.rewrite.reader.declarations.named_constants import find_constants, integer_value
from warpsmith.rewrite.reader.lexing.brackets import joined, split_commas
from warpsmith.rewrite.reader.lexing.number_literals import integer_literal
from warpsmith.rewrite.reader.lexing.tokens import Directive, Token, directives, tokenise

_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?")
_KEYWORDS = frozenset(("return", "else", "case", "do", "new", "delete", "throw", "goto", "operator"))
_OPENING, _CLOSING = ("(", "[", "[[", "{"), (")", "]", "]]", "}")
MAX_STEPS = 8
"""Limit on macros that name each other."""


@dataclass(frozen=True)
class Refusal:
    """A word outside the subset."""

    file: str
    """Path in the job; empty: its source."""
    line: int
    """Line of that file, from 1; 0: no line of a text (an option, a launch)."""
    word: str
    reason: str

    def __str__(self) -> str:
        place = f"{self.file or 'source'}:{self.line}: " if self.line else ""
        return f"{place}{self.word}: {self.reason}"


@dataclass(frozen=True)
class Edit:
    """A replacement of a part of a text; line breaks of the part stay."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits that do not overlap. Every line keeps its number."""
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        lost = text.count("\n", edit.start, edit.end) - edit.text.count("\n")
        text = text[: edit.start] + edit.text + "\n" * lost + text[edit.end :]
    return text


@dataclass(frozen=True)
class SourceWords:
    """The words of one file outside of comments and strings, in order."""

    file: str
    text: str
    items: tuple[Token, ...] = field(repr=False)
    lines: tuple[Directive, ...] = field(repr=False)
    """Preprocessor lines."""

    @staticmethod
    def of(file: str, text: str) -> "SourceWords":
        """Read a text."""
        lines = tuple(directives(text))
        items = [t for t in tokenise(text).items if t.kind != "directive"]
        for line in lines:
            items += _body(line)
        return SourceWords(file, text, tuple(sorted(items, key=lambda t: t.start)), lines)

    def refusal(self, at: int | Token | Directive, word: str, reason: str) -> Refusal:
        """A refusal of what begins at an offset of the text."""
        start = at if isinstance(at, int) else at.start
        return Refusal(self.file, self.text.count("\n", 0, start) + 1, word, reason)

    def word(self, at: int) -> str:
        """The word at an index; empty outside of the text."""
        return self.items[at].text if 0 <= at < len(self.items) else ""

    def closing(self, opening: int) -> int:
        """Index of the bracket that closes the one at `opening`; the last index if none does."""
        depth = 0
        for at in range(opening, len(self.items)):
            depth += (self.items[at].text in _OPENING) - (self.items[at].text in _CLOSING)
            if depth == 0:
                return at
        return len(self.items) - 1

    def arguments(self, name: int) -> list[list[Token]]:
        """The arguments of the call whose name stands at an index; none without brackets."""
        if self.word(name + 1) != "(":
            return []
        return split_commas(self.items[name + 2 : self.closing(name + 1)])

    @cached_property
    def own_names(self) -> frozenset[str]:
        """Macros and functions of this file."""
        found = {m[1] for line in self.lines if (m := _DEFINE.match(line.text))}
        for at, token in enumerate(self.items[1:], 1):
            before = self.items[at - 1]
            names = token.kind == before.kind == "name" and before.text not in _KEYWORDS
            if names and self.word(at + 1) == "(":
                found.add(token.text)
        return frozenset(found)


def _body(line: Directive) -> Iterator[Token]:
    """The words of what a macro stands for, and of a condition."""
    head = _DEFINE.match(line.text)
    if head is None and line.keyword not in ("if", "elif", "ifdef", "ifndef"):
        return
    skipped = head.end() if head else line.text.index(line.keyword) + len(line.keyword)
    inner = line.text[skipped:].replace("\\\n", " \n")
    for token in tokenise(inner).items:
        if token.kind != "directive":
            yield replace(token, start=token.start + line.start + skipped)


@dataclass(frozen=True)
class Constants:
    """Names with one value in all files of a job."""

    values: Mapping[str, int]
    texts: Mapping[str, str]
    """What macros and constants stand for, if a name stands for one text only."""
    template_names: frozenset[str] = frozenset()
    """Integer parameters of templates."""

    @staticmethod
    def of(texts: Iterable[str], macros: Mapping[str, str]) -> "Constants":
        """Those of the texts and of compile options."""
        held: dict[str, set[str]] = {name: {text} for name, text in macros.items()}
        values: dict[str, set[int]] = {}
        names: set[str] = set()
        for text in texts:
            for name, value in tokenise(text, macros).macros.items():
                held.setdefault(name, set()).add(value)
            for name, value in _DECLARED.findall(" ".join(t.text for t in tokenise(text).items)):
                held.setdefault(name, set()).add(value.strip())
            for constant in find_constants(text):
                values.setdefault(constant.name, set()).add(constant.value)
            for listed in re.findall(r"\btemplate\s*<([^<>]*)>", text):
                names |= set(re.findall(r"\b(?:int|unsigned|uint32_t|size_t)\s+(\w+)", listed))
        for name, text in macros.items():
            number = integer_literal(text)
            values.pop(name, None)
            if number is not None:
                values[name] = {number}
        return Constants(
            {n: next(iter(v)) for n, v in values.items() if len(v) == 1},
            {n: next(iter(v)) for n, v in held.items() if len(v) == 1},
            frozenset(names),
        )

    def value(self, tokens: Sequence[Token]) -> int | None:
        """The integer that a few words stand for; None if they are no plain constant."""
        text = self.spelt(tokens)
        if text in self.values:
            return self.values[text]
        return integer_value(joined(tokens), self.values)

    def spelt(self, tokens: Sequence[Token]) -> str:
        """Words without spaces and outer brackets, and names of constants spelt out."""
        text = joined(tokens).replace(" ", "")
        for _ in range(MAX_STEPS):
            while text.startswith("(") and text.endswith(")") and text.count("(") == 1:
                text = text[1:-1]
            text = re.sub(r"^(?:\((?:unsigned|uint32_t|int)\)|unsigned\((?=.*\)$))", "", text)
            if text not in self.texts:
                break
            text = self.texts[text].replace(" ", "")
        return text


_DECLARED = re.compile(
    r"(?:const|constexpr) (?:const |static )*(?:unsigned int|unsigned|uint32_t|int|auto) (\w+) = "
    r"([^;,{}()]+) ;"
)


def is_full_mask(text: str) -> bool:
    """Whether a mask, spelt out, names every thread of a warp of CUDA."""
    inverted = re.fullmatch(r"~(?:0[uUlL]*|0x0[uU]?)", text)
    return bool(inverted) or text == "-1" or integer_literal(text) == 0xFFFFFFFF
