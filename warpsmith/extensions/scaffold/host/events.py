"""The places of host code that declare or set a variable."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warpsmith.extensions.scaffold.host.expressions import is_float_type, split_list
from warpsmith.source.lexing.tokens import Token
from warpsmith.source.tree.work_limit import spend

_WORDS = (
    "return else case goto delete new throw using typedef namespace template typename struct class if while"
    " for do switch operator public private protected friend extern default break continue in"
)
_NO_TYPES = frozenset(_WORDS.split())
_KEEPS = re.compile(
    r"clSetKernelArg|setArg|(?:cuda|hip|cu|cl)\w*(?:Launch|MemcpyToSymbol|Malloc|Free|Write|CreateBuffer|Record)\w*"
    r"|f?printf|fwrite|sizeof"
)
"""Functions that leave a number whose address they get as it is, or give a pointer."""
_CHANGES = re.compile(
    r"(?:re)?set|resize|reserve|push|pop|clear|assign|emplace|insert|erase|init|load|read|parse|swap|add"
)
_READS = ("clEnqueueNDRangeKernel", "enqueueNDRangeKernel", "NDRange", "if", "while", "dim3")
_STEPS = (("+", "+"), ("-", "-"))
_CHANGE_BEHIND = (*_STEPS, (">", ">="))
"""Pairs of tokens behind a variable that change it."""
_BOUNDARIES = (";", "{", "}", "(", ",", ")", ":", "]", ">")
"""Tokens in front of a declaration."""
_NEAR = 300
FILLED = "[?]"
"""Member of an event that may set any element of an array, and nothing of what is no array."""


@dataclass(frozen=True)
class Event:
    """A place that sets a variable, or declares it."""

    at: int
    is_declaration: bool
    member: str = ""
    """`.x` or `[0]` if only that part is set."""
    value: tuple[Token, ...] | None = None
    """Tokens of the new value; None if it is unknown, nothing for a declaration without a value."""
    sign: str = ""
    """`+` for `+=`."""
    type_words: tuple[str, ...] = ()

    @property
    def is_float(self) -> bool:
        """True for a declaration of a floating-point number."""
        return is_float_type(self.type_words)


def events_of(
    items: Sequence[Token], closers: Mapping[int, int], changing: Collection[str]
) -> Iterator[tuple[str, Event]]:
    """Names and what happens to them, in order; those of parameter lists only within functions.

    Args:
        changing: functions that may change what they get by reference.
    """
    reader = _Events(items, closers, changing)
    for n, token in enumerate(items):
        if token.kind == "name" and n:
            spend(1)
            yield from reader.at(n)


class _Events:
    def __init__(self, items: Sequence[Token], closers: Mapping[int, int], changing: Collection[str]) -> None:
        self._items = items
        self._closers = closers
        self._changing = changing

    def _text(self, n: int) -> str:
        return self._items[n].text if 0 <= n < len(self._items) else ""

    def _kind(self, n: int) -> str:
        return self._items[n].kind if 0 <= n < len(self._items) else ""

    def at(self, n: int) -> Iterator[tuple[str, Event]]:
        before, name = self._text(n - 1), self._text(n)
        if before in (".", "->", "::"):
            return
        begin = self._type_before(n)
        if begin is not None:
            yield from self._declared(begin, n)
            return
        path, behind = self._path(n)
        following = self._text(behind)
        if self._text(n + 1) == "[" and self._text(n + 2) == "]":
            return  # a later declarator of an array
        if following == "=":
            yield name, Event(n, False, path, self._value(behind + 1))
        elif self._text(behind + 1) == "=" and following in ("+", "-", "*", "/", "%", "<<", "|", "&", "^"):
            yield name, Event(n, False, path, self._value(behind + 2), following)
        elif self._is_changed(n, behind):
            yield name, Event(n, False)
        elif before in ("(", ",") and following in (",", ")") and not path and self._may_fill(n):
            yield name, Event(n, False, FILLED)

    def _is_changed(self, n: int, behind: int) -> bool:
        before, following = self._text(n - 1), self._text(behind)
        if (following, self._text(behind + 1)) in _CHANGE_BEHIND or (self._text(n - 2), before) in _STEPS:
            return True
        if following == "(" and self._text(n + 1) in (".", "->"):
            return _CHANGES.match(self._text(behind - 1)) is not None
        if before == "&":
            return self._takes_address(n - 1) and not _KEEPS.fullmatch(self._callee(n - 1))
        if before == ">" == self._text(n - 2):
            return self._is_streamed(n)
        if self._changing and before in ("(", ",") and following in (",", ")"):
            return self._callee(n) in self._changing
        return False

    def _takes_address(self, at: int) -> bool:
        """True if a `&` has no operand on its left."""
        left = self._text(at - 1)
        if left == ")":
            return self._text(at - 2) == "*"  # a cast to a pointer
        is_operand = left == "]" or self._kind(at - 1) in ("name", "number")
        return left == "return" or not is_operand

    def _may_fill(self, n: int) -> bool:
        """True if a call may set the elements of an array that it gets."""
        callee = self._callee(n)
        return bool(callee) and not (_KEEPS.fullmatch(callee) or callee in _READS)

    def _is_streamed(self, n: int) -> bool:
        """True for `in >> a >> n`."""
        for at in range(n - 1, max(n - 60, 0), -1):
            text = self._text(at)
            if text in (";", "{", "}"):
                return True
            if text in ("=", "return", ",", "<<", "<") or (text == "(" and self._text(at - 1) != "while"):
                return False
        return False

    def _callee(self, n: int) -> str:
        """The function in whose argument list a token stands; `sizeof` for a list in braces."""
        depth = 0
        for at in range(n - 1, max(n - _NEAR, -1), -1):
            spend(1)
            text = self._text(at)
            if text in (")", "]", "}"):
                depth += 1
            elif text in ("(", "[", "{"):
                depth -= 1
                if depth < 0 and text == "{":
                    return "sizeof"
                if depth < 0 and text == "(" and self._items[at - 1].kind == "name":
                    return self._text(at - 1)
                depth = max(depth, 0)
            elif text == ";" and depth == 0:
                return ""
        return ""

    def _path(self, n: int) -> tuple[str, int]:
        """Members behind a name, such as `.x` and `[0]`, and the index behind them."""
        path, at = "", n + 1
        while True:
            if self._text(at) in (".", "->"):
                path, at = f"{path}.{self._text(at + 1)}", at + 2
            elif self._text(at) == "[" and at in self._closers:
                inner = self._items[at + 1 : self._closers[at]]
                path += f"[{inner[0].text if len(inner) == 1 else '?'}]"
                at = self._closers[at] + 1
            else:
                return path, at

    def _value(self, at: int) -> tuple[Token, ...]:
        end = at
        while end < len(self._items) and self._text(end) not in (";", ",", ")", "}"):
            end = self._closers.get(end, end) + 1
            spend(1)
        return tuple(self._items[at:end])

    def _type_before(self, n: int) -> int | None:
        """Index at which the type of a declaration begins whose name is at `n`; None if it is none."""
        if self._text(n + 1) not in ("=", ";", ",", "(", "{", "[", ":", ")") or self._text(n) in _NO_TYPES:
            return None
        at = n - 1
        while self._text(at) in ("*", "&", "&&"):
            at -= 1
        is_plain = at == n - 1
        if self._text(at) == ">":
            at = self._before_template(at)
        if self._kind(at) != "name" or self._text(at) in _NO_TYPES:
            return None
        while self._kind(at - 1) == "name" or self._text(at - 1) == "::":
            at -= 1
            if self._text(at) in _NO_TYPES - {"struct", "typename", "extern"}:
                return None
        begins = self._text(at - 1) in _BOUNDARIES or self._kind(at - 1) in ("", "directive")
        return at if is_plain or begins else None

    def _before_template(self, end: int) -> int:
        """The index before the `<` of a list that ends at `end`; -1 if there is none nearby."""
        depth = 0
        for at in range(end, max(end - 60, 0), -1):
            text = self._text(at)
            depth += (text == ">") - (text == "<")
            if depth == 0:
                return at - 1
            if text in (";", "{", "}", "("):
                break
        return -1

    def _declared(self, begin: int, n: int) -> Iterator[tuple[str, Event]]:
        words = tuple(t.text for t in self._items[begin:n])
        end = n
        while end < len(self._items) and self._text(end) not in (";", ")", "}"):
            end = self._closers.get(end, end) + 1
            spend(1)
        if self._text(end) != ";":
            # A parameter, or the variable of a loop over a range.
            yield self._text(n), Event(n, True, type_words=words)
            return
        following = n
        for part in split_list(self._items[n:end]):
            own, here, declarator = words, following, tuple(part)
            following += len(part) + 1
            while declarator and declarator[0].text in ("*", "&"):
                own, declarator = (*own, declarator[0].text), declarator[1:]
            if declarator and declarator[0].kind == "name":
                for event in _declarations(here, own, declarator):
                    yield declarator[0].text, event


def _declarations(n: int, words: tuple[str, ...], part: Sequence[Token]) -> Iterator[Event]:
    """Events of a declarator: its declaration, and a value for each part of an array."""
    texts = [t.text for t in part]
    if len(texts) > 1 and texts[1] == "[":
        yield Event(n, True, type_words=words)
        entries = split_list(part[texts.index("{") + 1 : -1]) if "{" in texts else ()
        yield from (Event(n, False, f"[{i}]", tuple(entry)) for i, entry in enumerate(entries))
        return
    value = _initial(words, part, texts)
    if value is None:
        yield Event(n, True, type_words=words)
        return
    is_reference = "&" in words and "const" not in words
    yield Event(n, True, "", None if is_reference else value, "", words)


def _initial(words: tuple[str, ...], part: Sequence[Token], texts: list[str]) -> tuple[Token, ...] | None:
    """The value that a declarator gives, nothing without one; None if it is not understood."""
    kind = next((w for w in reversed(words) if w not in ("const", "constexpr", "static")), "")
    made = tuple(Token("name", w, part[0].start) for w in words if w == kind)[:1]
    if len(part) == 1:
        return (*made, *_signs("(1)")) if kind == "dim3" else ()
    if texts[1] in ("(", "{"):
        return (*made, *part[1:])
    if texts[1] == "=" and len(texts) > 2:
        return (*made, *part[2:]) if texts[2] == "{" else tuple(part[2:])
    return None


def _signs(text: str) -> tuple[Token, ...]:
    return tuple(Token("number" if c.isdigit() else "mark", c, 0) for c in text)
