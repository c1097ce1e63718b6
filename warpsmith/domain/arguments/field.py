"""Arguments by value beyond one number: vectors, structs with their fields, addresses."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field as Constrained
from pydantic import StringConstraints, model_validator

from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression

MAX_FIELDS = 128
MAX_COUNT = 4096
LANES = (2, 3, 4, 8, 16)
"""Numbers of lanes that a vector may have; 8 and 16 in OpenCL only."""

TypeName = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[\w:<>,\s*&]+$")]
Alignment = Annotated[int, Constrained(ge=1, le=256)]
Targets = Identifier | tuple[Identifier | None, ...] | None
"""Buffers that pointers lead to, by name. None among several: a null pointer."""


class FieldRole(StrEnum):
    """Contents of a field of a struct: numbers, addresses, or further fields."""

    SCALAR = "scalar"
    POINTER = "pointer"
    STRUCT = "struct"


class Field(Frozen):
    """A member of a struct, in the order of its declaration."""

    name: Identifier
    role: FieldRole = FieldRole.SCALAR
    dtype: Dtype | None = None
    """Type of a scalar, or of a lane of a vector."""
    value: Expression | None = None
    """Value of a scalar: an expression over dimensions, or a number. With `count`, of every element."""
    values: tuple[Expression, ...] = Constrained(default=(), max_length=MAX_COUNT)
    """Lanes of a vector (`uint3`, `float4`); with `count`, the lanes of all elements in order."""
    count: Annotated[int, Constrained(ge=1, le=MAX_COUNT)] | None = None
    """Elements of a fixed array. Elements of an array of structs are alike; if they differ, write each as a
    struct of its own, which has the same layout."""
    to: Targets = None
    """Pointer: the declared buffer that it leads to, or one for each element of an array; none: null."""
    offset: Expression = Expression(0)
    """Pointer: elements of the target before the one that is pointed to."""
    step: Expression = Expression(0)
    """Array of pointers to one buffer: elements of the target from one pointer to the next."""
    fields: tuple["Field", ...] = Constrained(default=(), max_length=MAX_FIELDS)
    """Members of a nested struct; none: an empty struct, which takes one byte."""
    type: TypeName | None = None
    """Name of a nested struct's type; the compiler then checks its size and the places of its members."""
    align: Alignment | None = None
    """Alignment in bytes, if it is declared larger than the members'."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problem = by_value_problem(self)
        if problem:
            raise ValueError(problem)
        return self

    @property
    def lanes(self) -> int:
        """Lanes of a scalar: 1, or those of a vector."""
        return max(1, len(self.values) // (self.count or 1))


def by_value_problem(field: Field) -> str:
    """Contradiction in a field of a struct, or in an argument by value as a field; empty if none."""
    if field.align is not None and field.align & (field.align - 1):
        return f"align: {field.align} is no power of two"
    if field.role is not FieldRole.SCALAR and (field.value is not None or field.values):
        return f"{field.role.value} {field.name} has no value; its {_OF[field.role]} say what it holds"
    if field.role is not FieldRole.POINTER and (
        field.to or field.offset.text != "0" or field.step.text != "0"
    ):
        return f"{field.role.value} {field.name} points to nothing; use the role pointer"
    if field.role is not FieldRole.STRUCT and (field.fields or field.type):
        return f"{field.role.value} {field.name} has fields or a type; use the role struct"
    return _OF_ROLE[field.role](field)


_OF = {FieldRole.POINTER: "to, offset and step", FieldRole.STRUCT: "fields"}


def _scalar_problem(field: Field) -> str:
    if field.dtype is None:
        return f"scalar {field.name} needs a dtype"
    if (field.value is None) == (not field.values):
        return f"scalar {field.name} needs a value, or values for the lanes of a vector"
    count = field.count or 1
    if field.values and len(field.values) % count:
        return f"values: {len(field.values)} are no multiple of the count of {field.name}, {count}"
    if field.values and field.lanes not in (LANES if field.count is None else (1, *LANES)):
        known = ", ".join(map(str, LANES))
        return f"values: {field.name} has {field.lanes} lanes; a vector has {known} (an array: give count)"
    return ""


def _pointer_problem(field: Field) -> str:
    if field.dtype is not None:
        return f"dtype: pointer {field.name} has none; the buffer that it leads to has"
    listed = isinstance(field.to, tuple)
    if isinstance(field.to, tuple) and len(field.to) != (field.count or 1):
        return f"to: lists {len(field.to)} buffers for {field.count or 1} pointers of {field.name}"
    if field.step.text != "0" and (listed or field.count is None):
        return f"step: {field.name} is no array of pointers to one buffer"
    if not field.to and field.offset.text != "0":
        return f"offset: {field.name} is a null pointer; say where it leads (to)"
    return ""


def _struct_problem(field: Field) -> str:
    if field.dtype is not None:
        return f"dtype: struct {field.name} has none; its fields have"
    names = [f.name for f in field.fields]
    for n, name in enumerate(names):
        if name in names[:n]:
            return f"fields.{n}.name: {name} is declared twice"
    return ""


_OF_ROLE = {
    FieldRole.SCALAR: _scalar_problem,
    FieldRole.POINTER: _pointer_problem,
    FieldRole.STRUCT: _struct_problem,
}


def targets(field: Field) -> tuple[str | None, ...]:
    """The buffer that each pointer of a field leads to; None for null."""
    if isinstance(field.to, tuple):
        return field.to
    return (field.to,) * (field.count or 1)
