"""Functions of Python and NumPy, as far as scripts use them to make sizes and arrays."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warpsmith.extensions.importers.script_values import (
    UNKNOWN,
    Array,
    FileText,
    Number,
    Size,
    plain,
    product,
)

_WIDTHS = {"float": (16, 32, 64), "int": (8, 16, 32, 64), "uint": (8, 16, 32, 64)}
DTYPES = frozenset(f"{kind}{width}" for kind, widths in _WIDTHS.items() for width in widths)
_MOST_VALUES = 20_000
"""Limit on the length of a list."""
_ROUNDED: Mapping[str, Callable[[float], int]] = {
    "int": int,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
}
_EXTREMES: Mapping[str, Callable[..., Any]] = {"min": min, "amin": min, "max": max, "amax": max}


def _dtype(value: Any) -> str:
    """The value, if it is the name of a type; else empty."""
    return value if isinstance(value, str) and value in DTYPES else ""


def function_value(name: str, owner: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The value of a function of Python or NumPy; `UNKNOWN` for others.

    Args:
        name: last part of its name.
        owner: value of what the function is an attribute of.
    """
    first = arguments[0] if arguments else UNKNOWN
    if name in DTYPES:
        return _number(name, first)
    if name == "open" and isinstance(first, str):
        return FileText(first)
    if (
        isinstance(owner, Array | FileText | list | dict)
        and (made := _member(name, owner, first)) is not None
    ):
        return made
    for found in (_container(name, arguments, keywords), _whole(name, arguments)):
        if found is not None:
            return found
    return _array(name, arguments, keywords)


def _number(dtype: str, given: Any) -> Number:
    value = given.value if isinstance(given, Number) else given
    return Number(dtype, Size(int(value)) if "int" in dtype and type(value) is float else value)


def _container(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A list, tuple or mapping; None for other functions."""
    first = arguments[0] if arguments else UNKNOWN
    match name:
        case "OrderedDict" | "dict":
            pairs = first.items() if isinstance(first, dict) else first if isinstance(first, list) else []
            return {plain(p[0]): p[1] for p in pairs if len(p) == 2} | dict(keywords)
        case "range" | "arange":
            return _range([plain(a) for a in arguments])
        case "list" | "sorted" | "array" | "asarray" if isinstance(first, list | tuple):
            return list(first)
        case "tuple" if isinstance(first, list | tuple):
            return tuple(first)
        case "map" if len(arguments) == 2 and _dtype(first) and isinstance(arguments[1], list | tuple):
            return [_number(first, value) for value in arguments[1]]
    return None


def _range(bounds: Sequence[Any]) -> Any:
    if not 1 <= len(bounds) <= 3 or not all(type(b) is int for b in bounds) or 0 in bounds[2:]:
        return UNKNOWN
    values = range(*bounds)
    return [Size(v) for v in values] if len(values) <= _MOST_VALUES else UNKNOWN


def _member(name: str, owner: Any, first: Any) -> Any:
    """The result of a method of a file, an array, a list or a mapping; None for others."""
    match name, owner:
        case "read", FileText():
            return owner
        case "astype" | "view", Array(shape, dtype):
            return Array(shape, _dtype(first) or dtype)
        case "ravel" | "flatten", Array(shape, dtype):
            return Array((product(shape),), dtype)
        case "copy", Array():
            return owner
        case "copy", list() | dict():
            return owner.copy()
    return None


def _whole(name: str, arguments: Sequence[Any]) -> Any:
    """A whole number that Python computes of other values; None for other functions."""
    first = arguments[0] if arguments else UNKNOWN
    if name in _EXTREMES:
        values = first if isinstance(first, list | tuple) else arguments
        is_known = values and all(type(v) in (Size, int, float) for v in values)
        return _EXTREMES[name](values) if is_known else None
    if name == "len" and isinstance(first, list | tuple | dict):
        return Size(len(first))
    if name == "prod" and isinstance(first, list | tuple):
        return product(first)
    if name not in _ROUNDED or type(plain(first)) not in (int, float):
        return None
    number = plain(first)
    if isinstance(first, Size):
        return first
    return Size(_ROUNDED[name](float(number))) if math.isfinite(number) else UNKNOWN


def _array(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The array that a function of NumPy makes."""
    first = arguments[0] if arguments else UNKNOWN
    dtype = _dtype(keywords.get("dtype")) or next((d for a in arguments[1:] if (d := _dtype(a))), "")
    match name:
        case "randn" | "rand":
            return Array(tuple(arguments))
        case "zeros" | "ones" | "empty" | "full" | "random" | "random_sample" | "standard_normal":
            return Array(_shape(keywords.get("size", keywords.get("shape", first))), dtype or "float64")
        case "normal" | "uniform" | "randint" | "integers":
            size = keywords.get("size", arguments[2] if len(arguments) > 2 else UNKNOWN)
            kind = "int64" if name in ("randint", "integers") else "float64"
            return Array(_shape(size), dtype or kind)
        case "zeros_like" | "ones_like" | "empty_like" | "copy" | "abs" | "absolute" | "sqrt" | "exp":
            if isinstance(first, Array):
                return Array(first.shape, dtype or first.dtype)
    return UNKNOWN


def _shape(size: Any) -> tuple[Any, ...]:
    return tuple(size) if isinstance(size, list | tuple) else (size,)
