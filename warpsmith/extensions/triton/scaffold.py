"""`init` for Triton: a job file for a kernel that exists only as a Python file, which is never run."""

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpsmith.domain.device import Backend
from warpsmith.domain.kernels.triton_function import TritonFunction, read_kernels
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.argument_line import ZEROS, ArgumentLine
from warpsmith.extensions.scaffold.placeholder_sizes import above_zero, fitting
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_extent, yaml_flow, yaml_number, yaml_word
from warpsmith.extensions.triton.jobs.constexprs import FixedValue
from warpsmith.extensions.triton.jobs.entries import choose
from warpsmith.extensions.triton.jobs.job_parts import ArgumentPart, JobParts, job_parts
from warpsmith.extensions.triton.jobs.name_guesses import size_of
from warpsmith.system.source_text import read_source_text

_GUESSED = {"dtype": "the element type", "shape": "the shape", "role": "the role", "value": "the value"}
_NAME = re.compile(r"^[^A-Za-z0-9]+")


def is_triton(path: Path) -> bool:
    """True for a Python file with Triton functions."""
    if path.suffix != ".py" or not path.is_file():
        return False
    try:
        return bool(read_kernels(read_source_text(path)))
    except (SyntaxError, ValueError, RecursionError):
        return False


def takes(sources: Sequence[Path], backend: Backend | None) -> bool:
    """True if the user says Triton, or a file has Triton functions and the user says nothing."""
    return backend is Backend.TRITON or (backend is None and any(map(is_triton, sources)))


def written(source: Path, target: Path, entry: str | None) -> str:
    """A job file, as YAML, for one kernel of a Python file.

    Args:
        target: the job file; the path of the source in it is relative to its folder.
        entry: the kernel's name; None: the only one.

    Raises:
        InvalidInput: the file is no Python, or has no such kernel or several; the message names them.
    """
    text = read_source_text(source)
    shown = os.path.relpath(source.resolve(), target.resolve().parent)
    function, functions = choose(text, shown, entry)
    try:
        parts = job_parts(function, functions, ast.parse(text))
    except RecursionError as exc:
        raise InvalidInput("source", f"{shown}: {function.name} is nested too deeply") from exc
    return "\n".join(_lines(function, shown, parts)) + "\n"


def _lines(function: TritonFunction, shown: str, parts: JobParts) -> Iterator[str]:
    yield f"# Job for the kernel {function.name} of {shown} (line {function.line})."
    yield f"# Look at every {TODO}: shapes, roles and values there are guesses."
    yield f"name: {yaml_word(_NAME.sub('', function.name)[:100] or 'kernel')}"
    yield "kernel:"
    yield f"  backend: {Backend.TRITON.value}"
    yield f"  source_file: {yaml_word(shown)}"
    yield f"  entry: {function.name}"
    if not any(a.role in ("output", "inout") for a in parts.arguments):
        yield f"  # {TODO}: one argument needs the role output or inout: a job compares what a kernel writes."
    yield "  arguments:" if parts.arguments else f"  arguments: []  # {TODO}: this kernel has none"
    yield from (_argument(a) for a in parts.arguments)
    if parts.constexprs:
        yield "  constexprs:"
        yield from (_constexpr(c) for c in parts.constexprs)
    yield "  launch:"
    mark = parts.grid_comment or f"{TODO}: programs along x, y, z"
    yield f"    grid: [{', '.join(map(yaml_extent, parts.grid))}]  # {mark}"
    yield from _space(parts)
    yield "workloads:"
    yield f"  - dimensions: {yaml_flow(_sizes(parts))}  # {TODO}: the sizes that matter, a line each"
    yield "# The kernel itself is the reference. A NumPy function is a better one; yours may begin so:"
    yield "# reference:"
    yield "#   kind: numpy"
    yield "#   source: |"
    yield "#     def reference(inputs, dims):"
    written = [a.name for a in parts.arguments if a.role in ("output", "inout")]
    yield f"#         return {{{', '.join(f'{name!r}: ...' for name in written)}}}"
    yield "budget: {rounds: 2, trials: 200, seconds: 300}"


def _argument(argument: ArgumentPart) -> str:
    is_number = argument.role == "scalar"
    rest = {"value": argument.value} if is_number else {"shape": list(argument.shape)}
    fields: dict[str, Any] = {"name": argument.name, "dtype": argument.dtype, "role": argument.role, **rest}
    if argument.is_zeroed:
        fields["draw"] = ZEROS
    marks = " and ".join(_GUESSED[g] for g in argument.guesses)
    said = [f"{TODO}: {marks}"] if marks else []
    comment = "; ".join(w for w in (*said, _one_line(argument.comment)) if w)
    return ArgumentLine(fields, comment).item()


def _constexpr(value: FixedValue) -> str:
    text = value.text
    plain = text in ("true", "false", "null") or not isinstance(yaml_number(text), str)
    written = text if plain else f'"{text}"' if text.startswith("'") else yaml_word(text)
    marks = [TODO] if value.is_guess else []
    comment = ": ".join(w for w in (*marks, _one_line(value.comment)) if w)
    return f"    {value.name}: {written}" + (f"  # {comment}" if comment else "")


def _space(parts: JobParts) -> Iterator[str]:
    yield from (f"# {TODO}: {_one_line(problem)}." for problem in parts.problems)
    if parts.tunables:
        yield from (f"# {_one_line(remark)}." for remark in parts.remarks)
        yield "parameters:"
    for tunable in parts.tunables:
        fields: dict[str, Any] = {"name": tunable.name, "values": list(tunable.values)}
        if tunable.default != tunable.values[0] or type(tunable.default) is not type(tunable.values[0]):
            fields["default"] = tunable.default
        said = parts.tunable_comments.get(tunable.name)
        yield f"  - {yaml_flow(fields)}" + (f"  # {TODO}: {said}" if said else "")
    if parts.constraints:
        yield "constraints:"
    for expression, reason in parts.constraints:
        yield f"  - {yaml_flow({'expression': expression, 'reason': reason})}"


def _sizes(parts: JobParts) -> Mapping[str, int]:
    """Placeholder sizes with which the buffers fit into a device."""
    dimensions = {name: (name, size_of(name, len(parts.dimensions))) for name in parts.dimensions}
    buffers = [
        {"name": a.name, "dtype": a.dtype, "role": a.role, "shape": list(a.shape)}
        for a in parts.arguments
        if a.role != "scalar"
    ]
    extents = [*parts.grid, *(text for b in buffers for text in b["shape"])]
    defaults = {t.name: t.default for t in parts.tunables}
    known = [text for text in extents if not any(re.search(rf"\b{name}\b", text) for name in defaults)]
    return dict(above_zero(fitting(dimensions, buffers), known).values())


def _one_line(text: str) -> str:
    return " ".join(text.split())
