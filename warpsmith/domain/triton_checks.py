"""What a Triton kernel of a job must be, beyond the form of every kernel."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warpsmith.domain.argument import Role
from warpsmith.domain.device import Backend
from warpsmith.domain.specialisation import type_name

if TYPE_CHECKING:
    from warpsmith.domain.kernel import Kernel

WARPS = 4
"""Warps of a block where nothing is said, as in Triton."""
_ROLES = (Role.INPUT, Role.OUTPUT, Role.INOUT, Role.SCALAR, Role.POINTER)
_NOT_OF_TRITON = ("options", "includes", "files", "include_dirs", "empty_headers", "buffers", "launches")
_LAUNCH = ("shared_bytes", "cluster", "cooperative")


def with_triton_launch(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a kernel, with the block of a Triton launch, which follows from its warps."""
    launch = data.get("launch")
    if data.get("backend") != Backend.TRITON or not isinstance(launch, Mapping) or "block" in launch:
        return data
    constexprs = data.get("constexprs")
    warps = constexprs.get("num_warps") if isinstance(constexprs, Mapping) else None
    return {**data, "launch": {**launch, "block": [f"32 * {'num_warps' if warps is None else warps}"]}}


def with_warps(kernel: object, parameters: object) -> object:
    """The kernel of a job before it is parsed: `num_warps` is Triton's own where nothing says it."""
    if not isinstance(kernel, dict) or kernel.get("backend") != Backend.TRITON:
        return kernel
    given = kernel.get("constexprs") or {}
    listed = parameters if isinstance(parameters, list | tuple) else ()
    names = [p.get("name") if isinstance(p, dict) else getattr(p, "name", "") for p in listed]
    if "num_warps" in names or not isinstance(given, dict) or "num_warps" in given:
        return kernel
    return {**kernel, "constexprs": {**given, "num_warps": WARPS}}


def triton_problem(kernel: "Kernel") -> str:
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
