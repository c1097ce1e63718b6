"""Arguments of kernels, and buffers to which arguments lead."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from warpsmith.domain.arguments.draw import Draw
from warpsmith.domain.arguments.field import (
    MAX_COUNT,
    MAX_FIELDS,
    Alignment,
    FieldRole,
    Targets,
    TypeName,
    by_value_problem,
    targets,
)
from warpsmith.domain.arguments.field import Field as StructField
from warpsmith.domain.arguments.image import ImageFormat
from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression

_PIXELS = (
    *(Dtype.FLOAT16, Dtype.FLOAT32, Dtype.INT8, Dtype.INT16, Dtype.INT32),
    *(Dtype.UINT8, Dtype.UINT16, Dtype.UINT32),
)
"""Element types that a channel of an image may have."""


class Role(StrEnum):
    """Use that a kernel makes of an argument."""

    INPUT = "input"
    OUTPUT = "output"
    INOUT = "inout"
    SCALAR = "scalar"
    SCRATCH = "scratch"
    """Memory between the launches of a sequence: written by one, read by a later one, never compared."""
    LOCAL = "local"
    """OpenCL: a `__local` pointer; every work-group gets memory for it at launch."""
    STRUCT = "struct"
    """A struct by value."""
    POINTER = "pointer"
    """The address of a declared buffer, or null."""
    POINTERS = "pointers"
    """An array of addresses in device memory."""
    SYMBOL = "symbol"
    """CUDA: a `__constant__` or `__device__` variable of the source, which host code would fill."""


BY_VALUE = {Role.SCALAR: FieldRole.SCALAR, Role.POINTER: FieldRole.POINTER, Role.STRUCT: FieldRole.STRUCT}
"""Roles of arguments that a kernel gets by value, as those of fields."""
_IMPLIED = {Role.STRUCT: Dtype.UINT8, Role.POINTER: Dtype.UINT64, Role.POINTERS: Dtype.UINT64}
"""Element types that follow from a role."""


def _dtype_may_be_left_out(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema["required"] if name != "dtype"]


class Argument(Frozen):
    """An argument of a kernel, in the kernel's own order; a buffer to which arguments lead; or a symbol."""

    model_config = ConfigDict(json_schema_extra=_dtype_may_be_left_out)

    name: Identifier
    dtype: Dtype
    """Element type. It may be left out if the role is `struct`, `pointer` or `pointers`."""
    role: Role
    shape: tuple[Expression, ...] = Field(default=(), max_length=8)
    """Extents of a buffer in elements, slowest dimension first; empty for a scalar. A symbol
    without extents has one element. For the role `local`:
    elements per work-group. For `pointers`: the number of addresses. For the roles `local` and `scratch`
    parameter names stand for the values of the configuration."""
    value: Expression | None = None
    """Value of a scalar: an expression over dimensions, or a number. Of a symbol: that of every element."""
    values: tuple[Expression, ...] = Field(default=(), max_length=MAX_COUNT)
    """Lanes of a vector by value (`uint3`, `float4`), instead of `value`."""
    draw: Draw | None = None
    """Distribution of an input, inout or symbol. Default: normal for floats, integers 0..127 otherwise."""
    kept: Expression | None = None
    """Output or inout: which elements count, as a condition over the output's indices (`i0`, `i1`, ...,
    slowest first), dimensions, and inputs of integers or truth values by name: their element at the same
    first indices. No check looks at the others. Default: all elements count."""
    image: ImageFormat | None = None
    """OpenCL: the argument is an `image2d_t` or `image3d_t`, input or output, instead of a buffer."""
    to: Targets = None
    """Pointer or pointers: the declared buffer that they lead to, or one for each; none: null."""
    offset: Expression = Expression(0)
    """Pointer or pointers: elements of the target before the one that is pointed to."""
    step: Expression = Expression(0)
    """Pointers: elements of the target from one address to the next."""
    fields: tuple[StructField, ...] = Field(default=(), max_length=MAX_FIELDS)
    """Members of a struct, in the order of its declaration."""
    type: TypeName | None = None
    """Name of the struct's type; the compiler then checks its size and the places of its members."""
    align: Alignment | None = None
    """Alignment of a struct in bytes, if it is declared larger than its members'."""

    @model_validator(mode="before")
    @classmethod
    def _imply_what_the_role_says(cls, data: Any) -> Any:
        role = data.get("role") if isinstance(data, dict) else None
        if role == Role.SYMBOL and not data.get("shape"):
            return {**data, "shape": (1,)}
        if isinstance(role, str) and role in _IMPLIED and "dtype" not in data:
            return {**data, "dtype": _IMPLIED[Role(role)]}
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.dtype is not _IMPLIED.get(self.role, self.dtype):
            raise ValueError(f"dtype: {self.role.value} {self.name} has none; leave it out")
        if self.image is not None:
            self._check_image(self.image)
        if self.role in BY_VALUE:
            self._check_by_value()
        elif self.role is Role.SYMBOL:
            self._check_symbol()
        else:
            self._check_shaped()
        if self.role is Role.OUTPUT and self.draw is not None:
            raise ValueError(f"output {self.name} is written, not drawn; remove draw or use inout")
        if self.draw is not None and self.role not in (Role.INPUT, Role.INOUT, Role.SYMBOL):
            raise ValueError(f"{self.role.value} {self.name} is not drawn; remove draw")
        if self.kept is not None and not self.is_mutated:
            raise ValueError(f"{self.role.value} {self.name} is not compared; kept is for outputs and inouts")
        return self

    def _check_by_value(self) -> None:
        if self.shape or (self.role is Role.SCALAR and self.value is None and not self.values):
            say = "a value" if self.role is Role.SCALAR else _SAYS[self.role]
            raise ValueError(f"{self.role.value} {self.name} needs {say} and no shape")
        problem = by_value_problem(self.as_field())
        if problem:
            raise ValueError(problem)

    def _check_symbol(self) -> None:
        if self.to or self.fields or self.type or self.values:
            raise ValueError(f"symbol {self.name} has no to, fields, type or values; give a draw or a value")
        if self.value is not None and self.draw is not None:
            raise ValueError(f"symbol {self.name} has a draw and a value; give one of them")

    def _check_shaped(self) -> None:
        if self.value is not None or self.values or not self.shape:
            what, unit = _SHAPED.get(self.role, ("buffer", ""))
            raise ValueError(f"{what} {self.name} needs a shape{unit} and no value")
        if self.role is not Role.POINTERS and (self.to or self.fields or self.type):
            raise ValueError(f"{self.role.value} {self.name} has no to, fields or type")

    def as_field(self) -> StructField:
        """An argument by value as a member of a struct, for what is alike in both."""
        dtype = self.dtype if self.role is Role.SCALAR else None
        given = {name: getattr(self, name) for name in _OF_FIELDS}
        return StructField.model_construct(role=BY_VALUE[self.role], dtype=dtype, **given)

    def _check_image(self, image: ImageFormat) -> None:
        if self.role not in (Role.INPUT, Role.OUTPUT):
            raise ValueError(
                f"image {self.name} is {self.role.value}; an image is an input (read_only) or an output "
                "(write_only)"
            )
        if self.dtype not in _PIXELS:
            known = ", ".join(d.value for d in _PIXELS)
            raise ValueError(f"image {self.name} has channels of {self.dtype.value}; use one of {known}")
        if image.normalized and (self.dtype.is_float or self.dtype.size_bytes > 2):
            raise ValueError(
                f"image {self.name} is normalized, which int8, int16, uint8 and uint16 can be, not "
                f"{self.dtype.value}"
            )
        if len(self.shape) not in (3, 4):
            raise ValueError(
                f"image {self.name} has {len(self.shape)} extents; use [height, width, channels], or "
                "[depth, height, width, channels] for an image3d_t"
            )
        if self.shape[-1].text != str(image.lanes):
            raise ValueError(
                f"image {self.name} has the channels {image.channels.value}, so the last extent of its shape "
                f"is {image.lanes}, not {self.shape[-1].text}"
            )

    @property
    def is_buffer(self) -> bool:
        """True if the argument is device memory that holds data: a buffer, an image, or a symbol."""
        return self.role in (Role.INPUT, Role.OUTPUT, Role.INOUT, Role.SCRATCH, Role.SYMBOL)

    def targets(self) -> Iterator[tuple[str, str]]:
        """Field and name of every buffer that the argument leads to."""
        if self.role is Role.POINTERS:
            names = self.to if isinstance(self.to, tuple) else (self.to,)
            yield from (("to", name) for name in names if name is not None)
        elif self.role in BY_VALUE:
            yield from _targets(self.as_field())

    @property
    def bytes_expression(self) -> Expression:
        """Bytes of a buffer, or bytes per work-group of a local argument."""
        return Expression(" * ".join([*(f"({e.text})" for e in self.shape), str(self.dtype.size_bytes)]))

    @property
    def is_mutated(self) -> bool:
        """True if the kernel writes the argument, so that it is compared."""
        return self.role in (Role.OUTPUT, Role.INOUT)


_SAYS = {Role.POINTER: "the buffer that it leads to (to)", Role.STRUCT: "fields"}
_SHAPED = {
    Role.LOCAL: ("local", " (elements of a work-group)"),
    Role.POINTERS: ("array", " (the number of addresses)"),
}
_OF_FIELDS = ("name", "value", "values", "to", "offset", "step", "fields", "type", "align")


def _targets(field: StructField, where: str = "") -> Iterator[tuple[str, str]]:
    if field.role is FieldRole.POINTER:
        yield from ((f"{where}to", name) for name in targets(field) if name is not None)
    for n, inner in enumerate(field.fields):
        yield from _targets(inner, f"{where}fields.{n}.")
