"""A C++ file that makes the header a function of TVM FFI, and what builds and loads it."""

from collections.abc import Iterator, Sequence
from typing import Any

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.dtype import Dtype
from warpsmith.extensions.exports.c_expressions import c_text
from warpsmith.extensions.exports.cpp import CppParameter, header, type_of
from warpsmith.extensions.exports.operator import Operator
from warpsmith.extensions.exports.rendering import rendered

_CODES = {
    Dtype.BOOL: "kDLBool",
    Dtype.BFLOAT16: "kDLBfloat",
    Dtype.FLOAT8_E4M3FN: "kDLFloat8_e4m3fn",
    Dtype.FLOAT8_E5M2: "kDLFloat8_e5m2",
    Dtype.FLOAT8_E4M3FNUZ: "kDLFloat8_e4m3fnuz",
    Dtype.FLOAT8_E5M2FNUZ: "kDLFloat8_e5m2fnuz",
    Dtype.FLOAT8_E8M0FNU: "kDLFloat8_e8m0fnu",
}
"""DLPack's codes of types whose name does not say them."""


def source(
    operator: Operator, usage: str, function: str = "", order: Sequence[Argument] | None = None
) -> str:
    """The C++ file, which includes `NAME.hpp` and defines `NAME_run`.

    Args:
        usage: how it is called, for its head.
        function: name under which it is exported; empty: it is not.
        order: arguments that the function takes, in their order; by default those of the kernel.
    """
    order = operator.given if order is None else order
    taken = [CppParameter(a.name, _type(a)) for a in order]
    taken += [CppParameter(name, "int64_t") for name in operator.explicit.values()]
    values: dict[str, Any] = {
        "op": operator,
        "function": function,
        "inner": f"{operator.name}_run",
        "usage": usage,
        "words": [a.name for a in order] + list(operator.explicit.values()),
        "taken": taken,
        "buffers": [_buffer(operator, b) for b in operator.buffers],
        "dims": list(_dims(operator)),
        "passed": [*(_passed(a) for a in operator.given), *(f"dim_{d}" for d in operator.dimensions)],
    }
    return rendered("tvm_ffi.cc.jinja", values)


def module(operator: Operator, other_device: str) -> dict[str, str]:
    """The header, the C++ file, and a program that builds them with g++ and apache-tvm-ffi, by path."""
    usage = f'python build.py; then tvm_ffi.load_module("{operator.name}.so").{operator.name}'
    return {
        f"{operator.name}.hpp": header(operator, other_device),
        f"{operator.name}.cc": source(operator, usage, operator.name),
        "build.py": rendered("build.py.jinja", {"op": operator}),
    }


def _type(argument: Argument) -> str:
    if argument.is_buffer:
        return "tvm::ffi::TensorView"
    return "double" if argument.dtype.is_float else "bool" if argument.dtype is Dtype.BOOL else "int64_t"


def _buffer(operator: Operator, buffer: Argument) -> dict[str, object]:
    scope = operator.lookup.limits.scope()
    kind = "kDLFloat" if buffer.dtype.is_float else "kDLUInt" if buffer.dtype.value[0] == "u" else "kDLInt"
    return {
        "name": buffer.name,
        "code": _CODES.get(buffer.dtype, kind),
        "bits": buffer.dtype.size_bytes * 8,
        "elements": " * ".join(f"({c_text(e, scope)})" for e in buffer.shape),
    }


def _dims(operator: Operator) -> Iterator[dict[str, object]]:
    """C++ that reads each dimension: from an axis counted from the last, the leading ones joined."""
    for name in operator.dimensions:
        place = operator.places.get(name)
        if place is None:
            yield {"name": name, "rank": 0, "text": operator.explicit[name]}
            continue
        rank = len(operator.argument(place.buffer).shape)
        buffer = place.buffer
        last = f"{buffer}.size({buffer}.ndim() - {rank - place.axis})"
        text = f"leading({buffer}, {rank - 1})" if place.axis == 0 else last
        text += f" / {place.times}" if place.times > 1 else ""
        yield {"name": name, "rank": rank, "buffer": buffer, "text": text}


def _passed(argument: Argument) -> str:
    name = argument.name
    return f"address({name})" if argument.is_buffer else f"static_cast<{type_of(argument)}>({name})"
