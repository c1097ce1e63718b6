"""Values of a Python script that are known without running it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final


class _UnknownValue:
    """Value of a part of a script that is not understood."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final[Any] = _UnknownValue()


class Size(int):
    """A whole number, and the expression by which the script arrives at it.

    Attributes:
        text: an expression over `Script.sizes`.
    """

    text: str

    def __new__(cls, value: int, text: str = "") -> "Size":
        """A number; without a text it is one that the script writes out."""
        made = super().__new__(cls, value)
        made.text = text or str(value)
        return made


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
class FileText:
    """A text that a file of this name holds."""

    path: str


def plain(value: Any) -> Any:
    """A value as Python has it, without texts."""
    if isinstance(value, Number):
        return plain(value.value)
    if isinstance(value, list | tuple):
        return tuple(plain(v) for v in value)
    return int(value) if isinstance(value, Size) else value


def combined(sign: str, left: Any, right: Any, value: int) -> Size:
    """The whole number that an operation gives, with the text of both of its sides."""
    texts = [v.text if isinstance(v, Size) else str(v) for v in (left, right)]
    if all(text.isdecimal() for text in texts):
        return Size(value)
    return Size(value, f"{_factor(texts[0])} {sign} {_factor(texts[1])}")


def product(extents: Iterable[Any]) -> Any:
    """The product of a shape's extents."""
    whole: Any = Size(1)
    for given in extents:
        extent = given.value if isinstance(given, Number) else given
        if whole == 1:
            whole = extent
        elif isinstance(whole, int) and isinstance(extent, int):
            whole = combined("*", whole, extent, int(whole) * int(extent))
        else:
            return UNKNOWN
    return whole


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdecimal() else f"({text})"
