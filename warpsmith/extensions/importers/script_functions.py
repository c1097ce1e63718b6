"""Functions of NumPy and of its numbers, as far as scripts use them to make sizes and arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

from warpsmith.extensions.importers.script_values import (
    Array,
    FileText,
    Number,
    Size,
    Unread,
    plain,
    product,
)

_WIDTHS = {"float": (16, 32, 64), "int": (8, 16, 32, 64), "uint": (8, 16, 32, 64)}
_NAMES = {"float": "float64", "double": "float64", "single": "float32", "half": "float16"}
_NAMES |= {"int": "int64", "intc": "int32", "uintc": "uint32"}
DTYPES = frozenset((*(f"{kind}{width}" for kind, widths in _WIDTHS.items() for width in widths), *_NAMES))
"""Words that name a type of NumPy."""
_FILLED = {"zeros": 0, "zeros_like": 0, "ones": 1, "ones_like": 1}
_LIKE = ("zeros_like", "ones_like", "empty_like", "full_like")
_COPIES = ("copy", "ascontiguousarray", "array", "asarray")
_ELEMENTWISE = ("abs", "absolute", "sqrt", "exp")
_DRAWN = {"rand": 0, "randn": 0, "random": 0, "random_sample": 0, "standard_normal": 0}
_DRAWN |= dict.fromkeys(("normal", "uniform", "randint", "integers"), 2)
"""Parameters before its size that a function has which draws numbers."""


def _dtype(value: Any) -> str:
    """The value, if it is the name of a type; else empty."""
    return _NAMES.get(value, value) if isinstance(value, str) and value in DTYPES else ""


def function_value(name: str, owner: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The value of a function of NumPy or of a file; None for others.

    Args:
        name: last part of its name.
        owner: value of what the function is an attribute of.
    """
    first = arguments[0] if arguments else None
    if name in DTYPES and name not in ("int", "float"):
        return Number(_dtype(name), int(first) if "int" in name and type(first) is float else _held(first))
    if isinstance(owner, Array | FileText | list):
        made = _member(name, owner, arguments)
        if made is not None:
            return made
    made = _of_values(name, first, arguments)
    return _array(name, first, arguments, keywords) if made is None else made


def _held(given: Any) -> Any:
    return given.value if isinstance(given, Number) else given


def _of_values(name: str, first: Any, arguments: Sequence[Any]) -> Any:
    """A file, numbers of a type, or a number that keeps its text; None for other functions."""
    match name, first:
        case "open", str():
            return FileText(first)
        case "map", str() if _dtype(first) and isinstance(arguments[-1], list | tuple):
            return [Number(_dtype(first), _held(value)) for value in arguments[-1]]
        case "prod", list() | tuple():
            return product(first)
        case "len", Array():
            return first.shape[0]
        case ("dtype", _) | ("int" | "ceil" | "floor" | "round" | "abs", Size()):
            return first
    return None


def _member(name: str, owner: Any, arguments: Sequence[Any]) -> Any:
    """The result of a method of a file, an array or a list; None for others."""
    dtype = _dtype(arguments[0]) if arguments else ""
    match name, owner:
        case ("read", FileText()) | ("copy", Array()) | ("tolist", list()):
            return owner
        case "astype", Array(shape, _, fill):
            return Array(shape, dtype, fill)
        case "view", Array():
            return Array((Unread(),), dtype)
        case "astype", list():
            return Array((len(owner),), dtype)
        case "ravel" | "flatten", Array(shape, own, fill):
            return Array((product(shape),), own, fill)
        case "reshape", Array(shape, own, fill):
            extents = _shape(arguments[0] if len(arguments) == 1 else tuple(arguments))
            is_flat = any(type(e) is int and e == -1 for e in extents)
            return Array((product(shape),) if is_flat else extents, own, fill)
    return None


def _array(name: str, first: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The array that a function of NumPy makes; None for other functions."""
    given = keywords.get("dtype", next((a for a in arguments[1:] if isinstance(a, str | Unread)), None))
    dtype = _dtype(given)
    if name in ("zeros", "ones", "empty", "full"):
        usual = "float64" if given is None and name != "full" else ""
        fill = _fill(name, arguments, keywords)
        return Array(_shape(keywords.get("shape", first)), dtype or usual, fill)
    if name in _DRAWN:
        usual = "int64" if name in ("randint", "integers") else "float64"
        size = arguments if name in ("rand", "randn") else next(iter(arguments[_DRAWN[name] :]), Unread())
        return Array(_shape(keywords.get("size", size)), dtype or (usual if given is None else ""))
    fill = first.fill if isinstance(first, Array) and name in _COPIES else _fill(name, arguments, keywords)
    return _like(name, first, given, fill)


def _like(name: str, first: Any, given: Any, fill: int | float | None) -> Any:
    """An array of the extents of another or of a list; None for other functions."""
    dtype = _dtype(given)
    if isinstance(first, Array) and name in (*_LIKE, *_COPIES, *_ELEMENTWISE):
        return Array(first.shape, dtype or (first.dtype if given is None else ""), fill)
    if name in ("array", "asarray") and isinstance(first, list | tuple):
        return list(first) if given is None else Array((len(first),), dtype)
    return Array((Unread(),), dtype) if dtype else None


def _fill(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> int | float | None:
    """The value of all elements of an array that a function makes; None if there is none."""
    usual = arguments[1] if name.startswith("full") and len(arguments) > 1 else _FILLED.get(name)
    value = plain(keywords.get("fill_value", usual))
    return value if type(value) in (int, float) else None


def _shape(size: Any) -> tuple[Any, ...]:
    return tuple(size) if isinstance(size, list | tuple) else (size,)
