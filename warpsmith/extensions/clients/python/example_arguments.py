"""Arrays of a program as examples of a kernel's arguments: element type, shape, and how to draw others.

NumPy arrays, torch and CuPy tensors, and whatever else has `shape` and `dtype`. Nothing is imported for them,
and their data is not sent.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.domain.arguments.draw import Distribution
from warpsmith.domain.dtype import Dtype
from warpsmith.errors import InvalidInput

Array = np.ndarray[Any, Any]
_DIGITS = 6
"""Significant digits of a draw's numbers."""
_LEAST_ARRANGED = 8
"""Elements below which an order may be chance."""


@dataclass(frozen=True)
class Example:
    """An array of the caller's.

    Args:
        name: argument that it stands for.
    """

    name: str
    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return tuple(int(extent) for extent in self.array.shape)

    @property
    def dtype(self) -> Dtype:
        """Its element type.

        Raises:
            InvalidInput: the job form has no such type.
        """
        name = dtype_name(self.array)
        try:
            return Dtype(name)
        except ValueError:
            hint = "; use its real numbers: .view() of half the type" if name.startswith("complex") else ""
            words = f"the example has {name}, which no argument can have{hint}; types: {', '.join(Dtype)}"
            raise InvalidInput(f"arguments.{self.name}", words) from None

    def values(self) -> Array:
        """Its data on this machine's host, in a type that NumPy has."""
        held = self.array
        if isinstance(held, np.ndarray):
            return held
        if hasattr(held, "detach"):
            held = held.detach().cpu()
            if "bfloat" in str(held.dtype) or "float8" in str(held.dtype):
                held = held.float()
            return np.asarray(held.numpy())
        return np.asarray(held.get() if hasattr(held, "get") else held)


def is_example(value: object) -> bool:
    """True if a value is an array; a number of NumPy is none."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def dtype_name(array: Any) -> str:
    """Name of an array's element type: `float32`, also for `torch.float32`."""
    return str(getattr(array.dtype, "name", array.dtype)).rpartition(".")[2]


def draw_of(example: Example, dimensions: Mapping[str, int], *, varied: bool = False) -> dict[str, Any]:
    """A `draw` of the job form that gives arrays like an example.

    Equal elements are a constant. Floats are normal, with about the example's mean and deviation, if some are
    below zero and some above; other floats are uniform from least to greatest. Integers and truth values lie
    from least to greatest. Those of one axis are a permutation if they are every integer of a range once, and
    offsets if they never decrease. An upper bound that is exactly one dimension becomes that.

    Args:
        dimensions: those of the workload that the example belongs to.
        varied: draw floats that are all equal at random, with a warning; a single one stays.

    Raises:
        InvalidInput: it has no finite number.
    """
    values = example.values()
    if example.dtype.is_float:
        wide = values.astype(np.float64).ravel()
        finite = wide[np.isfinite(wide)]
        if not finite.size:
            raise InvalidInput(f"arguments.{example.name}", "the example has no finite number; fill it in")
        if varied and finite.size > 1 and finite.min() == finite.max():
            keep = f'{{"distribution": "constant", "low": {_short(finite[0])}}}'
            words = f"{example.name} is {_short(finite[0])} everywhere; drawn uniform in [0, 1) instead"
            why = f"as a constant would let a wrong kernel pass (to keep it, give the draw {keep})"
            warnings.warn(f"{words}, {why}", stacklevel=8)
            return {"distribution": Distribution.UNIFORM, "low": 0.0, "high": 1.0}
        return _of_floats(finite)
    if not values.size:
        raise InvalidInput(f"arguments.{example.name}", "the example is empty; give one with elements")
    return _of_integers(values, dimensions)


def _of_floats(values: Array) -> dict[str, Any]:
    low, high = _short(values.min()), _short(values.max())
    if low == high:
        return {"distribution": Distribution.CONSTANT, "low": low}
    if low < 0 < high:
        # Coarse enough that other random values of the same kind give the same job.
        std = _short(values.std(), 2)
        return {
            "distribution": Distribution.NORMAL,
            "mean": _short(round(float(values.mean()) / std, 1) * std) + 0.0,
            "std": std,
        }
    return {"distribution": Distribution.UNIFORM, "low": low, "high": high}


def _of_integers(values: Array, dimensions: Mapping[str, int]) -> dict[str, Any]:
    low, high = int(values.min()), int(values.max())
    if low == high:
        return {"distribution": Distribution.CONSTANT, "low": low}
    if values.dtype != bool and values.ndim == 1 and values.size >= _LEAST_ARRANGED:
        if high - low + 1 == values.size and np.unique(values).size == values.size:
            return {"distribution": Distribution.PERMUTATION, "low": low}
        steps = np.diff(values.astype(np.int64))
        if steps.min() >= 0:
            least = int(steps.min())
            ends = {"low": int(values[0]), "high": _bound(high, dimensions)}
            return {"distribution": Distribution.OFFSETS, **ends, "least": least}
    return {"distribution": Distribution.INTEGERS, "low": low, "high": _bound(high + 1, dimensions)}


def _bound(number: int, dimensions: Mapping[str, int]) -> int | str:
    """A bound that is exactly one dimension, as that dimension."""
    named = [name for name, size in dimensions.items() if size == number]
    return named[0] if len(named) == 1 and number > 1 else number


def _short(number: Any, digits: int = _DIGITS) -> float:
    return float(f"{float(number):.{digits}g}")
