"""Expressions of C and C++ as trees, read from tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.source.lexing.tokens import Token
from warpsmith.source.tree.work_limit import spend

_DEPTH = 40
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_PRECEDENCE = {sign: n for n, signs in enumerate(_LEVELS) for sign in signs}
_NO_VALUES = ("new", "delete", "return", "throw")
_CLOSING = {"(": ")", "{": "}"}
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast")
_FLOATS = frozenset(("float", "double", "cl_float", "cl_double"))
_WHOLE = (
    "int unsigned signed long short char size_t ssize_t uint ulong auto cl_int cl_uint cl_long cl_ulong"
    " int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t ptrdiff_t index_t"
)
_INTEGERS = frozenset(_WHOLE.split())
_WORDS_OF_TYPES = frozenset(("const", "volatile", "std", "struct"))


@dataclass(frozen=True)
class Node:
    """A part of an expression; `kind` says what `text` and `parts` are."""

    kind: str
    text: str = ""
    parts: tuple["Node", ...] = ()


class Unreadable(Exception):
    """Tokens that are no expression of the known forms."""


def is_float_type(words: Sequence[str]) -> bool:
    """True for a type that these words name as a floating-point number."""
    return any(w in _FLOATS for w in words) and "*" not in words


def is_number_type(words: Sequence[str]) -> bool:
    """True for a plain type of numbers."""
    known = _FLOATS | _INTEGERS | _WORDS_OF_TYPES
    return bool(words) and all(w in known or w == "::" for w in words) and words[-1] != "::"


def template_end(items: Sequence[Token], at: int) -> int:
    """Index behind the `>` of the template list that opens at `at`; `at` itself if it opens none."""
    depth = 0
    for n in range(at, min(at + 200, len(items))):
        text = items[n].text
        if text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                return n + 1
        elif items[n].kind == "directive" or text in (";", "{", "}", "&&", "||", "<<", "?"):
            return at
    return at


def split_list(items: Sequence[Token]) -> list[list[Token]]:
    """The parts of a list, split at the commas outside of brackets and template lists."""
    parts: list[list[Token]] = [[]]
    depth = behind = 0
    for n, token in enumerate(items):
        spend(1)
        if n < behind:
            parts[-1].append(token)
            continue
        if token.text == "<" and depth == 0 and n and items[n - 1].kind == "name":
            end = template_end(items, n)
            if items[end : end + 1] and items[end].text in ("(", "::", "{") and end > n:
                behind = end
        depth += (token.text in ("(", "[", "{", "[[")) - (token.text in (")", "]", "}", "]]"))
        if token.text == "," and depth == 0 and n >= behind:
            parts.append([])
        else:
            parts[-1].append(token)
    return [p for p in parts if p]


def parsed(items: Sequence[Token]) -> Node:
    """The tree of an expression.

    Raises:
        Unreadable: it is none, or nested too deeply.
    """
    reader = _ExpressionReader([t for t in items if t.kind != "directive"])
    node = reader.expression(0)
    if reader.at != len(reader.items):
        raise Unreadable
    return node


class _ExpressionReader:
    def __init__(self, items: list[Token]) -> None:
        self.items = items
        self.at = 0
        self._depth = 0

    def _text(self, ahead: int = 0) -> str:
        n = self.at + ahead
        return self.items[n].text if n < len(self.items) else ""

    def _take(self, text: str) -> None:
        if self._text() != text:
            raise Unreadable
        self.at += 1

    def expression(self, level: int) -> Node:
        self._depth += 1
        spend(1)
        if self._depth > _DEPTH:
            raise Unreadable
        left = self._unary()
        while True:
            sign, width = self._sign()
            if sign == "?" and level == 0:
                self.at += 1
                first = self.expression(0)
                self._take(":")
                left = Node("choice", "", (left, first, self.expression(0)))
                continue
            if _PRECEDENCE.get(sign, -1) < level:
                break
            self.at += width
            left = Node("binary", sign, (left, self.expression(_PRECEDENCE[sign] + 1)))
        self._depth -= 1
        return left

    def _sign(self) -> tuple[str, int]:
        if self._text() == ">" == self._text(1):
            return ">>", 2
        return self._text(), 1

    def _unary(self) -> Node:
        signs = []
        while self._text() in ("-", "+", "!", "~", "&", "*"):
            signs.append(self._text())
            self.at += 1
            if len(signs) > 3:
                raise Unreadable
        node = self._cast() or self._postfix(self._primary())
        for sign in reversed(signs):
            node = Node("unary", sign, (node,))
        return node

    def _cast(self) -> Node | None:
        """A C cast `(int) x`."""
        if self._text() != "(":
            return None
        end = next((n for n in range(self.at, len(self.items)) if self.items[n].text == ")"), None)
        if end is None or end + 1 >= len(self.items):
            return None
        words = [t.text for t in self.items[self.at + 1 : end]]
        following = self.items[end + 1]
        begins = following.kind in ("name", "number") or following.text in ("(", "-", "~", "&")
        if not begins or not is_number_type([w for w in words if w != "*"]):
            return None
        self.at = end + 1
        self._depth += 1
        if self._depth > _DEPTH:
            raise Unreadable
        inner = self._unary()
        self._depth -= 1
        return Node("cast", "float" if is_float_type(words) else "", (inner,))

    def _primary(self) -> Node:
        if self.at >= len(self.items):
            raise Unreadable
        token = self.items[self.at]
        self.at += 1
        if token.kind == "number":
            return Node("number", token.text)
        if token.text == "(":
            inner = self.expression(0)
            self._take(")")
            return inner
        if token.text == "{":
            return Node("list", "", self._list("}"))
        if token.kind != "name":
            raise Unreadable
        return self._named(token.text)

    def _named(self, name: str) -> Node:
        if name in _NO_VALUES:
            raise Unreadable
        if name in _CASTS:
            return self._converted(self._template())
        if name == "sizeof":
            return self._sizeof()
        words = [name]
        while self._text() == "::" and self.at + 1 < len(self.items):
            words.append(self._text(1))
            self.at += 2
        while is_number_type(words) and is_number_type([self._text()]) and self._text():
            words.append(self._text())
            self.at += 1
        if self._text() == "<":
            end = template_end(self.items, self.at)
            if self._text(end - self.at) in _CLOSING:
                self.at = end
        return self._converted(words) if is_number_type(words) else Node("name", words[-1])

    def _converted(self, words: Sequence[str]) -> Node:
        """`(x)` or `{x}` behind the name of a type."""
        closing = _CLOSING.get(self._text())
        if closing is None:
            raise Unreadable
        self.at += 1
        given = self._list(closing)
        if len(given) != 1:
            raise Unreadable
        return Node("cast", "float" if is_float_type(words) else "", given)

    def _template(self) -> list[str]:
        end = template_end(self.items, self.at)
        if self._text() != "<" or end == self.at:
            raise Unreadable
        words = [t.text for t in self.items[self.at + 1 : end - 1]]
        self.at = end
        return words

    def _sizeof(self) -> Node:
        self._take("(")
        end = next((n for n in range(self.at, len(self.items)) if self.items[n].text == ")"), None)
        if end is None:
            raise Unreadable
        words = [t.text for t in self.items[self.at : end]]
        self.at = end + 1
        return Node("sizeof", " ".join(words))

    def _list(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while self._text() != closing:
            if found:
                self._take(",")
                if self._text() == closing:
                    break
            found.append(self.expression(0))
        self.at += 1
        return tuple(found)

    def _postfix(self, node: Node) -> Node:
        for _ in range(_DEPTH):
            text = self._text()
            if text in _CLOSING and node.kind in ("name", "member"):
                self.at += 1
                node = Node("call", "", (node, *self._list(_CLOSING[text])))
            elif text == "[":
                self.at += 1
                node = Node("index", "", (node, self.expression(0)))
                self._take("]")
            elif text in (".", "->") and self.at + 1 < len(self.items):
                node = Node("member", self._text(1), (node,))
                self.at += 2
            else:
                return node
        raise Unreadable
