"""The kernel to launch for one shape, with everything that a launch needs."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.by_value_plan import number as value_of
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import macro_text
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.compiled_kernel import CompiledKernel
from warpsmith.http_models import JobResult
from warpsmith.report.shape_lookup import Lookup, launches_of
from warpsmith.verify.dtypes import numpy_dtype

_BUFFERS = (Role.INPUT, Role.OUTPUT, Role.INOUT)


@dataclass(frozen=True)
class KernelLaunch:
    """Launch of a kernel in numbers. OpenCL's global size is grid times block."""

    entry: str
    """Function name, or a C++ name expression (CUDA)."""
    arguments: tuple[str, ...]
    """Names of the arguments that it takes, in order."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    """Bytes of dynamic shared memory (CUDA)."""
    local_bytes: tuple[int, ...]
    """Bytes of each `__local` argument, in order (OpenCL)."""
    cluster: tuple[int, int, int]
    """Blocks of a cluster, a launch attribute; (1, 1, 1): none is asked for."""
    cooperative: bool
    """True if it needs the launch attribute `cooperative`."""


@dataclass(frozen=True)
class TunedKernel:
    """Kernel that serves one shape: a tuned one, or the user's own where none is known to be faster."""

    dimensions: Mapping[str, int]
    """The shape."""
    is_tuned: bool
    """False: the user's own kernel serves."""
    backend: Backend
    source: str
    """The source to compile, complete: it sets `defines` itself."""
    defines: Mapping[str, str]
    """Macros that `source` sets, with their texts."""
    configuration: Configuration
    """Parameters of the kernel, with their values."""
    options: tuple[str, ...]
    """Compile options of the job."""
    files: Mapping[str, str]
    """Headers that the job sent: texts by relative path."""
    launches: tuple[KernelLaunch, ...]
    """The launches in order; more than one for a sequence."""
    scratch_bytes: tuple[int, ...]
    """Bytes of each argument with the role `scratch`, in order."""
    scratch: Mapping[str, int]
    """The same by name."""
    buffer_bytes: Mapping[str, int]
    """Bytes that each buffer has at least, by name, in the kernel's order."""
    by_value: Mapping[str, np.generic]
    """Numbers by argument, in the kernel's types."""

    def compile(self, queue: Any) -> CompiledKernel:
        """Compile the kernel for PyOpenCL. The result is called with its buffers, in the kernel's order.

        Args:
            queue: a queue, or a context, of which a queue is made.

        Raises:
            InvalidInput: it is neither, or the kernel takes structs, vectors, images or pointers by value.
        """
        return CompiledKernel(self, queue)

    @property
    def entry(self) -> str:
        """Entry point of the first launch."""
        return self.launches[0].entry

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks of the first launch, by axis."""
        return self.launches[0].grid

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block of the first launch, by axis."""
        return self.launches[0].block

    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory of the first launch."""
        return self.launches[0].shared_bytes


def tuned_kernel(result: JobResult, dimensions: Mapping[str, int]) -> TunedKernel:
    """Kernel that serves a shape, chosen as the dispatch module of the bundle chooses.

    Raises:
        InvalidInput: a dimension is unknown, missing or no whole number above 0; an older version wrote the
            result; or the job ended before a device was known.
        ExpressionError: the launch cannot be evaluated for the shape.
    """
    if result.limits is None and not result.dispatch:
        why = f": {result.detail}" if result.detail else ""
        raise InvalidInput("", f"job {result.id} ended before its device was known{why}; tune it again")
    try:
        lookup = Lookup(result)
    except ValueError as exc:
        raise InvalidInput("", str(exc)) from exc
    shape = _shape(lookup.dimensions, dimensions)
    number = lookup.pick(shape)
    size = lookup.size(number, shape)
    kernel = result.job.kernel
    if number is None:
        configuration, source = lookup.own.configuration, lookup.own.source
        scratch = lookup.own.kernel.scratch
        steps = [(step.entry, step.arguments) for step in lookup.own.kernel.steps]
    else:
        server = lookup.servers[number]
        configuration, source = server.configuration, server.entry.source or ""
        scratch = server.entry.scratch_arguments
        every = tuple(a.name for a in kernel.arguments)
        steps = [(step.entry, step.arguments or every) for step in launches_of(server.entry)]
    scope = {**lookup.limits.scope(), **shape, **configuration}
    return TunedKernel(
        dimensions=shape,
        is_tuned=number is not None,
        backend=kernel.backend,
        source=source,
        defines={name: macro_text(value) for name, value in configuration.items()},
        configuration=dict(configuration),
        options=kernel.options,
        files=dict(kernel.files),
        launches=tuple(
            _launch(entry, arguments, numbers)
            for (entry, arguments), numbers in zip(steps, size.steps, strict=True)
        ),
        scratch_bytes=size.scratch_bytes,
        scratch=dict(zip((a.name for a in scratch), size.scratch_bytes, strict=True)),
        buffer_bytes=_buffer_bytes(kernel, scope),
        by_value=_numbers(kernel, scope),
    )


def _buffer_bytes(kernel: Kernel, scope: Mapping[str, Value]) -> dict[str, int]:
    buffers = (a for a in kernel.arguments if a.role in _BUFFERS and a.image is None)
    return {a.name: a.bytes_expression.integer(scope) for a in buffers}


def _numbers(kernel: Kernel, scope: Mapping[str, Value]) -> dict[str, np.generic]:
    scalars = ((a, a.value) for a in kernel.arguments if a.role is Role.SCALAR)
    return {
        a.name: numpy_dtype(a.dtype).type(value_of(v, a.dtype, scope)) for a, v in scalars if v is not None
    }


def _launch(entry: str, arguments: tuple[str, ...], size: LaunchSize) -> KernelLaunch:
    return KernelLaunch(
        entry=entry,
        arguments=arguments,
        grid=size.grid,
        block=size.block,
        shared_bytes=size.shared_bytes,
        local_bytes=size.local_bytes,
        cluster=size.cluster,
        cooperative=size.cooperative,
    )


def _shape(names: tuple[str, ...], given: Mapping[str, int]) -> dict[str, int]:
    wanted = f"the dimensions are {', '.join(names)}" if names else "the kernel has no dimensions"
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise InvalidInput(name, f"no such dimension; {meant}{wanted}")
    lacking = [name for name in names if name not in given]
    if lacking:
        raise InvalidInput(", ".join(lacking), f"no value given; {wanted}")
    return {name: _extent(name, given[name]) for name in names}


def _extent(name: str, value: int) -> int:
    try:
        extent = operator.index(value)
    except TypeError:
        raise InvalidInput(name, f"is {value!r}; give a whole number") from None
    if extent < 1:
        raise InvalidInput(name, f"is {extent}; give a whole number above 0")
    return extent
