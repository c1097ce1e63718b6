"""Source as tokens: comments and strings blanked at the same offsets, preprocessor branches known.

It handles code that no grammar accepts before preprocessing: macros in front of functions, conditionals
inside argument lists, missing headers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from warpsmith.source.lexing.conditionals import holds

_HIDDEN = re.compile(
    r"""(?P<number>(?<![\w])\d(?:'?[\w.])*)
    |(?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    |(?P<text>(?P<quote>["'])(?:\\.|(?!(?P=quote))[^\\\n])*+(?P<end>(?P=quote))?+)""",
    re.X | re.S,
)
"""Text that hides code. A string or comment without an end goes on to where it could end at the latest: each
character is looked at once."""
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)((?:\\\r?\n|[^\n])*)", re.M)
_TOKEN = re.compile(
    r"""(?P<name>[A-Za-z_$][\w$]*)|(?P<number>\.?\d(?:'?[\w.])*)|(?P<string>"[ ]*"|'[ ]*')
    |(?P<mark>::|->|\.\.\.|<<|<=|>=|==|!=|&&|\|\||\[\[|\]\]|[^\s\w])""",
    re.X,
)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_SPLITS = {"if": "open", "ifdef": "open", "ifndef": "open", "elif": "next", "else": "next", "endif": "close"}


def without_comments(text: str) -> str:
    """`text` with every comment replaced by one space, and without lines that held only a comment."""

    def drop(match: re.Match[str]) -> str:
        return " " if match.lastgroup == "comment" else match.group()

    lines = _HIDDEN.sub(drop, text).split("\n")
    shown = (line.rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(shown)).strip("\n") + "\n"


def comments_blanked(text: str) -> str:
    """`text` with every comment as spaces, so that code keeps its lines and columns."""

    def hide(match: re.Match[str]) -> str:
        found = match.group()
        if match.lastgroup != "comment":
            return found
        # A comment may stand in a directive and end on a later line.
        return re.sub(r"[^\n]", " ", found).replace("\n", "\\\n")

    return _HIDDEN.sub(hide, text)


@dataclass(frozen=True)
class Token:
    """A word or sign; a preprocessor line is one token of kind `directive`."""

    kind: str
    text: str
    start: int
    rest: str = ""
    """Text after the keyword of a directive."""


def blank(text: str) -> str:
    """`text` with comments and the insides of strings as spaces; all offsets are kept.

    Characters beyond ASCII become spaces too, so that byte and character offsets agree; letters become `_`,
    because C has them in names.
    """

    def hide(match: re.Match[str]) -> str:
        found = match.group()
        if match.lastgroup == "number" or (match.lastgroup == "text" and match.group("end") is None):
            return found
        spaces = re.sub(r"[^\n]", " ", found)
        if match.group("text") is None:
            return spaces
        return found[0] + spaces[1:-1] + found[-1]

    masked = _HIDDEN.sub(hide, text)
    return masked if masked.isascii() else _BEYOND_ASCII.sub(lambda m: "_" if m[0].isalnum() else " ", masked)


@dataclass(frozen=True)
class Tokens:
    """All tokens of a source, and the macros that it defines."""

    text: str
    items: tuple[Token, ...] = field(repr=False)
    macros: dict[str, str]
    """Object-like macros by name: from the branches that are taken, else the first definition."""
    certain: frozenset[str] = frozenset()
    """Names of macros whose value does not depend on macros that this text leaves undefined."""
    taken: frozenset[int] = frozenset()
    """Indices of the conditional lines whose branch is taken."""

    @cached_property
    def groups(self) -> dict[int, tuple[int, ...]]:
        """Indices of all lines of a conditional group, by the index of each of its lines."""
        found: dict[int, tuple[int, ...]] = {}
        stack: list[list[int]] = []
        for at, token in enumerate(self.items):
            part = _SPLITS.get(token.text) if token.kind == "directive" else None
            if part == "open":
                stack.append([at])
            elif part is not None and stack:
                stack[-1].append(at)
                if part == "close":
                    group = tuple(stack.pop())
                    found.update(dict.fromkeys(group, group))
        for group_left_open in stack:
            found.update(dict.fromkeys(group_left_open, tuple(group_left_open)))
        return found

    def are_taken(self, at: int) -> bool:
        """True if every branch around a token is taken."""
        for group in set(self.groups.values()):
            before = [line for line in group if line < at]
            if before and at < group[-1] and before[-1] not in self.taken:
                return False
        return True

    def forward(self, at: int) -> Iterator[int]:
        """Indices from `at` on, as one reading of the preprocessor: the branch that `at` is in, and of
        every later conditional the branch taken when only this text defines macros."""
        while at < len(self.items):
            token = self.items[at]
            part = _SPLITS.get(token.text) if token.kind == "directive" else None
            if part == "open":
                at = self._chosen(at)
            elif part == "next":
                at = self.groups[at][-1] if at in self.groups else at
            elif token.kind != "directive":
                yield at
            at += 1

    def backward(self, at: int) -> Iterator[int]:
        """Indices before `at`, latest first, by the same reading."""
        at -= 1
        while at >= 0:
            token = self.items[at]
            part = _SPLITS.get(token.text) if token.kind == "directive" else None
            if part == "close" and at in self.groups:
                group = self.groups[at]
                begin = self._chosen(group[0])
                end = next((g for g in group if g > begin), at)
                yield from (n for n in range(end - 1, begin, -1) if self.items[n].kind != "directive")
                at = group[0]
            elif part == "next" and at in self.groups:
                at = self.groups[at][0]
            elif token.kind != "directive":
                yield at
            at -= 1

    def _chosen(self, opening: int) -> int:
        """The conditional line whose branch is taken; the closing one if none is."""
        group = self.groups.get(opening, (opening,))
        for line in group:
            token = self.items[line]
            if token.text in ("else", "endif") or holds(token.text, token.rest, self.macros):
                return line
        return group[-1]


@dataclass(frozen=True)
class Directive:
    """A preprocessor line, with its continuations."""

    keyword: str
    rest: str
    """Text after the keyword, on one line, without comments."""
    text: str
    """The whole, as it stands there."""
    start: int
    end: int


def directives(text: str) -> Iterator[Directive]:
    """The preprocessor lines of a source."""
    for line in _DIRECTIVE.finditer(blank(text)):
        rest = " ".join(line.group(2).replace("\\\n", " ").split())
        yield Directive(line.group(1), rest, text[line.start() : line.end()], line.start(), line.end())


def defined_names(text: str) -> set[str]:
    """Names of macros that a text defines on any line, even in a comment."""
    return set(re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)", text))


def tokenise(text: str, defines: Mapping[str, str] | None = None) -> Tokens:
    """Tokens of a source in CUDA, HIP or OpenCL C.

    Args:
        defines: macros given to the compiler (`-D`).
    """
    masked = blank(text)
    items: list[Token] = []
    macros: dict[str, str] = {}
    values: dict[str, set[str]] = {}
    begin = 0
    for line in _DIRECTIVE.finditer(masked):
        items += _plain(masked, text, begin, line.start())
        keyword, rest = line.group(1), " ".join(line.group(2).replace("\\\n", " ").split())
        items.append(Token("directive", keyword, line.start(), rest))
        define = re.match(r"(\w+)(?:\s+(.*))?$", rest) if keyword == "define" else None
        if define is not None:
            macros.setdefault(define.group(1), define.group(2) or "")
            values.setdefault(define.group(1), set()).add(define.group(2) or "")
        begin = line.end()
    items += _plain(masked, text, begin, len(masked))
    active, taken = followed(items, defines or {}, defines or {})
    certain = frozenset({*active, *(name for name, held in values.items() if len(held) == 1)})
    return Tokens(text, tuple(items), macros | active, certain, taken)


def followed(
    items: Sequence[Token], beforehand: Mapping[str, str], kept: Mapping[str, str]
) -> tuple[dict[str, str], frozenset[int]]:
    """Macros of the branches that are taken, and the indices of the lines that open these branches.

    Args:
        beforehand: macros that are defined before the text.
        kept: those that no line of the text defines anew.
    """
    found = dict(beforehand)
    opened: set[int] = set()
    # The file itself is a branch that is taken.
    around = [_Conditional(waits=False, is_taken=True)]
    for at, token in enumerate(items):
        if token.kind != "directive":
            continue
        part = _SPLITS.get(token.text)
        if part is None and around[-1].is_taken:
            _define(token, found, kept)
        elif part == "open":
            around.append(_Conditional(waits=around[-1].is_taken))
        elif part == "close" and len(around) > 1:
            around.pop()
        if part in ("open", "next") and len(around) > 1 and around[-1].enters(token, found):
            opened.add(at)
    return found, frozenset(opened)


@dataclass
class _Conditional:
    """A conditional whose branches are gone through."""

    waits: bool
    """True if none of its branches was taken so far, and all around it is."""
    is_taken: bool = False
    """True in the branch that is taken."""

    def enters(self, branch: Token, macros: Mapping[str, str]) -> bool:
        """Go on to a branch; true if it is taken."""
        self.is_taken = self.waits and (branch.text == "else" or holds(branch.text, branch.rest, macros))
        self.waits = self.waits and not self.is_taken
        return self.is_taken


def _define(directive: Token, found: dict[str, str], defines: Mapping[str, str]) -> None:
    """Follow a `#define` or `#undef`; what was given beforehand is not defined anew."""
    if directive.text == "define":
        define = re.match(r"(\w+)(?:\s+(.*))?$", directive.rest)
        if define is not None and define.group(1) not in defines:
            found[define.group(1)] = define.group(2) or ""
    elif directive.text == "undef":
        found.pop(directive.rest.strip(), None)


def _plain(masked: str, text: str, begin: int, end: int) -> Iterator[Token]:
    for match in _TOKEN.finditer(masked, begin, end):
        kind = match.lastgroup or ""
        shown = text[match.start() : match.end()] if kind == "name" else match.group()
        yield Token(kind, shown, match.start())
