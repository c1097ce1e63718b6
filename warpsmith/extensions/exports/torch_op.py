"""A Python package with a PyTorch operator: cubins, dispatch over shapes, and launches through the driver."""

import base64
import re
import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.dtype import Dtype
from warpsmith.extensions.exports.operator import ALIGNED_BYTES, Operator, default_of
from warpsmith.extensions.exports.rendering import rendered
from warpsmith.report.dispatch_module import launcher_source, python_text

NAMESPACE = "warpsmith"
_DIMENSION = re.compile(r"d\['(\w+)'\]")
_CODES = {
    Dtype.BOOL: "?",
    Dtype.INT8: "b",
    Dtype.UINT8: "B",
    Dtype.INT16: "h",
    Dtype.UINT16: "H",
    Dtype.INT32: "i",
    Dtype.UINT32: "I",
    Dtype.INT64: "q",
    Dtype.UINT64: "Q",
    Dtype.FLOAT32: "f",
    Dtype.FLOAT64: "d",
}
"""Codes of `struct` for scalars."""


def package(operator: Operator, other_device: str) -> dict[str, str]:
    """The files of the package, by path.

    Args:
        other_device: `error`, or `fallback` for the kernel as it was.
    """
    folder = operator.name
    numbers = {s.entry.workload: str(n) for n, s in enumerate(operator.lookup.servers, 1)}
    return {
        f"{folder}/__init__.py": _module(operator, other_device),
        f"{folder}/_dispatch.py": launcher_source(operator.lookup, numbers),
        f"{folder}/_kernels.py": _kernels_module(operator),
    }


def _kernels_module(operator: Operator) -> str:
    """A Python module with the cubins, in base64, and the names of their functions."""
    lines = ['"""The user\'s kernel, then the tuned ones, as cubins."""', "", "CUBINS = ("]
    lines += [f'    "{base64.b64encode(b.cubin).decode()}",' for b in operator.binaries]
    lines += [")", "SYMBOLS = ("]
    lines += [f'    "{b.symbol}",' for b in operator.binaries]
    return "\n".join([*lines, ")", ""])


def _module(operator: Operator, other_device: str) -> str:
    codes = [_code(a) for a in operator.arguments]
    tensors = operator.buffers
    positional = _positional(operator, tensors)
    values: dict[str, Any] = {
        "op": operator,
        "plan": "_plan" if operator.joins_blocks else "_Plan",
        "namespace": NAMESPACE,
        "usage": _usage(operator),
        "aligned": ALIGNED_BYTES,
        "other_device": other_device,
        "codes": "".join(codes),
        "offsets": _offsets(codes),
        "schema": _schema(operator),
        "signature": ", ".join([*positional, *(["*"] if operator.scalars else []), *defaults(operator)]),
        "call_positional": ", ".join(positional),
        "call": _call(operator),
        "buffers": [{"name": b.name, "dtype": f"torch.{b.dtype.value}"} for b in tensors],
        "dims": [f"dim_{d}" for d in operator.dimensions],
        "dimension_lines": list(_dimension_lines(operator)),
        "shape_tuple": f"({''.join(f'dim_{d}, ' for d in operator.dimensions)})",
        "written": [f"{b.name}.numel()" for b in tensors if b.is_mutated],
        "unfit": list(_unfit(operator)),
        "values": [_value(operator, a) for a in operator.arguments],
        "wrapper": _wrapper(operator),
    }
    return rendered("torch_op.py.jinja", values)


def _positional(operator: Operator, buffers: Sequence[Argument]) -> list[str]:
    """Names of buffers, then of the dimensions that no buffer has."""
    return [b.name for b in buffers] + list(operator.explicit.values())


def _call(operator: Operator) -> str:
    """Arguments of a call of the registered operator, scalars by keyword."""
    keywords = [f"{s.name}={s.name}" for s in operator.scalars]
    return ", ".join([*_positional(operator, operator.buffers), *keywords])


def _code(argument: Argument) -> str:
    return "P" if argument.is_buffer else _CODES[argument.dtype]


def _offsets(codes: list[str]) -> tuple[int, ...]:
    """Offsets in bytes at which arguments begin, with the alignment of C."""
    before = accumulate(codes[:-1], initial="")
    return tuple(struct.calcsize(f"@{text}0{code}") for text, code in zip(before, codes, strict=True))


def _schema(operator: Operator) -> str:
    marks = [f"({chr(97 + n)}!)" if b.is_mutated else "" for n, b in enumerate(operator.buffers)]
    parts = [f"Tensor{mark} {b.name}" for mark, b in zip(marks, operator.buffers, strict=True)]
    parts += [f"int {d}" for d in operator.explicit.values()]
    words = [f"{_schema_type(s)} {s.name}={default_of(s)!r}" for s in operator.scalars]
    return ", ".join([*parts, *(["*", *words] if words else [])])


def _schema_type(scalar: Argument) -> str:
    return "float" if scalar.dtype.is_float else "bool" if scalar.dtype is Dtype.BOOL else "int"


def defaults(operator: Operator) -> list[str]:
    """Scalars as keyword parameters of Python, with the job's values."""
    return [f"{s.name}={default_of(s)!r}" for s in operator.scalars]


def _dimension_lines(operator: Operator) -> Iterator[str]:
    """Statements that find the dimensions and refuse tensors that do not fit them.

    A tensor of more dimensions than declared has its leading ones joined; one of fewer has the others' size.
    """
    for name in operator.dimensions:
        place = operator.places.get(name)
        if place is None:
            yield f"dim_{name} = int({operator.explicit[name]})"
            continue
        rank = len(operator.argument(place.buffer).shape)
        text = f"{place.buffer}.shape[{place.axis - rank}]"
        if place.axis == 0:
            text = f"{place.buffer}.shape[: {place.buffer}.ndim - {rank - 1}].numel()"
        if rank == 1:
            text = f"{place.buffer}.numel()"
        yield f"dim_{name} = {text}{f' // {place.times}' if place.times > 1 else ''}"
    scope = operator.lookup.limits.scope()
    shape = f"({''.join(f'dim_{d}, ' for d in operator.dimensions)})"
    for buffer in operator.buffers:
        elements = " * ".join(f"({_bound(python_text(e, scope))})" for e in buffer.shape)
        yield f"if {buffer.name}.numel() != {elements}:"
        yield f'    raise _refused({buffer.name}, "{buffer.name}", {elements}, {shape})'


def _bound(text: str) -> str:
    """An expression that reads dimensions from `d`, with local names instead."""
    return _DIMENSION.sub(r"dim_\1", text)


def _unfit(operator: Operator) -> Iterator[str]:
    """Conditions under which the kernel as it was serves a call."""
    yield f"({' | '.join(f'at_{b.name}' for b in operator.buffers)}) % {ALIGNED_BYTES}"
    for scalar in operator.scalars:
        yield f"{scalar.name} != {default_of(scalar)!r}"
    for a, b in operator.pairs():
        yield f"at_{a.name} < at_{b.name} + bytes_{b.name} and at_{b.name} < at_{a.name} + bytes_{a.name}"


def _value(operator: Operator, argument: Argument) -> str:
    if argument.is_buffer:
        return f"at_{argument.name}"
    if argument in operator.given:
        return argument.name
    assert argument.value is not None
    return _bound(python_text(argument.value, operator.lookup.limits.scope()))


def _extents(operator: Operator, out: Argument, known: list[str]) -> Iterator[str]:
    """Extents of an output that is made: leading ones as the tensor has them that says the first."""
    scope = operator.lookup.limits.scope()
    for n, extent in enumerate(out.shape):
        place = operator.places.get(extent.text)
        rank = len(operator.argument(place.buffer).shape) if place else 0
        if n == 0 and place and (place.axis, place.times) == (0, 1) and rank > 1 and place.buffer in known:
            yield f"*{place.buffer}.shape[: {place.buffer}.ndim - {rank - 1}]"
        else:
            yield _bound(python_text(extent, scope))


def _usage(operator: Operator) -> str:
    outs = ", ".join(o.name for o in operator.outputs)
    return f"{outs + ' = ' if outs else ''}{operator.name}({', '.join(_given(operator))})"


def _given(operator: Operator) -> list[str]:
    """Names of what the called function cannot make: buffers that are read, and explicit dimensions."""
    return _positional(operator, [b for b in operator.buffers if b not in operator.outputs])


def _wrapper(operator: Operator) -> str:
    """The function that a program calls: it makes what is only written, unless it is given."""
    given, outs = _given(operator), [o.name for o in operator.outputs]
    places = [operator.places[d] for d in operator.dimensions if d in operator.places]
    makes_outputs = bool(given) and all(place.buffer in given for place in places)
    keywords = [f"{o}=None" if makes_outputs else o for o in outs] + defaults(operator)
    star = ["*"] if keywords and given else []
    mutated = [b.name for b in operator.buffers if b.role is not Role.INPUT]
    lines = [
        f"def {operator.name}({', '.join([*given, *star, *keywords])}):",
        f'    """`{operator.lookup.job.name}`; outputs that are not given are made, and all are returned."""',
        *(_output_lines(operator, given) if makes_outputs and outs else ()),
        f"    torch.ops.{NAMESPACE}.{operator.name}({_call(operator)})",
        f"    return {', '.join(mutated)}",
    ]
    return "\n".join(lines)


def _output_lines(operator: Operator, given: list[str]) -> Iterator[str]:
    """Statements that make the outputs that are not given, on the device of the first other tensor."""
    yield f"    if {' or '.join(f'{o.name} is None' for o in operator.outputs)}:"
    yield from (f"        {line}" for line in _dimension_lines(operator) if line.startswith("dim_"))
    source = next(b for b in operator.buffers if b not in operator.outputs).name
    for out in operator.outputs:
        extents = ", ".join(_extents(operator, out, given))
        made = f"({extents},), dtype=torch.{out.dtype.value}, device={source}.device"
        yield f"    if {out.name} is None:"
        yield f"        {out.name} = torch.empty({made})"
