"""Checks and completes a job's Triton kernel, beyond the form of every kernel."""

import re
from collections.abc import Mapping
from typing import Any

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.specialisation import is_expression, type_name

_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*(?![\w.'\"])")
MOST_STEPS = 4
"""Constexprs that stand for constexprs are followed so far."""
WARPS = 4
"""Warps of a block where nothing is said, as in Triton."""
_ROLES = (Role.INPUT, Role.OUTPUT, Role.INOUT, Role.SCALAR, Role.POINTER)
_NOT_OF_TRITON = ("options", "includes", "files", "include_dirs", "empty_headers", "buffers", "launches")
_LAUNCH = ("shared_bytes", "cluster", "cooperative")


def with_triton_launch(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a kernel with the launch as every other kernel has it.

    The block follows from the warps, and names of constexprs in the grid are replaced by what they stand for.
    """
    launch, given = data.get("launch"), data.get("constexprs") or {}
    if not isinstance(launch, Mapping) or not isinstance(given, Mapping):
        return data
    fields = {"block": ["32 * num_warps"], **launch}
    for name in ("block", "grid"):
        if isinstance(fields.get(name), list | tuple):
            fields[name] = [_with_values(extent, given) for extent in fields[name]]
    return {**data, "launch": fields}


def _with_values(extent: object, constexprs: Mapping[str, object]) -> object:
    """An expression without the names of constexprs that are numbers or expressions."""
    if not isinstance(extent, str):
        return extent
    known = {n: v for n, v in constexprs.items() if isinstance(v, str | int | float) and is_expression(v)}
    text = extent
    for _ in range(MOST_STEPS):
        before = text
        text = _NAME.sub(lambda m: f"({known[m[0]]})" if m[0] in known else m[0], text)
        if text == before:
            break
    return text if text != extent else extent


def with_warps(kernel: dict[str, Any], parameters: object) -> dict[str, Any]:
    """The kernel of a job before it is parsed: `num_warps` is Triton's own where nothing says it."""
    given = kernel.get("constexprs") or {}
    listed = parameters if isinstance(parameters, list | tuple) else ()
    names = [p.get("name") if isinstance(p, dict) else getattr(p, "name", "") for p in listed]
    if "num_warps" in names or not isinstance(given, dict) or "num_warps" in given:
        return kernel
    return {**kernel, "constexprs": {**given, "num_warps": WARPS}}


def triton_problem(kernel: Kernel) -> str:
    """What a Triton kernel cannot have, with its field; empty if all is well."""
    for field in _NOT_OF_TRITON:
        if getattr(kernel, field):
            return f"{field}: a Triton kernel has none; leave it out"
    for n, argument in enumerate(kernel.arguments):
        where = f"arguments.{n}"
        if argument.role not in _ROLES or argument.image is not None or argument.values:
            return f"{where}.role: a Triton function takes buffers, pointers and scalars only"
        if type_name(argument.dtype) is None:
            return f"{where}.dtype: Triton has no {argument.dtype.value}; use another type of that size"
        if argument.name in kernel.constexprs:
            return f"constexprs.{argument.name}: it is one of the arguments as well; list it once"
    for field in _LAUNCH:
        given = getattr(kernel.launch, field)
        if given and str(given) != "0":
            return f"launch.{field}: follows from the compiled kernel; leave it out (num_ctas gives clusters)"
    if not kernel.entry.isidentifier():
        return f"entry: {kernel.entry!r} is no name of a function"
    return ""
