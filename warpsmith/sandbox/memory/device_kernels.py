"""Kernels that CuPy compiles for references, kept on disk: what most references call, compiled ahead.

CuPy compiles a kernel for every operation, type and layout when it first meets it, in a tenth of a second;
a usual reference has twenty. `compile_usual` meets the usual ones. The folder is written by that alone and
never by a process that runs a job's code, which could leave a wrong kernel there for other jobs.
"""

import contextlib
import importlib
import itertools
import operator
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from warpsmith.sandbox.transport.child import take_channel

DONE = "done-{}-of-{}"
"""File that says that a part is complete."""
PARTS = 8
"""Processes that compile at once."""
UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "tanh", "sin", "cos", "sinh", "cosh", "arctan"),
    *("abs", "sign", "floor", "ceil", "rint", "square", "negative", "isnan", "isfinite", "logical_not"),
)
BINARY = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "floor_divide", "remainder"),
    *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
)
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "argmax", "argmin", "var", "std", "any", "all")
ROWS, COLUMNS = 8, 64

Call = Callable[[], object]


def use_folder(folder: Path) -> bool:
    """Have CuPy read compiled kernels from a folder and write none; False if this CuPy cannot."""
    try:
        compiler: Any = importlib.import_module("cupy.cuda.compiler")
        kept: Any = importlib.import_module("cupy.cuda._compiler_cache")

        class ReadOnly(kept.DiskKernelCacheBackend):  # type: ignore[misc]
            """Cache of compiled kernels that is read only: kernels of this process are lost with it."""

            def save(self, name: str, cubin: bytes, source: str) -> None:
                """Keep nothing."""

        compiler._set_kernel_cache_backend(ReadOnly(str(folder)))
    except (ImportError, AttributeError, OSError):
        return False
    return True


def is_complete(folder: Path) -> bool:
    """True if a folder has all parts of the usual kernels."""
    return all((folder / DONE.format(part, PARTS)).exists() for part in range(PARTS))


def main(argument: dict[str, Any]) -> None:
    """Compile a part of the usual kernels into a folder, at leisure, in a process that runs no job's code."""
    take_channel()
    # They take seconds of every core, and whatever a job does beside them comes first.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    folder = Path(argument["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    cupy: Any = importlib.import_module("cupy")
    cupy.cuda.Device(int(argument["device"])).use()
    compiler: Any = importlib.import_module("cupy.cuda.compiler")
    kept: Any = importlib.import_module("cupy.cuda._compiler_cache")
    compiler._set_kernel_cache_backend(kept.DiskKernelCacheBackend(str(folder)))
    part, parts = int(argument["part"]), int(argument["parts"])
    compile_usual(cupy, part, parts)
    (folder / DONE.format(part, parts)).touch()


def compile_usual(library: Any, part: int = 0, parts: int = 1) -> int:
    """Call what references usually call, on small arrays of the types and layouts that they have.

    Args:
        library: CuPy, or a module with the same names.
        part: every call with this number, of so many `parts`.

    Returns:
        The number of calls that it could do.
    """
    done = 0
    for call in itertools.islice(_usual(library), part, None, parts):
        # One that this version lacks leaves the others.
        with contextlib.suppress(Exception):
            call()
            done += 1
    return done


def _usual(library: Any) -> Iterator[Call]:
    for of in (np.float64, np.int64):
        arrays = _layouts(library, np.dtype(of))
        if of is np.float64:
            yield from (_call(library, name, a) for name in UNARY for a in arrays)
        for pair in _broadcast(library, np.dtype(of)):
            yield from (_call(library, name, *pair) for name in BINARY)
        for a in arrays[1:3]:
            yield from (_call(a, name, axis=x) for name in REDUCTIONS for x in (-1, 0, None))
            yield from (_call(a, name, axis=-1, keepdims=True) for name in REDUCTIONS)
        for a in arrays:
            yield from _copies(library, a)
        yield from _rearrangements(library, *arrays[:2])
    yield from _conversions(library)


def _copies(library: Any, a: Any) -> Iterator[Call]:
    yield from (_call(a, "astype", t) for t in (np.float64, np.float32, np.int64, np.bool_))
    yield from (_call(a, "copy"), _call(library, "clip", a, 1, 2))
    yield from (_call(library, "where", a > 0, a, other) for other in (0, a))


def _rearrangements(library: Any, flat: Any, rows: Any) -> Iterator[Call]:
    few = library.arange(4)
    yield from (_call(library, name, flat) for name in ("zeros_like", "ones_like"))
    yield from (_call(rows, "take", few, axis=x) for x in (0, 1))
    yield from (_call(library, name, [rows, rows], axis=-1) for name in ("concatenate", "stack"))
    yield from (_call(library, name, rows, axis=-1) for name in ("cumsum", "sort", "argsort"))
    yield partial(operator.getitem, rows, few)
    yield partial(operator.matmul, rows, rows.T)


def _call(of: Any, name: str, *values: Any, **options: Any) -> Call:
    """A call of a member that may be lacking."""
    return lambda: getattr(of, name)(*values, **options)


def _layouts(library: Any, dtype: "np.dtype[Any]") -> list[Any]:
    """Contiguous in one, two and three dimensions; a slice of each kind; a transposed array."""
    cube = library.ones((4, ROWS, COLUMNS), dtype)
    flat, rows = cube.reshape(-1), cube[0].copy()
    return [flat, rows, cube, cube[:, 0], rows[:, ::2], rows[:, : COLUMNS // 2], cube[..., ::2], rows.T]


def _broadcast(library: Any, dtype: "np.dtype[Any]") -> Iterable[tuple[Any, Any]]:
    """Pairs of operands: alike, with a number, with a row, with a column, with slices."""
    flat, rows, cube, *_, half, _, _ = _layouts(library, dtype)
    row, column = rows[0].copy(), rows[:, :1].copy()
    number = 2.0 if dtype.kind == "f" else 2
    pairs = [(flat, flat), (flat, number), (number, flat), (rows, row), (rows, column), (column, rows)]
    pairs += [(cube, cube[:, :1]), (cube, cube[..., :1].copy()), (half, half), (half, number)]
    pairs += [(cube[:, 0], cube[:, 1]), (cube[:, 0], number), (column, number), (rows, 3), (column, column)]
    return pairs


def _conversions(library: Any) -> Iterator[Call]:
    """Conversions of element types that bring inputs in and outputs back."""
    for of in (np.float32, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32):
        yield from (_call(library.ones(COLUMNS, of), "astype", t) for t in (np.float64, np.int64, np.int32))
    table, places = library.ones(1 << 8, np.float64), library.ones(COLUMNS, np.int32)
    yield partial(operator.getitem, table, places)
    yield from (_call(library.ones(COLUMNS, np.float32), name) for name in ("max", "min"))
