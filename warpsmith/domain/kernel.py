"""Kernels: device source, entry point, arguments and launch. Never host code."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import Expression
from warpsmith.domain.headers import MAX_FILES, files_problem, folders_of
from warpsmith.domain.image import ImageFormat

MAX_SOURCE_BYTES = 256 * 1024


class Dtype(StrEnum):
    """Element types of arguments."""

    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"

    @property
    def size_bytes(self) -> int:
        """Bytes of one element."""
        return int(self.value.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8

    @property
    def is_float(self) -> bool:
        """True for the floating-point types."""
        return "float" in self.value


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


class Distribution(StrEnum):
    """Distributions from which the elements of an input are drawn."""

    NORMAL = "normal"
    UNIFORM = "uniform"
    INTEGERS = "integers"
    CONSTANT = "constant"


class Draw(Frozen):
    """Distribution of an input. `normal` uses mean and std; the others use low and high (high excluded)."""

    distribution: Distribution = Distribution.NORMAL
    mean: float = 0.0
    std: float = Field(default=1.0, ge=0)
    low: float = -1.0
    high: float = 1.0


class Argument(Frozen):
    """One argument of a kernel, in the kernel's own order."""

    name: Identifier
    dtype: Dtype
    role: Role
    shape: tuple[Expression, ...] = Field(default=(), max_length=8)
    """Extents of a buffer in elements, slowest dimension first; empty for a scalar. For the role `local`:
    elements per work-group, and parameter names stand for the values of the configuration."""
    value: Expression | None = None
    """Value of a scalar: an expression over dimensions, or a number."""
    draw: Draw | None = None
    """Distribution of an input or inout. Default: normal for floats, integers 0..127 otherwise."""
    image: ImageFormat | None = None
    """OpenCL: the argument is an `image2d_t` or `image3d_t`, input or output, instead of a buffer."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.image is not None:
            self._check_image(self.image)
        if self.role is Role.SCALAR:
            if self.value is None or self.shape:
                raise ValueError(f"scalar {self.name} needs a value and no shape")
        elif self.role is Role.LOCAL:
            if not self.shape or self.value is not None or self.draw is not None:
                raise ValueError(
                    f"local {self.name} needs a shape (elements of a work-group), no value and no draw"
                )
        elif not self.shape or self.value is not None:
            raise ValueError(f"buffer {self.name} needs a shape and no value")
        if self.role is Role.OUTPUT and self.draw is not None:
            raise ValueError(f"output {self.name} is written, not drawn; remove draw or use inout")
        return self

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
        """True if the kernel gets device memory: a pointer to it, or an image."""
        return self.role not in (Role.SCALAR, Role.LOCAL)

    @property
    def bytes_expression(self) -> Expression:
        """Bytes of a buffer, or bytes per work-group of a local argument."""
        return Expression(" * ".join([*(f"({e.text})" for e in self.shape), str(self.dtype.size_bytes)]))

    @property
    def is_mutated(self) -> bool:
        """True if the kernel writes the argument, so that it is compared."""
        return self.role in (Role.OUTPUT, Role.INOUT)


class Launch(Frozen):
    """Launch geometry in CUDA terms. The OpenCL global size is grid times block."""

    grid: tuple[Expression, ...] = Field(min_length=1, max_length=3)
    """Blocks (work-groups) along x, y, z."""
    block: tuple[Expression, ...] = Field(min_length=1, max_length=3)
    """Threads (work-items) per block along x, y, z."""
    shared_bytes: Expression = Expression(0)
    """Bytes of dynamic shared memory. Not supported for OpenCL, where a `__local` argument has the role
    `local`."""


CompileOption = Annotated[str, StringConstraints(max_length=120)]


class Compiler(StrEnum):
    """CUDA compilers. `auto` takes NVRTC, and nvcc if NVRTC lacks a host header."""

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
    launch: Launch

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.source is None) == (self.source_file is None):
            raise ValueError("give exactly one of source and source_file")
        self._check_files()
        for field, text in (("source", self.source or ""), ("entry", self.entry)):
            if "\0" in text:
                raise ValueError(f"{field}: has a NUL character, where a compiler would stop reading")
        names = [a.name for a in self.arguments]
        for n, name in enumerate(names):
            if name in names[:n]:
                raise ValueError(f"arguments.{n}.name: argument {name} is declared twice")
        if not any(a.is_mutated for a in self.arguments):
            raise ValueError("arguments: none has role output or inout, so nothing could be compared")
        self._check_opencl_only()
        return self

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
