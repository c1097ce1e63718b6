"""The arguments of a call as those of a job: what is given, and for the rest what the source says."""

import difflib
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.dtype import Dtype
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.example_arguments import Example, draw_of, dtype_name, is_example
from warpsmith.extensions.clients.python.extents import (
    UnclearShape,
    scalar_value,
    shape_of,
    source_shape,
    unclear_shapes,
)
from warpsmith.extensions.clients.python.job_parts import Fields, plain
from warpsmith.extensions.scaffold.guesses import dimension_name, extent
from warpsmith.extensions.scaffold.indices.index_space import IndexSpace
from warpsmith.extensions.scaffold.lines.arguments import buffer_role
from warpsmith.source.declarations.argument_lists import KernelArgument
from warpsmith.source.kernels.kernel_definitions import KernelDefinition

_CHANNELS = {1: "r", 2: "rg", 4: "rgba"}
EXAMPLE = "example"
"""Field of an argument that a job does not have: an array of which shape, type and draw are taken."""


def by_name(kernel: KernelDefinition, arguments: Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    """Values given in a call by names of the kernel's arguments; a mapping may leave some out.

    Raises:
        InvalidInput: a list has another length than the kernel's, or a name is none of its arguments.
    """
    names = [a.name or f"argument_{n}" for n, a in enumerate(kernel.arguments)]
    listed = f"{kernel.name} takes {len(names)} ({', '.join(names)})"
    if isinstance(arguments, Mapping):
        for name in arguments:
            if name not in names:
                near = difflib.get_close_matches(str(name), names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise InvalidInput(f"arguments.{name}", f"no such argument: {listed}{hint}")
        return dict(arguments)
    given = [] if arguments is None else list(arguments)
    if arguments is not None and len(given) != len(names):
        raise InvalidInput("arguments", f"{len(given)} are given; {listed}")
    return dict(zip(names, given, strict=False))


def sizes_of(kernel: KernelDefinition, given: Mapping[str, Any]) -> dict[str, int]:
    """Dimensions of a call that names no workload: the whole numbers that seem to be sizes, by argument."""
    found = {}
    for a in kernel.arguments:
        value = given.get(a.name)
        size = int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else 0
        if size >= 1 and not a.is_pointer and extent(a) is not None:
            found[dimension_name(a.name)] = size
    return found


@dataclass(frozen=True)
class ArgumentWriter:
    """Writes the arguments of one kernel.

    Args:
        kernel: its definition.
        dimensions: those of the first workload, to which examples belong.
        threads: expression for the work-items of a group, for `__local` arguments that are left out.
        space: reads the shapes that the source shows.
    """

    kernel: KernelDefinition
    dimensions: Mapping[str, int]
    threads: str
    space: Callable[[], IndexSpace]

    def fields(self, given: Mapping[str, Any]) -> list[Fields]:
        """The arguments in the kernel's order.

        Raises:
            InvalidInput: one is missing, or cannot be what is given for it; the message names it.
        """
        made = []
        for n, a in enumerate(self.kernel.arguments):
            made.append(self._one(n, a, given))
        unclear = [(a, f) for a, f in zip(self.kernel.arguments, made, strict=True) if _is_unclear(f)]
        if unclear:
            space = self.space()
            values = {f["name"]: str(f["value"]) for f in made if f["role"] == Role.SCALAR and "value" in f}
            for a, f in unclear:
                known = source_shape(a, f["shape"].extents, space, values, self.dimensions)
                f["shape"] = known or f["shape"]
        if still := [f["shape"] for _, f in unclear if _is_unclear(f)]:
            raise unclear_shapes(still)
        return made

    def _one(self, place: int, a: KernelArgument, given: Mapping[str, Any]) -> Fields:
        name = a.name or f"argument_{place}"
        if name not in given:
            return self._left_out(name, a)
        value = given[name]
        if isinstance(value, Argument | Mapping):
            return self._in_job_form(name, a, plain(value))
        if not a.is_pointer and not a.is_image:
            return self._by_value(name, a, value)
        if not is_example(value):
            kind = type(value).__name__
            words = f"is `{a.type_text}` in the kernel, and {kind} is no array; give one as an example"
            raise InvalidInput(f"arguments.{name}", f'{words}, or {{"shape": [...]}}')
        return self._in_job_form(name, a, {EXAMPLE: value})

    def _left_out(self, name: str, a: KernelArgument) -> Fields:
        if dimension_name(name) in self.dimensions and not a.is_pointer:
            return self._in_job_form(name, a, {"value": dimension_name(name)})
        if a.address_space == "local":
            return self._in_job_form(name, a, {"shape": [self.threads]})
        what = "an array as an example" if a.is_pointer else "its value"
        raise InvalidInput(f"arguments.{name}", f"is missing: `{a.type_text} {name}`; give {what}")

    def _in_job_form(self, name: str, a: KernelArgument, given: Mapping[str, Any]) -> Fields:
        """Fields of the job form, those that are left out from the example and the source."""
        fields: Fields = {"name": name, **{k: v for k, v in given.items() if k != EXAMPLE}}
        fields.setdefault("role", self._role(a).value)
        if fields["role"] in (Role.STRUCT, Role.POINTER, Role.POINTERS):
            return fields
        example = Example(name, given[EXAMPLE]) if EXAMPLE in given else None
        if "dtype" not in fields:
            fields["dtype"] = self._dtype(name, a, None if example is None else example.dtype).value
        if example is None:
            return fields
        self._take_shape(fields, a, example)
        if fields["role"] in (Role.INPUT, Role.INOUT, Role.SYMBOL) and not fields.keys() & {"draw", "value"}:
            fields["draw"] = draw_of(example, self.dimensions, varied=fields["role"] == Role.INPUT)
        return fields

    def _take_shape(self, fields: Fields, a: KernelArgument, example: Example) -> None:
        """Take the shape, and the channels of an image, from an example where they are left out."""
        name, extents = fields["name"], example.shape or (1,)
        if a.is_image and "image" not in fields:
            fields["image"] = {"channels": self._channels(name, extents)}
        if "shape" not in fields and a.is_image:
            fields["shape"] = [*shape_of(name, extents[:-1], self.dimensions), str(extents[-1])]
        elif "shape" not in fields:
            try:
                fields["shape"] = shape_of(name, extents, self.dimensions, a.lanes)
            except UnclearShape as exc:
                # The source may show it, once the values of all arguments are known.
                fields["shape"] = exc

    def _channels(self, name: str, extents: Sequence[int]) -> str:
        found = _CHANNELS.get(extents[-1])
        if found is None:
            words = "its last extent is the number of channels (1, 2 or 4)"
            raise InvalidInput(
                f"arguments.{name}", f"an image has the shape [height, width, channels]; {words}"
            )
        return found

    def _role(self, a: KernelArgument) -> Role:
        if a.is_image:
            return Role.OUTPUT if a.access == "write" else Role.INPUT
        if not a.is_pointer:
            return Role.SCALAR
        return Role.LOCAL if a.address_space == "local" else buffer_role(a, self.kernel)[0]

    def _dtype(self, name: str, a: KernelArgument, example: Dtype | None) -> Dtype:
        """The type in the source, if it is known there; an example may differ in its sign only."""
        if a.dtype is None:
            if example is not None:
                return example
            words = f"the source does not say what `{a.type_text}` is; give its dtype"
            raise InvalidInput(f"arguments.{name}", f'{words}: {{"dtype": "float32", ...}}')
        alike = example is None or (
            a.dtype.is_float == example.is_float and a.dtype.size_bytes == example.size_bytes
        )
        if example is not None and not (a.dtype is example or (alike and not example.is_float)):
            words = f"the example has {example.value}, and the kernel takes `{a.type_text}`"
            raise InvalidInput(f"arguments.{name}", f"{words}; give {a.dtype.value}, with .astype or .to")
        return a.dtype

    def _by_value(self, name: str, a: KernelArgument, value: Any) -> Fields:
        if a.lanes > 1:
            lanes = value if isinstance(value, list | tuple) else np.asarray(value).ravel().tolist()
            if len(lanes) != a.lanes:
                words = f"`{a.type_text}` has {a.lanes} numbers; {len(lanes)} are given"
                raise InvalidInput(f"arguments.{name}", words)
            texts = [self._number(name, a, lane, named=False) for lane in lanes]
            return self._in_job_form(name, a, {"values": texts})
        return self._in_job_form(name, a, {"value": self._number(name, a, value, named=True)})

    def _number(self, name: str, a: KernelArgument, value: Any, *, named: bool) -> str:
        """A number as an expression."""
        if isinstance(value, str):
            return value
        if is_example(value) and tuple(value.shape) == ():
            value = value.item()
        if not _is_number(value):
            words = f"`{a.type_text}` is passed by value, and {_described(value)} is no number"
            raise InvalidInput(f"arguments.{name}", f"{words}; give one, or an expression as text")
        if not np.isfinite(float(value)):
            raise InvalidInput(f"arguments.{name}", f"is {value}; an argument by value is a finite number")
        if a.dtype is not None and a.dtype.is_float:
            # The shortest digits of its own type: 0.1, not 0.10000000149.
            return str(value) if isinstance(value, np.floating) else repr(float(value))
        if float(value) != int(value):
            words = f"{value} is no whole number, and the kernel takes `{a.type_text}`"
            raise InvalidInput(f"arguments.{name}", words)
        dimension = dimension_name(name)
        if named and dimension in self.dimensions:
            if int(value) != self.dimensions[dimension]:
                words = f"is {int(value)}, and {dimension} of the first workload {self.dimensions[dimension]}"
                raise InvalidInput(f"arguments.{name}", f"{words}; make them equal, or leave it out")
            return dimension
        if isinstance(value, bool | np.bool_):
            return str(int(value))
        return scalar_value(name, int(value), self.dimensions)


def _is_unclear(fields: Fields) -> bool:
    return isinstance(fields.get("shape"), UnclearShape)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | np.bool_)


def _described(value: Any) -> str:
    if is_example(value):
        return f"an array of {dtype_name(value)} with shape {tuple(value.shape)}"
    return f"{value!r:.60}" if value is None else type(value).__name__
