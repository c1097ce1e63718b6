"""Kernels: device source, entry point, arguments and launch. Never host code."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.device import Backend
from warpsmith.domain.draw import Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression
from warpsmith.domain.field import (
    MAX_COUNT,
    MAX_FIELDS,
    Alignment,
    FieldRole,
    Targets,
    TypeName,
    by_value_problem,
    targets,
)
from warpsmith.domain.field import Field as StructField
from warpsmith.domain.headers import MAX_FILES, files_problem, folders_of
from warpsmith.domain.image import ImageFormat
from warpsmith.domain.launch import Launch

MAX_SOURCE_BYTES = 256 * 1024


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
    LOCAL = "local"
    """OpenCL: a `__local` pointer; every work-group gets memory for it at launch."""
    STRUCT = "struct"
    """A struct by value."""
    POINTER = "pointer"
    """The address of a declared buffer, or null."""
    POINTERS = "pointers"
    """An array of addresses in device memory."""


BY_VALUE = {
    Role.SCALAR: FieldRole.SCALAR,
    Role.POINTER: FieldRole.POINTER,
    Role.STRUCT: FieldRole.STRUCT,
}
"""Roles of arguments that a kernel gets by value, as those of fields."""
_IMPLIED = {Role.STRUCT: Dtype.UINT8, Role.POINTER: Dtype.UINT64, Role.POINTERS: Dtype.UINT64}
"""Element types that follow from a role."""


def _dtype_may_be_left_out(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema["required"] if name != "dtype"]


class Argument(Frozen):
    """One argument of a kernel, in the kernel's own order, or a buffer to which arguments lead."""

    model_config = ConfigDict(json_schema_extra=_dtype_may_be_left_out)

    name: Identifier
    dtype: Dtype
    """Element type. It may be left out if the role is `struct`, `pointer` or `pointers`."""
    role: Role
    shape: tuple[Expression, ...] = Field(default=(), max_length=8)
    """Extents of a buffer in elements, slowest dimension first; empty for a scalar. For the role `local`:
    elements per work-group, and parameter names stand for the values of the configuration. For `pointers`:
    the number of addresses."""
    value: Expression | None = None
    """Value of a scalar: an expression over dimensions, or a number."""
    values: tuple[Expression, ...] = Field(default=(), max_length=MAX_COUNT)
    """Lanes of a vector by value (`uint3`, `float4`), instead of `value`."""
    draw: Draw | None = None
    """Distribution of an input or inout. Default: normal for floats, integers 0..127 otherwise."""
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
    def _imply_dtype(cls, data: Any) -> Any:
        role = data.get("role") if isinstance(data, dict) else None
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
        elif self.value is not None or self.values or not self.shape:
            what = "local" if self.role is Role.LOCAL else "array" if self.role is Role.POINTERS else "buffer"
            unit = {Role.LOCAL: " (elements of a work-group)", Role.POINTERS: " (the number of addresses)"}
            raise ValueError(f"{what} {self.name} needs a shape{unit.get(self.role, '')} and no value")
        elif self.role is not Role.POINTERS and (self.to or self.fields or self.type):
            raise ValueError(f"{self.role.value} {self.name} has no to, fields or type")
        if self.role is Role.OUTPUT and self.draw is not None:
            raise ValueError(f"output {self.name} is written, not drawn; remove draw or use inout")
        if self.draw is not None and self.role not in (Role.INPUT, Role.INOUT):
            raise ValueError(f"{self.role.value} {self.name} is not drawn; remove draw")
        return self

    def _check_by_value(self) -> None:
        if self.shape or (self.role is Role.SCALAR and self.value is None and not self.values):
            say = "a value" if self.role is Role.SCALAR else _SAYS[self.role]
            raise ValueError(f"{self.role.value} {self.name} needs {say} and no shape")
        problem = by_value_problem(self.as_field())
        if problem:
            raise ValueError(problem)

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
        """True if the argument is device memory that holds data: a buffer, or an image."""
        return self.role in (Role.INPUT, Role.OUTPUT, Role.INOUT)

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
_OF_FIELDS = ("name", "value", "values", "to", "offset", "step", "fields", "type", "align")


def _targets(field: StructField, where: str = "") -> Iterator[tuple[str, str]]:
    if field.role is FieldRole.POINTER:
        yield from ((f"{where}to", name) for name in targets(field) if name is not None)
    for n, inner in enumerate(field.fields):
        yield from _targets(inner, f"{where}fields.{n}.")


CompileOption = Annotated[str, StringConstraints(max_length=120)]


class Compiler(StrEnum):
    """CUDA compilers. `auto` takes NVRTC, and nvcc for what NVRTC cannot read."""

    AUTO = "auto"
    NVRTC = "nvrtc"
    NVCC = "nvcc"


class Kernel(Frozen):
    """Device source, entry point, arguments and launch."""

    backend: Backend
    source: str | None = Field(default=None, max_length=MAX_SOURCE_BYTES)
    """The source text. A job file may give `source_file` instead; the client reads it."""
    source_file: str | None = Field(default=None, max_length=500)
    entry: str = Field(min_length=1, max_length=500)
    """Function name, or a C++ name expression such as `ns::kernel<__half, 8>` (CUDA)."""
    options: tuple[CompileOption, ...] = Field(default=(), max_length=32)
    """Compile options; only those on the allow-list of the back end are accepted."""
    includes: tuple[Identifier, ...] = Field(default=(), max_length=8)
    """Names of include folders, as the operator permits them."""
    files: dict[str, str] = Field(default={}, max_length=MAX_FILES)
    """Headers sent with the kernel: texts by relative path. The client collects them."""
    include_dirs: tuple[str, ...] = Field(default=(), max_length=16)
    """Folders of `files` that are searched for headers, in this order; the root is searched last. In a job
    file: folders on this machine, relative to the job file; the client sends the headers that are included
    from them."""
    compiler: Compiler = Compiler.AUTO
    arguments: tuple[Argument, ...] = Field(min_length=1, max_length=64)
    buffers: tuple[Argument, ...] = Field(default=(), max_length=64)
    """Buffers that the kernel gets only by addresses in structs and in arrays of addresses."""
    launch: Launch

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.source is None) == (self.source_file is None):
            raise ValueError("give exactly one of source and source_file")
        self._check_files()
        for field, text in (("source", self.source or ""), ("entry", self.entry)):
            if "\0" in text:
                raise ValueError(f"{field}: has a NUL character, where a compiler would stop reading")
        names: set[str] = set()
        for place, argument in self.placed():
            if argument.name in names:
                raise ValueError(f"{place}.name: argument {argument.name} is declared twice")
            names.add(argument.name)
        if not any(a.is_mutated for a in self.declared):
            raise ValueError("arguments: none has role output or inout, so nothing could be compared")
        self._check_addresses()
        self._check_opencl_only()
        return self

    def placed(self) -> Iterator[tuple[str, Argument]]:
        """Arguments and buffers, each with its field."""
        yield from ((f"arguments.{n}", a) for n, a in enumerate(self.arguments))
        yield from ((f"buffers.{n}", a) for n, a in enumerate(self.buffers))

    @property
    def declared(self) -> tuple[Argument, ...]:
        """Arguments, and the buffers to which they lead."""
        return self.arguments + self.buffers

    def _check_addresses(self) -> None:
        memory = {
            a.name for a in self.declared if (a.is_buffer and a.image is None) or a.role is Role.POINTERS
        }
        led_to = set()
        for place, argument in self.placed():
            for field, name in argument.targets():
                if name not in memory:
                    known = ", ".join(sorted(memory))
                    raise ValueError(f"{place}.{field}: no buffer {name!r} is declared; declared are {known}")
                led_to.add(name)
        for n, argument in enumerate(self.buffers):
            if argument.name not in memory:
                raise ValueError(
                    f"buffers.{n}.role: {argument.name} is {argument.role.value}; only buffers and pointers "
                    "can be led to"
                )
            if argument.name not in led_to:
                raise ValueError(f"buffers.{n}.name: nothing leads to {argument.name}")

    def _check_files(self) -> None:
        problem = files_problem(self.files)
        if problem:
            raise ValueError(f"files: {problem}")
        known = folders_of(self.files)
        for n, folder in enumerate(self.include_dirs):
            if folder not in known:
                raise ValueError(
                    f"include_dirs.{n}: {folder!r} is no folder of kernel.files; the service reads no "
                    "files: send the headers as kernel.files, as the command line does"
                )

    def _check_opencl_only(self) -> None:
        if self.backend is Backend.OPENCL:
            self._check_opencl()
        if self.backend not in (Backend.CUDA, Backend.HIP):
            return
        for n, argument in enumerate(self.arguments):
            if argument.role is Role.LOCAL:
                raise ValueError(
                    f"arguments.{n}.role: {self.backend.value} kernels have no local arguments; declare "
                    "extern __shared__ memory in the kernel and use launch.shared_bytes"
                )
            if argument.image is not None:
                raise ValueError(
                    f"arguments.{n}.image: {argument.name}: textures cannot be posted; use a buffer"
                )

    def _check_opencl(self) -> None:
        if self.launch.joins_blocks:
            field = "cooperative" if self.launch.cooperative else "cluster"
            raise ValueError(f"launch.{field}: OpenCL's groups cannot wait for each other; leave it out")
        for place, argument in self.placed():
            inside = [f for f, _ in argument.targets() if f.startswith("fields")]
            if argument.role is Role.POINTERS or inside:
                field = f"{place}.{inside[0]}" if inside else f"{place}.role"
                raise ValueError(f"{field}: OpenCL passes a buffer only as an argument, never by its address")
            if argument.role is Role.POINTER and argument.offset.text != "0":
                raise ValueError(f"{place}.offset: an OpenCL argument is a buffer from its first element on")

    @property
    def reached_twice(self) -> str:
        """A buffer that the kernel writes and gets by two ways; empty if no two of its pointers may meet."""
        ways = [a.name for a in self.arguments if a.is_buffer]
        for argument in self.declared:
            ways += [name for _, name in argument.targets()]
        return next((a.name for a in self.declared if a.is_mutated and ways.count(a.name) > 1), "")

    @property
    def local_arguments(self) -> tuple[Argument, ...]:
        """Arguments with the role `local`, in order."""
        return tuple(a for a in self.arguments if a.role is Role.LOCAL)

    @property
    def text(self) -> str:
        """The source text. Only for kernels whose source is inline."""
        if self.source is None:
            raise ValueError("the source file has not been read yet")
        return self.source
