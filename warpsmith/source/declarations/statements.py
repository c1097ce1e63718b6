"""The statements of a text in CUDA, HIP or OpenCL C, with what stands in brackets put together. One pass.

The text need not be correct, nor be meant to be read: each token is looked at a fixed number of times.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from warpsmith.source.lexing.tokens import Token

PARENTHESES, BRACKETS, BRACES, ANGLES = "()", "[]", "{}", "<>"
CLASS_BODY = "class {}"
DIRECTIVE = "#"
"""A preprocessor line inside a statement, which therefore has several readings."""
_CLOSING = {")": "(", "]": "[", "}": "{"}
_GROUPS = {"(": PARENTHESES, "[": BRACKETS}
_CLASSES = frozenset({"class", "struct", "union", "enum"})
_BLOCKS = frozenset({"do", "else", "try"})
_BEHIND_PARAMETERS = frozenset({"const", "noexcept", "override", "final", "mutable", "volatile", "try"})
_WITH_ARGUMENTS = frozenset(
    {"__attribute__", "__attribute", "__declspec", "__align__", "alignas", "_Alignas", "__launch_bounds__"}
)
"""Attributes that are left out with their arguments."""
_WITHOUT_TEXT = frozenset({"define", "undef", "pragma", "line", "error", "warning"})
"""Preprocessor lines that put nothing in their place."""
_CONDITIONALS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"})


class StatementScope(StrEnum):
    """Place of a statement."""

    FILE = "file"
    """The file or a namespace."""
    CLASS = "class"
    FUNCTION = "function"
    """A function, or an initialiser."""


@dataclass(frozen=True, slots=True)
class Item:
    """A word or sign of a statement, or a pair of brackets with all that is inside."""

    text: str
    is_word: bool = False
    is_string: bool = False
    start: int = 0
    """Index of the first token inside of parentheses."""
    end: int = 0
    """Index behind the last token inside of parentheses."""
    declarator: str = ""
    """Only word inside of parentheses, if a declarator could be written so; else empty."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Items up to a semicolon, to the body of a function, or to the bracket around them."""

    items: list[Item]
    scope: StatementScope
    in_parentheses: bool = False
    has_body: bool = False
    """True for the header of a function, a namespace or a block."""


@dataclass(slots=True)
class _Frame:
    opener: str
    scope: StatementScope
    start: int = 0
    closes_as: str = ""
    """Item that the text around gets in place of the braces; empty: its statement ended where they opened."""
    items: list[Item] = field(default_factory=list)
    angles: list[int] = field(default_factory=list)
    """Indices of the items that are open angle brackets."""
    is_assigned: bool = False
    has_parentheses: bool = False
    is_class: bool = False
    is_namespace: bool = False
    has_arrow: bool = False

    def clear(self) -> None:
        self.items, self.angles = [], []
        self.is_assigned = self.has_parentheses = self.is_class = self.is_namespace = self.has_arrow = False

    def takes_angle(self, sign: str) -> bool:
        """Open or close a list of template arguments; false for other signs and for comparisons."""
        if sign == "<" and self.items and self.items[-1].is_word and not self.is_assigned:
            self.angles.append(len(self.items))
            self.items.append(Item(sign))
            return True
        if sign == ">" and self.angles:
            del self.items[self.angles.pop() :]
            self.items.append(Item(ANGLES))
            return True
        return False


class StatementReader:
    """Hands on the statements of one text, each when it ends."""

    def __init__(self, take: Callable[[Statement], None], expansions: Mapping[str, Sequence[str]]) -> None:
        """Args:
        take: is given each statement.
        expansions: words to read in place of a word, by that word.
        """
        self.is_balanced = True
        """False if brackets, or those of a preprocessor branch, have no partner: scopes are guesses then."""
        self.is_whole = True
        """False if the text ends inside a statement."""
        self._take = take
        self._expansions = expansions
        self._frames = [_Frame("", StatementScope.FILE)]
        self._open_braces = 0
        self._conditionals: list[_Frame] = []

    def read(self, tokens: Sequence[Token]) -> None:
        """Read a text, whose directives are tokens of kind `directive`."""
        for at, token in enumerate(tokens):
            if token.kind == "directive":
                self._directive(token.text)
            elif token.kind == "name":
                for word in self._expansions.get(token.text, (token.text,)):
                    self._word(word)
            elif token.kind in ("string", "number"):
                self._add(Item(token.text, is_string=token.kind == "string"))
            elif token.text in ("[[", "]]"):
                self._sign(token.text[0], at)
                self._sign(token.text[0], at)
            else:
                self._sign(token.text, at)
        if len(self._frames) > 1 or self._conditionals:
            self.is_balanced = False
        self.is_whole = not any(i.is_word for frame in self._frames for i in frame.items)
        while self._frames:
            self._end_statement()
            self._frames.pop()

    def _directive(self, keyword: str) -> None:
        top = self._frames[-1]
        if keyword not in _WITHOUT_TEXT and top.items:
            self._add(Item(DIRECTIVE))
        if keyword not in _CONDITIONALS:
            return
        if keyword.startswith("if"):
            self._conditionals.append(top)
        elif not self._conditionals or self._conditionals[-1] is not top:
            self.is_balanced = False
        if keyword == "endif" and self._conditionals:
            self._conditionals.pop()

    def _word(self, word: str) -> None:
        top = self._frames[-1]
        if top.items and top.items[-1].text == BRACES and top.opener not in _GROUPS:
            # What looked like an initialiser was a body.
            self._end_statement()
        if not top.angles:
            top.is_class = top.is_class or word in _CLASSES
            top.is_namespace = top.is_namespace or word == "namespace"
        self._add(Item(word, is_word=True))

    def _add(self, item: Item) -> None:
        self._frames[-1].items.append(item)

    def _sign(self, sign: str, at: int) -> None:
        top = self._frames[-1]
        if sign == ";":
            self._end_statement()
        elif sign == "{":
            self._open_brace()
        elif sign in _GROUPS:
            self._frames.append(_Frame(sign, top.scope, at + 1))
        elif sign in _CLOSING:
            self._close(sign, at)
        elif sign == ":" and top.items and (len(top.items) == 1 or top.items[0].text == "case"):
            # Labels are no part of what follows.
            top.clear()
        elif not top.takes_angle(sign):
            top.is_assigned = top.is_assigned or (sign == "=" and not top.angles)
            top.has_arrow = top.has_arrow or sign == "->"
            self._add(Item(sign))

    def _open_brace(self) -> None:
        top = self._frames[-1]
        self._open_braces += 1
        closes_as, scope = _kind_of_brace(top)
        if not closes_as:
            self._end_statement(has_body=True)
        self._frames.append(_Frame("{", scope, closes_as=closes_as))

    def _close(self, sign: str, at: int) -> None:
        opener = _CLOSING[sign]
        if sign == "}":
            if not self._open_braces:
                self.is_balanced = False
                self._end_statement()
                return
            self._open_braces -= 1
            while self._frames[-1].opener != "{":
                self.is_balanced = False
                self._end_statement()
                self._frames.pop()
        elif self._frames[-1].opener != opener:
            self.is_balanced = False
            return
        frame = self._frames[-1]
        declarator = _declarator(frame.items) if sign == ")" else ""
        self._end_statement()
        self._frames.pop()
        around = self._frames[-1]
        if sign == "}":
            if frame.closes_as:
                self._add(Item(frame.closes_as))
        elif sign == ")" and around.items and around.items[-1].text in _WITH_ARGUMENTS:
            around.items.pop()
        else:
            around.has_parentheses = around.has_parentheses or sign == ")"
            self._add(Item(_GROUPS[opener], start=frame.start, end=at, declarator=declarator))

    def _end_statement(self, *, has_body: bool = False) -> None:
        top = self._frames[-1]
        if top.items:
            self._take(Statement(top.items, top.scope, top.opener in _GROUPS, has_body))
        top.clear()


def _kind_of_brace(around: _Frame) -> tuple[str, StatementScope]:
    """Item that the text around gets in place of a brace that opens now, and the scope inside."""
    if around.opener in _GROUPS or around.is_assigned:
        return BRACES, StatementScope.FUNCTION
    if around.is_namespace or (around.items and around.items[-1].is_string):
        return "", StatementScope.FILE
    if around.is_class and not around.has_parentheses:
        return CLASS_BODY, StatementScope.CLASS
    return (BRACES if _is_initialised(around) else ""), StatementScope.FUNCTION


def _is_initialised(around: _Frame) -> bool:
    """True for a brace behind a name or a type; other braces open bodies."""
    if not around.items or around.has_arrow:
        return False
    last = around.items[-1]
    if last.text in _BLOCKS or (around.has_parentheses and last.text in _BEHIND_PARAMETERS):
        return False
    return last.is_word or last.text in (BRACKETS, ANGLES)


def _declarator(items: Sequence[Item]) -> str:
    words = {i.declarator or i.text for i in items if i.is_word or i.declarator} - {"const", "volatile"}
    others = {i.text for i in items if not i.is_word} - {"*", "&", "&&", "::", BRACKETS, PARENTHESES}
    return words.pop() if len(words) == 1 and not others else ""
