"""Launches made concrete for one workload: all values are numbers."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.kernels.specialisation import Specialisation, specialisation_of
from warpsmith.domain.templates.space import is_shape
from warpsmith.domain.templates.template import LARGE_GRID, ConfiguredKernel, ExpectedLaunch
from warpsmith.errors import ExpressionError


@dataclass(frozen=True)
class LaunchSize:
    """A launch in numbers, or the first of a sequence. OpenCL's global size is grid times block."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    local_bytes: tuple[int, ...] = ()
    """OpenCL: bytes of each argument with the role `local` that the launch takes, in order."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Blocks of a cluster that the launch asks for."""
    cooperative: bool = False
    """True if all blocks must be on the device at once."""
    takes: tuple[int, ...] = ()
    """Places, among the kernel's arguments, of those that the launch takes, in order; empty: all."""
    then: tuple["LaunchSize", ...] = ()
    """Further launches of the sequence, in order."""
    scratch_bytes: tuple[int, ...] = ()
    """Bytes of each argument with the role `scratch`, in order."""
    variant: str = ""
    """Triton: key of the `Specialisation` that the launch runs."""

    @property
    def steps(self) -> tuple["LaunchSize", ...]:
        """All launches, in order."""
        return (self, *self.then)

    @property
    def has_attributes(self) -> bool:
        """True if the driver must be told more than extents and bytes."""
        return self.cooperative or self.cluster != (1, 1, 1)

    @property
    def dynamic_bytes(self) -> int:
        """Bytes of shared (local) memory that a block gets at launch."""
        return self.shared_bytes + sum(self.local_bytes)


def launch_size(kernel: ConfiguredKernel, workload: Workload, device: DeviceInfo) -> LaunchSize:
    """The launch of a configuration for one workload on one device.

    Raises:
        ExpressionError: it cannot be evaluated.
    """
    size = evaluated(kernel.kernel, kernel.scope(workload.scope(), device.scope()))
    if not kernel.kernel.backend.language.specialises:
        return size
    return replace(size, variant=specialised(kernel, workload, device).key)


def specialised(kernel: ConfiguredKernel, workload: Workload, device: DeviceInfo) -> Specialisation:
    """The variant of a Triton kernel that runs a workload.

    Raises:
        ExpressionError: a value cannot be evaluated.
    """
    of, scope = kernel.kernel, kernel.scope(workload.scope(), device.scope())
    own = {n: v for n, v in kernel.configuration.items() if not is_shape(n)}
    return specialisation_of(of.text, of.entry, of.arguments, of.constexprs, own, scope)


def variants(
    kernel: ConfiguredKernel, workloads: Iterable[Workload], device: DeviceInfo
) -> dict[str, ConfiguredKernel]:
    """The distinct variants of a Triton kernel that these workloads run, by key.

    A workload whose values cannot be evaluated has none.
    """
    found = {}
    for workload in workloads:
        with suppress(ExpressionError):
            one = specialised(kernel, workload, device)
            found[one.key] = kernel.model_copy(update={"specialisation": one})
    return found


def evaluated(kernel: Kernel, scope: Mapping[str, Value]) -> LaunchSize:
    """The launch, or the launches of a sequence, as numbers, if `scope` has every name.

    Raises:
        ExpressionError: it cannot be evaluated.
    """
    if not kernel.launches:
        return evaluated_launch(kernel.launch, scope, kernel.local_arguments)
    places = {a.name: n for n, a in enumerate(kernel.arguments)}
    steps = []
    for n, step in enumerate(kernel.launches):
        size = evaluated_launch(step.launch, scope, kernel.of_step(n).local_arguments)
        steps.append(replace(size, takes=tuple(places[name] for name in step.arguments)))
    scratch = tuple(a.bytes_expression.integer(scope) for a in kernel.scratch)
    return replace(steps[0], then=tuple(steps[1:]), scratch_bytes=scratch)


def expecting_launches(
    kernel: ConfiguredKernel, workloads: Sequence[Workload], device: DeviceInfo
) -> ConfiguredKernel:
    """`kernel` with the launch of its first workload that can be evaluated, for a driver that finishes late.

    PoCL makes a work-group function for each block size when it is first launched, which takes seconds in
    each new process. With the launch known, the compiler does it once, beside others.
    """
    if not device.backend.language.finishes_at_launch or not device.shares_host:
        return kernel
    for workload in workloads:
        try:
            size = launch_size(kernel, workload, device)
        except ExpressionError:
            continue
        threads = max(grid * block for grid, block in zip(size.grid, size.block, strict=True))
        expected = ExpectedLaunch(block=size.block, is_small=threads < LARGE_GRID)
        return kernel.model_copy(update={"expected_launch": expected})
    return kernel


def evaluated_launch(
    launch: Launch, scope: Mapping[str, Value], local: Sequence[Argument] = ()
) -> LaunchSize:
    """Evaluate the geometry of a launch in a scope that has every name.

    Args:
        local: its arguments with the role `local`, in order.

    Raises:
        ExpressionError: it cannot be evaluated.
    """
    grid = [e.integer(scope) for e in launch.grid] + [1, 1]
    block = [e.integer(scope) for e in launch.block] + [1, 1]
    cluster = [e.integer(scope) for e in launch.cluster] + [1, 1, 1]
    return LaunchSize(
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        shared_bytes=launch.shared_bytes.integer(scope),
        local_bytes=tuple(a.bytes_expression.integer(scope) for a in local),
        cluster=(cluster[0], cluster[1], cluster[2]),
        cooperative=launch.cooperative,
    )
