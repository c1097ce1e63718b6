"""Values of host expressions: arithmetic over variables as they are at a place, and its text in a job."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from warpsmith.domain.expressions import Expression
from warpsmith.errors import ExpressionError
from warpsmith.extensions.scaffold.host.expressions import Node
from warpsmith.source.tree.work_limit import spend

# Kinds of nodes of values: `num`; `sym`, a variable of unknown value, and `named`, one of known value, with
# name and place in `text`; `op`; `float`, around a value that is no integer to the compiler; `quotient`.
_LARGEST = 100
_COMPARED = ("<", ">", "<=", ">=", "==", "!=")
_WORDS = {"&&": "and", "||": "or"}
_CALLS = ("ceil_div", "min", "max")
ONE = Node("num", "1")


@dataclass(frozen=True)
class PassedNames:
    """Names of a kernel's arguments by what the host passes."""

    variables: Mapping[str, str] = field(default_factory=dict)
    """By the text of a `sym` or `named`."""
    values: Mapping[Node, str] = field(default_factory=dict)
    """By a value without the names in it."""


def combined(sign: str, a: Node | None, b: Node | None) -> Node | None:
    """The value of two values and a sign of C between them; None if it cannot be said."""
    if a is None or b is None:
        return None
    if "float" in (a.kind, b.kind):
        return _of_floats(sign, a, b)
    if "quotient" in (a.kind, b.kind):
        return None
    if sign == "/":
        return divided(a, b)
    if sign == "+":
        return _ceiling_of_sum(a, b) or _ceiling_of_sum(b, a) or op("+", a, b)
    if sign in ("-", "*", "%", *_COMPARED):
        return op(sign, a, b)
    if sign in _WORDS:
        return op(_WORDS[sign], a, b)
    return _of_bits(sign, a, b)


def _of_floats(sign: str, a: Node, b: Node) -> Node | None:
    x, y = (n.parts[0] if n.kind == "float" else n for n in (a, b))
    if "quotient" in (x.kind, y.kind):
        return None
    if sign == "/":
        return Node("quotient", "", (x, y))
    made = op(sign, x, y) if sign in ("+", "-", "*") else None
    return None if made is None else Node("float", "", (made,))


def _of_bits(sign: str, a: Node, b: Node) -> Node | None:
    number = number_of(b)
    if number is None:
        return None
    if sign in ("<<", ">>") and 0 <= number < 32:
        power = Node("num", str(2**number))
        return op("*", a, power) if sign == "<<" else divided(a, power)
    power_of_two = abs(number) & (abs(number) - 1) == 0
    if sign == "&" and number < 0 and power_of_two:
        size = Node("num", str(-number))
        whole = divided(a, size)
        return None if whole is None else op("*", whole, size)
    if sign == "&" and number > 0 and number & (number + 1) == 0:
        return op("%", a, Node("num", str(number + 1)))
    return None


def rounded_up(a: Node | None) -> Node | None:
    """`ceil(a)`."""
    if a is not None and a.kind == "quotient":
        return op("ceil_div", *a.parts)
    return whole(a)


def whole(a: Node | None) -> Node | None:
    """A value as an integer of C."""
    if a is None:
        return None
    if a.kind == "quotient":
        return op("//", *a.parts)
    return a.parts[0] if a.kind == "float" else a


def op(sign: str, *parts: Node) -> Node | None:
    """An operation; None if it gets too large or an operand is no integer."""
    if any(p.kind in ("float", "quotient") for p in parts) or sum(map(_size, parts)) > _LARGEST:
        return None
    return Node("op", sign, parts)


def chosen(condition: Node | None, a: Node | None, b: Node | None) -> Node | None:
    """`condition ? a : b`."""
    if condition is None or a is None or b is None:
        return None
    rest = _remainder(condition)
    for up, down, is_up in ((a, b, rest), (b, a, _no_remainder(condition))):
        quotient = None if is_up is None else divided(*is_up)
        if is_up is not None and quotient is not None and stripped(down) == stripped(quotient):
            more = {op("+", stripped(quotient), ONE), op("+", ONE, stripped(quotient))}
            if stripped(up) in more:
                return op("ceil_div", *is_up)
    return op("choice", condition, a, b)


def divided(a: Node, b: Node) -> Node | None:
    """Division of integers; `(a + b - 1) / b` as `ceil_div(a, b)`."""
    for opened in (False, True):
        rest = _without(list(_terms(a, opened)), b)
        if rest is not None:
            return op("ceil_div", rest, b)
    inner = a
    while inner.kind == "named":
        inner = inner.parts[0]
    if inner.kind == "op" and inner.text in ("round", "*") and stripped(b) in map(stripped, inner.parts):
        first, second = inner.parts
        rest = second if stripped(first) == stripped(b) else first
        return op("ceil_div", rest, b) if inner.text == "round" else rest
    return op("//", a, b)


def _terms(a: Node, opened: bool, sign: int = 1) -> Iterator[tuple[int, Node]]:
    """Terms of a sum with their signs; those of variables too if they are opened."""
    spend(1)
    if opened and a.kind == "named":
        inner = list(_terms(a.parts[0], opened, sign))
        yield from inner if len(inner) > 1 else [(sign, a)]
    elif a.kind == "op" and a.text in ("+", "-"):
        yield from _terms(a.parts[0], opened, sign)
        yield from _terms(a.parts[1], opened, sign if a.text == "+" else -sign)
    else:
        yield sign, a


def _without(terms: list[tuple[int, Node]], b: Node) -> Node | None:
    """The sum without `b - 1`; None if it does not contain that."""
    constant, others = _parted(terms)
    less = (number_of(b) or 1) - 1
    if others and constant == less > 0:
        return _sum(others)
    added = [(n, t) for n, (sign, t) in enumerate(others) if sign > 0]
    same: list[int] = []
    if constant == -1:
        same = _same_as(b, added)
    elif constant == 0 < less:
        same = [n for n, t in added if t.kind == "named" and number_of(t) == less]
    return _sum(others[: same[0]] + others[same[0] + 1 :]) if same and len(others) > 1 else None


def _parted(terms: Iterable[tuple[int, Node]]) -> tuple[int, list[tuple[int, Node]]]:
    """The sum of the terms that are numbers, and the other terms."""
    listed = list(terms)
    constant = sum(sign * int(t.text) for sign, t in listed if t.kind == "num")
    return constant, [(sign, t) for sign, t in listed if t.kind != "num"]


def _same_as(b: Node, added: list[tuple[int, Node]]) -> list[int]:
    """Numbers of the terms that are a value by its name, else of those that are the same value."""
    key = stripped(b)
    same = [n for n, t in added if (t.text, t.kind) == (b.text, b.kind)]
    return same or [n for n, t in added if stripped(t) == key]


def _sum(terms: list[tuple[int, Node]]) -> Node | None:
    terms.sort(key=lambda t: -t[0])
    sign, total = terms[0]
    if sign < 0:
        return None
    for sign, t in terms[1:]:
        made = op("+" if sign > 0 else "-", total, t)
        if made is None:
            return None
        total = made
    return total


def _ceiling_of_sum(quotient: Node, more: Node) -> Node | None:
    """`(a - 1) / b + 1` and `a / b + (a % b != 0)` as `ceil_div(a, b)`."""
    if quotient.kind != "op" or quotient.text != "//":
        return None
    a, b = quotient.parts
    if more == ONE:
        constant, others = _parted(_terms(a, opened=False))
        rest = _sum(others) if constant == -1 and others else None
        return None if rest is None else op("ceil_div", rest, b)
    if more.kind == "op" and more.text == "choice" and [p.text for p in more.parts[1:]] == ["1", "0"]:
        more = more.parts[0]
    rest_of = _remainder(more)
    same = rest_of is not None and tuple(map(stripped, rest_of)) == (stripped(a), stripped(b))
    return op("ceil_div", a, b) if same else None


def _remainder(a: Node) -> tuple[Node, Node] | None:
    """`x` and `y` of `x % y != 0`."""
    if a.kind == "op" and a.text in ("!=", ">") and a.parts[1] == Node("num", "0"):
        a = a.parts[0]
    return (a.parts[0], a.parts[1]) if a.kind == "op" and a.text == "%" else None


def _no_remainder(a: Node) -> tuple[Node, Node] | None:
    if a.kind == "op" and a.text == "==" and a.parts[1] == Node("num", "0") and a.parts[0].text == "%":
        return _remainder(a.parts[0])
    return None


def stripped(a: Node) -> Node:
    """A value without the names of known variables."""
    spend(1)
    if a.kind == "named":
        return stripped(a.parts[0])
    return Node(a.kind, a.text, tuple(map(stripped, a.parts))) if a.parts else a


def _size(a: Node) -> int:
    spend(1)
    return 1 + sum(map(_size, a.parts))


def number_of(a: Node) -> int | None:
    """The number that a value is; None if it has none."""
    text = rendered(a, PassedNames())
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None


def rendered(a: Node | None, names: PassedNames) -> str | None:
    """A value as an expression of a job; None if it depends on anything but the names."""
    if a is None:
        return None
    found = _text(a, names)
    return None if found is None else found[0]


def _text(a: Node, names: PassedNames) -> tuple[str, int] | None:
    """Text, and how strongly it binds: 3 for a word or call."""
    spend(1)
    if a.kind == "num":
        return a.text, 3 if a.text.isdecimal() else 1
    if a.text in names.variables and a.kind in ("sym", "named"):
        return names.variables[a.text], 3
    if a.kind != "sym" and names.values and (found := names.values.get(stripped(a))) is not None:
        return found, 3
    if a.kind == "named":
        return _text(a.parts[0], names)
    if a.kind != "op":
        return None
    known = [part for p in a.parts if (part := _text(p, names)) is not None]
    if len(known) < len(a.parts):
        return None
    text, level = _joined(a.text, known)
    return None if level < 0 else _folded(text, level, known)


def _folded(text: str, level: int, parts: list[tuple[str, int]]) -> tuple[str, int] | None:
    """An operation as it is, or as a number if its parts are numbers; None if that has no value."""
    if not all(re.fullmatch(r"-?\d+", p[0]) for p in parts):
        return text, level
    try:
        return str(Expression(text).integer({})), 3
    except ExpressionError:
        return None


def _joined(sign: str, parts: list[tuple[str, int]]) -> tuple[str, int]:
    """An operation on texts; a level below zero for one that a job cannot say."""
    words = [text for text, _ in parts]
    if sign in _CALLS:
        if sign == "ceil_div" and words[1] == "1":
            return parts[0]
        return f"{sign}({', '.join(words)})", 3
    if sign == "choice":
        return f"({words[1]} if {words[0]} else {words[2]})", 3
    if sign == "round":
        return "", -1
    level = 1 if sign in ("+", "-") else 2 if sign in ("*", "//", "%") else 0
    if sign in ("*", "//") and words[1] == "1":
        return parts[0]
    if sign == "*" and words[0] == "1":
        return parts[1]
    left = words[0] if parts[0][1] >= max(level, 1) else f"({words[0]})"
    right = words[1] if parts[1][1] > level else f"({words[1]})"
    return f"{left} {sign} {right}", level
