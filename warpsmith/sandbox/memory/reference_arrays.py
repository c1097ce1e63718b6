"""Array libraries of a NumPy reference: NumPy on the host, or CuPy on a device.

CuPy computes what NumPy does, with the same names; see https://docs.cupy.dev/en/stable/user_guide/difference.html
for where it differs. What it lacks is an error of the reference here, and the caller asks NumPy instead.
"""

import builtins
import importlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan, Family
from warpsmith.sandbox.memory.device_kernels import use_folder
from warpsmith.verify.dtypes import as_wanted, has_table, reference_dtype, values_of_patterns, wanted_dtype
from warpsmith.verify.inputs import draw_buffer, draw_wide, tiles_of

MODULE = "cupy"
_INSTEAD = {"numpy": "cupy", "scipy": "cupyx.scipy"}
"""Packages of a reference, and what stands for them on a device."""
_FROM_HOST = frozenset({"errstate", "ndindex", "seterr"})
"""Names of NumPy that touch no array."""


class ReferenceArrays(Protocol):
    """Makes a reference's inputs, and brings back its outputs."""

    def input(self, buffer: BufferPlan, seed: int, variant: int, family: Family) -> Any:
        """The elements of a buffer, flat, in `reference_dtype`."""
        ...

    def globals(self) -> dict[str, Any]:
        """Names that a reference begins with."""
        ...

    def array(self, found: Any) -> Any:
        """Convert an output of a reference to an array."""
        ...

    def wanted(self, array: Any, dtype: Dtype) -> NDArray[Any]:
        """See `as_wanted`."""
        ...

    def done(self) -> None:
        """Called when a case is answered; nothing of it is needed any more."""
        ...


class HostArrays:
    """Implements `ReferenceArrays` with NumPy."""

    def input(self, buffer: BufferPlan, seed: int, variant: int, family: Family) -> NDArray[Any]:
        """See `ReferenceArrays.input`."""
        return draw_wide(buffer, seed, variant, family)

    def globals(self) -> dict[str, Any]:
        """See `ReferenceArrays.globals`."""
        return {"np": np}

    def array(self, found: Any) -> NDArray[Any]:
        """See `ReferenceArrays.array`."""
        return np.asarray(found)

    def wanted(self, array: NDArray[Any], dtype: Dtype) -> NDArray[Any]:
        """See `ReferenceArrays.wanted`."""
        return as_wanted(array, dtype)

    def done(self) -> None:
        """See `ReferenceArrays.done`."""


class DeviceArrays:
    """Implements `ReferenceArrays` with CuPy on a device of this machine.

    Args:
        index: number of the device.
        kernels: folder of compiled kernels, which this process may read only; None: each is compiled.
    """

    def __init__(self, index: int, kernels: Path | None = None) -> None:
        if kernels is None or not use_folder(kernels):
            os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
        self._cupy: Any = importlib.import_module(MODULE)
        self._cupy.cuda.Device(index).use()
        # What a driver and its libraries open, they open here, before the process is confined.
        self._cupy.arange(8, dtype=np.float64).sum().item()

    def input(self, buffer: BufferPlan, seed: int, variant: int, family: Family) -> Any:
        """See `ReferenceArrays.input`. Of large buffers the pool is sent, and the device copies its tiles."""
        wide = reference_dtype(buffer.dtype)
        tiles = tiles_of(buffer, seed, variant, family)
        if tiles is None:
            return self._wide(draw_buffer(buffer, seed, variant, family), buffer.dtype, wide)
        pool = self._wide(tiles.pool, buffer.dtype, wide)
        out = self._cupy.empty(buffer.elements, dtype=wide)
        begin = 0
        for piece in replace(tiles, pool=pool).pieces():
            out[begin : begin + piece.size] = piece
            begin += piece.size
        return out

    def _wide(self, values: NDArray[Any], dtype: Dtype, wide: "np.dtype[Any]") -> Any:
        values = np.ascontiguousarray(values)
        if dtype.is_float and has_table(values.dtype):
            table = self._cupy.asarray(values_of_patterns(values.dtype))
            patterns = values.view(np.uint16 if values.itemsize == 2 else np.uint8)
            return table[self._cupy.asarray(patterns).astype(np.int32)]
        return self._cupy.asarray(values).astype(wide)

    def globals(self) -> dict[str, Any]:
        """See `ReferenceArrays.globals`."""
        known = {**vars(builtins), "__import__": _import}
        return {"np": _Instead(np, self._cupy), "__builtins__": known}

    def array(self, found: Any) -> Any:
        """See `ReferenceArrays.array`."""
        return self._cupy.asarray(found)

    def wanted(self, array: Any, dtype: Dtype) -> NDArray[Any]:
        """See `ReferenceArrays.wanted`."""
        wanted, cupy = wanted_dtype(dtype), self._cupy
        kept = cupy.ascontiguousarray(array.astype(wanted)).reshape(-1)
        if wanted == np.float32 and kept.size and not math.isfinite(float(kept.max() - kept.min())):
            beyond = cupy.isinf(kept) & cupy.isfinite(array.reshape(-1))
            kept = cupy.where(beyond, cupy.copysign(np.finfo(np.float32).max, kept), kept).astype(wanted)
        found: NDArray[Any] = cupy.asnumpy(kept)
        return found

    def done(self) -> None:
        """Give the memory back, which candidates need."""
        self._cupy.get_default_memory_pool().free_all_blocks()


class _Instead(ModuleType):
    """A module whose names are those of another one that has the same."""

    def __init__(self, named: ModuleType, instead: Any) -> None:
        super().__init__(named.__name__)
        self.__dict__["_named"], self.__dict__["_instead"] = named, instead

    def __getattr__(self, name: str) -> Any:
        if name in _FROM_HOST:
            return getattr(self._named, name)
        found = getattr(self._instead, name)
        if not isinstance(found, ModuleType):
            return found
        return _Instead(found, found)


def _import(
    name: str,
    names: Mapping[str, object] | None = None,
    local: Mapping[str, object] | None = None,
    wanted: Sequence[str] = (),
    level: int = 0,
) -> Any:
    """`__import__` of a reference: packages of `_INSTEAD` are replaced."""
    top, _, rest = name.partition(".")
    if level or top not in _INSTEAD:
        return builtins.__import__(name, names, local, wanted, level)
    package = importlib.import_module(_INSTEAD[top])
    if rest:
        inner = importlib.import_module(f"{_INSTEAD[top]}.{rest}")
        if wanted:
            return _Instead(inner, inner)
    return _Instead(np if top == "numpy" else package, package)
