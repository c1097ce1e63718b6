"""A tuned kernel as an operator that a program calls: its parameters, its shapes and its binaries."""

import ast
import hashlib
import keyword
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.device import DeviceInfo, is_amd
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.format_limits import has_scratch, joins_blocks, refuse_lacking
from warpsmith.extras import require
from warpsmith.http_models import JobResult
from warpsmith.report.shape_lookup import Lookup, launches_of
from warpsmith.sandbox import CompilePool

ALIGNED_BYTES = 16
"""Alignment of buffers that a tuned kernel may rely on; verification gives more."""
_CPP = {
    *("alignas", "auto", "bool", "case", "char", "const", "default", "delete", "do", "double", "enum"),
    *("explicit", "export", "extern", "false", "float", "friend", "goto", "inline", "int", "long"),
    *("namespace", "new", "nullptr", "operator", "private", "public", "register", "short", "signed"),
    *("static", "struct", "switch", "template", "this", "true", "typename", "union", "unsigned", "using"),
    *("virtual", "void", "volatile", "xor"),
}
_LOCAL = {
    *("address", "bad", "chosen", "ctypes", "detail", "dimensions", "driver", "error_text", "found"),
    *("functions", "got", "index", "is_known", "key", "launch", "leading", "name", "off", "os", "own"),
    *("plan", "prepare", "run", "self", "set_fallback", "shape", "sizes", "stream", "tensor", "threading"),
    *("torch", "tuned", "tvm_ffi", "wanted", "where"),
}
"""Names that the generated files use themselves."""
_PREFIXES = ("_", "ws_", "dim_", "at_", "bytes_", "value_")
"""With which other names of generated files begin."""


@dataclass(frozen=True)
class Binary:
    """Compiled kernel of an operator."""

    cubin: bytes
    symbol: str
    """Name of the function in the cubin."""


@dataclass(frozen=True)
class DimensionSource:
    """Axis of a buffer from which a dimension is read: its extent is the dimension times a number."""

    buffer: str
    axis: int
    times: int = 1


class Operator:
    """A job's kernel as a function of its buffers and scalars.

    Args:
        name: of the function; by default that of the entry.
        may_join: True if the format can launch clusters and cooperative grids.

    Attributes:
        arguments: of the kernel, in its order, with names that C++ and Python take.
        given: those that a caller gives: all but scalars that follow from dimensions, null pointers and
            empty structs.
        dimensions: in alphabetical order.
        places: by dimension, where it can be read.
        joins_blocks: True if a launch is cooperative or has clusters.
        explicit: the dimensions without a place, each with the name of its parameter.
        binaries: the user's kernel, then the servers of the table in their order.

    Raises:
        InvalidInput: the job has what no operator can hold; says what.
        Unavailable: there is no compiler.
    """

    def __init__(self, result: JobResult, name: str = "", may_join: bool = False) -> None:
        try:
            self.lookup = Lookup(result)
        except ValueError as exc:
            raise InvalidInput("", str(exc)) from exc
        self.result = result
        kernel = result.job.kernel
        self.joins_blocks = joins_blocks(self.lookup)
        _require_simple(self.lookup, kernel, result.architecture, may_join or not self.joins_blocks)
        self.name = free_name(name or kernel.entry.split("<")[0].rsplit("::", 1)[-1])
        fixed = [_is_fixed(a) for a in kernel.arguments]
        zero = {"role": Role.SCALAR, "value": Expression("0")}
        self.arguments = tuple(
            a.model_copy(update={"name": free_name(a.name)} | (zero if nothing else {}))
            for a, nothing in zip(kernel.arguments, fixed, strict=True)
        )
        self.dimensions = self.lookup.dimensions
        self.given = [
            a for a, nothing in zip(self.arguments, fixed, strict=True) if not (nothing or _follows(a))
        ]
        self.places = dict(_places(self.arguments, self.dimensions))
        self.explicit = {d: free_name(d) for d in self.dimensions if d not in self.places}
        self.binaries = _binaries(result, self.lookup)

    @property
    def buffers(self) -> list[Argument]:
        """Arguments that are memory, in order."""
        return [a for a in self.arguments if a.is_buffer]

    @property
    def scalars(self) -> list[Argument]:
        """Scalars that a caller may give, in order."""
        return [a for a in self.given if a.role is Role.SCALAR]

    @property
    def outputs(self) -> list[Argument]:
        """Buffers that are only written, in order."""
        return [a for a in self.buffers if a.role is Role.OUTPUT]

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor number of the architecture."""
        digits = re.sub(r"\D", "", self.result.architecture)
        return int(digits[:-1]), int(digits[-1])

    def argument(self, name: str) -> Argument:
        """An argument by its name."""
        return next(a for a in self.arguments if a.name == name)

    def pairs(self) -> Iterator[tuple[Argument, Argument]]:
        """Buffers that must not overlap: one that is written, and any other."""
        for a, b in combinations(self.buffers, 2):
            if a.is_mutated or b.is_mutated:
                yield a, b

    @property
    def digest(self) -> str:
        """Short name of what is inside, for caches."""
        found = hashlib.sha256()
        for binary in self.binaries:
            found.update(binary.cubin)
        return found.hexdigest()[:12]


def default_of(argument: Argument) -> int | float:
    """The value of a scalar that the job gives as a number."""
    assert argument.value is not None
    value = argument.value.evaluate({})
    if argument.dtype is Dtype.BOOL:
        return bool(value)
    return float(value) if argument.dtype.is_float else int(value)


def _is_fixed(argument: Argument) -> bool:
    """True for a pointer that is null and for a struct without a member: zero, whatever a caller has."""
    return argument.role in (Role.POINTER, Role.STRUCT) and not (
        argument.to or argument.fields or argument.align
    )


def _follows(argument: Argument) -> bool:
    """True for a scalar that dimensions decide."""
    return argument.role is Role.SCALAR and argument.value is not None and bool(argument.value.names)


def _places(
    arguments: Sequence[Argument], dimensions: Sequence[str]
) -> Iterator[tuple[str, DimensionSource]]:
    """Axes from which dimensions can be read; inputs come first, since a caller has them."""
    buffers = sorted((a for a in arguments if a.is_buffer), key=lambda a: a.role is Role.OUTPUT)
    for name in dimensions:
        found = (
            DimensionSource(b.name, axis, times)
            for b in buffers
            for axis, extent in enumerate(b.shape)
            if (times := _multiple(extent, name))
        )
        place = next(found, None)
        if place is not None:
            yield name, place


def _multiple(extent: Expression, name: str) -> int:
    """The number of which an extent is a multiple by a dimension; 0 if it is none."""
    match extent.tree:
        case ast.Name(id=found) if found == name:
            return 1
        case ast.BinOp(ast.Name(id=found), ast.Mult(), ast.Constant(int(times))) | ast.BinOp(
            ast.Constant(int(times)), ast.Mult(), ast.Name(id=found)
        ) if found == name:
            return times
    return 0


def _require_simple(lookup: Lookup, kernel: Kernel, architecture: str, can_launch: bool) -> None:
    plain = (Role.INPUT, Role.OUTPUT, Role.INOUT, Role.SCALAR)
    odd = sorted({a.role.value for a in kernel.declared if a.role not in plain and not _is_fixed(a)})
    floats = [
        a for a in kernel.arguments if a.role is Role.SCALAR and a.value is not None and a.dtype.is_float
    ]
    fractions = [a.name for a in floats if _follows(a)]
    narrow = [a.name for a in floats if a.dtype.size_bytes < 4]
    lacking = {
        f"the scalar {', '.join(narrow)} of less than 32 bits": bool(narrow),
        f"a kernel for {kernel.backend.value}": not kernel.backend.language.has_cuda_words,
        f"binaries for {architecture}, since cubins are for NVIDIA": is_amd(architecture),
        "a sequence of launches": bool(kernel.launches),
        "scratch memory": has_scratch(lookup),
        f"arguments with the role {' or '.join(odd)}": bool(odd),
        "vectors by value": any(a.values for a in kernel.arguments),
        f"the fraction {', '.join(fractions)}, which follows from dimensions": bool(fractions),
        "clusters or cooperative launches": not can_launch,
    }
    refuse_lacking(lacking, "this format", "c, or dispatch.py of the result folder")


def free_name(text: str) -> str:
    """An identifier that is no word of C++ or Python, and no name of the generated files."""
    name = re.sub(r"\W", "_", text)
    if not name or name[0].isdigit() or name.startswith(_PREFIXES):
        name = f"x{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _CPP | _LOCAL else name


def device_of(result: JobResult) -> DeviceInfo:
    """The device of a result, as far as a compiler has to know it.

    Raises:
        InvalidInput: an older version wrote the result, which does not say.
    """
    if not result.architecture or result.limits is None:
        raise InvalidInput(
            "", "the result does not say what it was compiled for; recheck or tune the job again"
        )
    return DeviceInfo(
        backend=result.job.kernel.backend,
        index=0,
        uid="export",
        name=result.device,
        driver=result.driver,
        architecture=result.architecture,
        limits=result.limits,
    )


def _binaries(result: JobResult, lookup: Lookup) -> list[Binary]:
    """The user's kernel and the servers, compiled for the device of the result.

    Raises:
        InvalidInput: one does not compile here; says why.
        Unavailable: there is no compiler; names the extra that brings it.
    """
    device = device_of(result)
    require(["cuda"])
    job = lookup.job
    kernels = [lookup.own]
    for server in lookup.servers:
        (step,) = launches_of(server.entry)
        changed = {"source": server.entry.source, "entry": step.entry, "launch": step.launch}
        made = job.kernel.model_copy(update=changed)
        kernels.append(ConfiguredKernel(kernel=made, defines={}, configuration={}))
    found = []
    with closing(CompilePool(workers=min(4, len(kernels)))) as pool:
        for future in [pool.submit(kernel, device) for kernel in kernels]:
            compiled = future.result()
            if isinstance(compiled, Rejected):
                raise InvalidInput("", f"a kernel of the result does not compile here: {compiled.reason}")
            found.append(Binary(compiled.binary, compiled.entry))
    return found
