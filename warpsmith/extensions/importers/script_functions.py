"""Functions of Python and NumPy, as far as scripts use them to make sizes and arrays."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from warpsmith.extensions.importers.script_values import (
    MOST_VALUES,
    UNKNOWN,
    Array,
    Number,
    Size,
    Text,
    plain,
    product,
)

DTYPES = frozenset(
    (
        "float16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    )
)


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
    for made in (_container(name, arguments, keywords), _member(name, owner, first), _whole(name, arguments)):
        if made is not None:
            return made
    return _array(name, arguments, keywords)


def _number(dtype: str, given: Any) -> Number:
    value = given.value if isinstance(given, Number) else given
    if dtype.startswith(("int", "uint")) and type(value) is float:
        value = Size(int(value), str(int(value)))
    return Number(dtype, value)


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
    return [Size(v, str(v)) for v in values] if len(values) <= MOST_VALUES else UNKNOWN


def _member(name: str, owner: Any, first: Any) -> Any:
    """What a method of a file or an array gives; None for others."""
    match name:
        case "open" if isinstance(first, str):
            return Text(first)
        case "read" if isinstance(owner, Text):
            return owner
        case "astype" | "view" if isinstance(owner, Array):
            return Array(owner.shape, _dtype(first) or owner.dtype)
        case "ravel" | "flatten" if isinstance(owner, Array):
            return Array((product(owner.shape),), owner.dtype)
        case "copy" if isinstance(owner, list | dict):
            return owner.copy()
        case "copy" if isinstance(owner, Array):
            return owner
    return None


def _whole(name: str, arguments: Sequence[Any]) -> Any:
    """A whole number that Python computes of others; None for other functions."""
    first = arguments[0] if arguments else UNKNOWN
    values = list(first) if isinstance(first, list | tuple) else list(arguments)
    match name:
        case "min" | "amin" if values and all(type(v) in (Size, int, float) for v in values):
            return min(values, key=plain)
        case "max" | "amax" if values and all(type(v) in (Size, int, float) for v in values):
            return max(values, key=plain)
        case "len" if isinstance(first, list | tuple | dict):
            return Size(len(first), str(len(first)))
        case "prod" if isinstance(first, list | tuple):
            return product(first)
        case "int" | "ceil" | "floor" | "round" if type(plain(first)) in (int, float):
            if isinstance(first, Size):
                return first
            number = float(plain(first))
            if not math.isfinite(number):
                return UNKNOWN
            rounded = {"int": int(number), "ceil": math.ceil(number), "floor": math.floor(number)}
            whole = rounded.get(name, round(number))
            return Size(whole, str(whole))
    return None


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
