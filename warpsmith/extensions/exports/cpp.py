"""Export as one C++ header: cubins, dispatch over shapes, and a launch through the driver."""

from dataclasses import dataclass
from typing import Any

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.dtype import Dtype
from warpsmith.extensions.exports.c_expressions import c_text
from warpsmith.extensions.exports.c_header import c_header
from warpsmith.extensions.exports.operator import ALIGNED_BYTES, Operator, default_of
from warpsmith.extensions.exports.rendering import rendered

TYPES = {
    Dtype.FLOAT32: "float",
    Dtype.FLOAT64: "double",
    Dtype.BOOL: "bool",
    **{d: f"{d.value}_t" for d in Dtype if "int" in d.value},
}
"""C++ types of scalars; narrower floats are passed as their bits."""


@dataclass(frozen=True)
class CppParameter:
    """A parameter of a generated function."""

    name: str
    type: str


def parameters(operator: Operator) -> list[CppParameter]:
    """Parameters of the C++ function: buffers and scalars in the kernel's order, then every dimension."""
    given = [CppParameter(a.name, type_of(a)) for a in operator.given]
    return [*given, *(CppParameter(f"dim_{name}", "int64_t") for name in operator.dimensions)]


def type_of(argument: Argument) -> str:
    """C++ type by which an argument is passed."""
    if argument.is_buffer:
        return "const void *" if argument.role is Role.INPUT else "void *"
    return TYPES.get(argument.dtype, f"uint{argument.dtype.size_bytes * 8}_t")


def default_text(argument: Argument) -> str:
    """The value of a scalar in C++."""
    value = default_of(argument)
    return repr(value) if isinstance(value, float) else f"INT64_C({int(value)})"


def header(operator: Operator, other_device: str) -> str:
    """The header.

    Args:
        other_device: `error`, or `fallback` for the kernel as it was.
    """
    scope = operator.lookup.limits.scope()
    sizes = [
        " * ".join([*(f"({c_text(e, scope)})" for e in b.shape), str(b.dtype.size_bytes)])
        for b in operator.buffers
    ]
    buffers = [{"name": b.name, "bytes": size} for b, size in zip(operator.buffers, sizes, strict=True)]
    scalars = [{"name": s.name, "type": type_of(s), "default": default_text(s)} for s in operator.scalars]
    derived = [
        {"name": a.name, "type": type_of(a), "text": c_text(a.value, scope)}
        for a in operator.arguments
        if a.value is not None and a not in operator.given
    ]
    names = {d["name"] for d in derived}
    values: dict[str, Any] = {
        "op": operator,
        "dispatch": c_header(
            operator.lookup, guard=f"WARPSMITH_{operator.name}_{operator.digest}", sources=False
        ),
        "parameters": parameters(operator),
        "buffers": buffers,
        "scalars": scalars,
        "derived": derived,
        "written": [size for b, size in zip(operator.buffers, sizes, strict=True) if b.is_mutated],
        "pairs": [(a.name, b.name) for a, b in operator.pairs()],
        "passed": [f"&value_{a.name}" if a.name in names else f"&{a.name}" for a in operator.arguments],
        "aligned": ALIGNED_BYTES,
        "other_device": other_device,
    }
    return rendered("kernel.hpp.jinja", values)
