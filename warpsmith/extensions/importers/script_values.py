"""Values of a Python script that are known without running it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

_LONGEST = 200
"""Limit on the characters of a size's text."""


class Unread:
    """Value of a part of a script that is not understood; nothing can be computed with it.

    Args:
        reason: the part, with its line; empty if it is made while the script runs.
    """

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"Unread({self.reason})"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(self.reason)

    __bool__ = __eq__ = _refuse
    __hash__ = object.__hash__


class Size(int):
    """A whole number, and the expression by which the script arrives at it.

    Attributes:
        text: an expression over `Script.sizes`.
    """

    text: str

    def __new__(cls, value: int, text: str) -> "Size":
        """A number with its text."""
        made = super().__new__(cls, value)
        made.text = text
        return made


@dataclass(frozen=True)
class Number:
    """A number of one of NumPy's types."""

    dtype: str
    value: Any
    """A whole number, a float, or an `Unread`."""


@dataclass(frozen=True)
class Array:
    """An array of NumPy, without its elements."""

    shape: tuple[Any, ...]
    """Extents: whole numbers, or an `Unread`."""
    dtype: str = ""
    """Empty if it is not known."""
    fill: int | float | None = None
    """Value of all elements; None if it is not known, or several."""


@dataclass(frozen=True)
class FileText:
    """A text that a file of this name holds."""

    path: str


def plain(value: Any) -> Any:
    """A number as Python has it, without its type and text; other values as they are."""
    if isinstance(value, Number):
        return plain(value.value)
    return int(value) if isinstance(value, Size) else value


def combined(sign: str, left: Any, right: Any, value: int) -> int:
    """The whole number that an operation gives, with the text of both sides if one of them has a text."""
    texts = [v.text if isinstance(v, Size) else str(v) for v in (left, right)]
    text = f"{_factor(texts[0])} {sign} {_factor(texts[1])}"
    is_named = sign and (isinstance(left, Size) or isinstance(right, Size))
    return Size(value, text) if is_named and len(text) <= _LONGEST else value


def product(extents: Iterable[Any]) -> Any:
    """The product of a shape's extents."""
    whole: Any = 1
    for given in extents:
        extent = given.value if isinstance(given, Number) else given
        if isinstance(extent, Unread) or not isinstance(extent, int):
            return Unread()
        whole = extent if whole == 1 else combined("*", whole, extent, int(whole) * int(extent))
    return whole


def _factor(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"
