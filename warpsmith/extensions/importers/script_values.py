"""Values of a Python script that are known without running it."""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

MOST_VALUES = 20_000
"""Limit on the length of a list, and on the rounds of a comprehension."""
_BIGGEST = 2**63


class _Unknown:
    """The value of what is not understood."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final[Any] = _Unknown()


@dataclass(frozen=True)
class Size:
    """A whole number, and how the script arrives at it."""

    value: int
    text: str
    """An expression over `Script.sizes`."""


@dataclass(frozen=True)
class Number:
    """A number of one of NumPy's types."""

    dtype: str
    value: Any
    """A `Size`, a float, or `UNKNOWN`."""


@dataclass(frozen=True)
class Array:
    """An array of NumPy, without its elements."""

    shape: tuple[Any, ...]
    """Extents, `Size` or `UNKNOWN`."""
    dtype: str = "float64"


@dataclass(frozen=True)
class Text:
    """A text that a file of this name holds."""

    path: str


def plain(value: Any) -> Any:
    """A value as Python has it, without texts."""
    if isinstance(value, Number):
        return plain(value.value)
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, list):
        return tuple(plain(v) for v in value)
    return value.value if isinstance(value, Size) else value


_ARITHMETIC: Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Div: ("/", operator.truediv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    """The value of an operation on two numbers, with the text of both if it is whole."""
    if type(op) not in _ARITHMETIC or not all(type(v) in (int, float, Size) for v in (left, right)):
        return UNKNOWN
    sign, function = _ARITHMETIC[type(op)]
    a, b = plain(left), plain(right)
    if isinstance(op, ast.Pow) and (abs(a) > 2**16 or abs(b) > 64):
        return UNKNOWN
    try:
        value = function(a, b)
    except (ArithmeticError, ValueError):
        return UNKNOWN
    if isinstance(value, complex) or abs(value) > _BIGGEST:
        return UNKNOWN
    if type(value) is not int:
        return value
    texts = [v.text if isinstance(v, Size) else str(v) for v in (left, right)]
    if all(text.isdecimal() for text in texts):
        return Size(value, str(value))
    return Size(value, " ".join((_factor(texts[0]), sign, _factor(texts[1]))))


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdecimal() else f"({text})"


def compared(op: ast.cmpop, left: Any, right: Any) -> Any:
    """The value of a comparison."""
    left, right = plain(left), plain(right)
    if type(op) not in _COMPARISONS or UNKNOWN in (left, right):
        return UNKNOWN
    try:
        return bool(_COMPARISONS[type(op)](left, right))
    except TypeError:
        return UNKNOWN


def product(extents: Iterable[Any]) -> Any:
    """The product of a shape's extents."""
    whole: Any = Size(1, "1")
    for given in extents:
        extent = given.value if isinstance(given, Number) else given
        whole = extent if plain(whole) == 1 else arithmetic(ast.Mult(), whole, extent)
    return whole
