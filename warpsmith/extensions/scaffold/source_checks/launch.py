"""Compares a job's launch with the limits of devices, and with the output that it must cover."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import Backend, DeviceInfo, DeviceLimits
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.errors import ExpressionError
from warpsmith.extensions.scaffold.source_checks.each_launch import of_each_launch
from warpsmith.extensions.scaffold.source_checks.remainders import remainder_findings
from warpsmith.extensions.scaffold.source_checks.signature import definitions, kernels_of
from warpsmith.job_files.finding import Finding
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels
from warpsmith.source.lexing.tokens import blank

_AXES = "xyz"
_AXIS = {"1": 1, "y": 1, "2": 2, "z": 2}
_AGAIN = re.compile(r"\b(?:for|while|do|goto)\b|\bvstore\w*|\bmem(?:cpy|set)\b|\basync_work_group")
_WORDS = re.compile(r"\b[A-Za-z_]\w*\s*\(")


@dataclass(frozen=True)
class _Limits:
    """Limits of a launch, and the device or back end that sets them."""

    block: tuple[int, int, int]
    threads: int
    grid: tuple[int, int, int]
    whose: str


_CUDA = _Limits((1024, 1024, 64), 1024, (2**31 - 1, 65535, 65535), "every CUDA device")


def launch_findings(job: Job, devices: Sequence[DeviceInfo] = ()) -> Iterator[Finding]:
    """Findings about blocks and grids that are too large, and launches that leave elements of an output
    unwritten.

    Args:
        devices: devices of the job's back end. A launch is too large if it is too large for all of them. If
            empty, the limits that hold for every device of the back end are used.
    """
    yield from of_each_launch(job, lambda alone: _of_launch(alone, devices))


def _of_launch(job: Job, devices: Sequence[DeviceInfo]) -> Iterator[Finding]:
    scope = devices[0].scope() if devices else {}
    yield from _axes(job)
    left_out = list(remainder_findings(job, scope))
    yield from left_out
    kernel = _plain(job)
    for index, workload in enumerate(job.workloads):
        names = {**scope, **workload.scope(), **job.space.defaults}
        block, grid = _sizes(job.kernel.launch.block, names), _sizes(job.kernel.launch.grid, names)
        of_each = [list(_too_large(block, grid, limits)) for limits in _limits(job.kernel.backend, devices)]
        found = min(of_each, key=len, default=[])
        yield from found
        known = found or left_out
        uncovered = () if known else tuple(_uncovered(job, kernel, workload, index, block, grid, names))
        yield from uncovered
        if found or uncovered:
            return


def _limits(backend: Backend, devices: Sequence[DeviceInfo]) -> list[_Limits]:
    known = [_of(d.limits, d.name) for d in devices]
    return known or ([_CUDA] if backend.language.runs_on_nvidia else [])


def _of(limits: DeviceLimits, name: str) -> _Limits:
    return _Limits(
        (limits.max_block_x, limits.max_block_y, limits.max_block_z),
        limits.max_threads_per_block,
        (limits.max_grid_x, limits.max_grid_y, limits.max_grid_z),
        name,
    )


def _sizes(extents: Sequence[Expression], names: Mapping[str, Value]) -> list[int] | None:
    """The values of the extents that can be evaluated here."""
    try:
        return [e.integer(names) for e in extents]
    except ExpressionError:
        return None


def _too_large(block: list[int] | None, grid: list[int] | None, limits: _Limits) -> Iterator[Finding]:
    for part, sizes, most in (("block", block, limits.block), ("grid", grid, limits.grid)):
        for n, size in enumerate(sizes or ()):
            if size > most[n]:
                words = f"{part} {_AXES[n]} is {size}; {limits.whose} takes 1 to {most[n]}"
                yield Finding(f"kernel.launch.{part}.{n}", words)
    if (
        block
        and prod(block) > limits.threads
        and all(b <= m for b, m in zip(block, limits.block, strict=False))
    ):
        times = " x ".join(str(b) for b in block)
        words = f"a block has {times} = {prod(block)} threads; {limits.whose} takes {limits.threads}"
        yield Finding("kernel.launch.block", words)


def _uncovered(
    job: Job,
    kernel: KernelDefinition | None,
    workload: Workload,
    index: int,
    block: list[int] | None,
    grid: list[int] | None,
    names: Mapping[str, Value],
) -> Iterator[Finding]:
    if block is None or grid is None:
        return
    threads = prod(block) * prod(grid)
    for a, argument in enumerate(job.kernel.arguments if kernel is not None else ()):
        each = 0 if kernel is None else _stores(kernel, a)
        elements = _sizes(argument.shape, names)
        if argument.role is not Role.OUTPUT or not each or elements is None:
            continue
        if threads * each < prod(elements):
            words = f"{threads} threads of at most {each} element{'s' * (each > 1)} each cannot write the "
            words += f"{prod(elements)} elements of {argument.name} ({workload.key}, workload {index})"
            yield Finding("kernel.launch.grid", words, is_error=False)
            return


def _axes(job: Job) -> Iterator[Finding]:
    """Findings about kernels that read their index on an axis that the launch does not use."""
    pattern = job.kernel.backend.language.axis
    if job.kernel.source is None or not pattern:
        return
    launch = job.kernel.launch
    have = max(len(launch.grid), len(launch.block))
    kernels = find_kernels(
        job.kernel.source, Dialect.from_backend(job.kernel.backend), headers=tuple(job.kernel.files.values())
    )
    found = definitions(kernels, job.kernel.entry)
    used = _axes_used(found, pattern)
    of_grid = _axes_used(found, job.kernel.backend.language.grid_axis)
    if len(launch.grid) < of_grid <= len(launch.block):
        axis = _AXES[of_grid - 1]
        words = (
            f"has no axis {axis}, along which the block has {launch.block[of_grid - 1].text} threads and the "
        )
        words += "kernel asks which block it is; without that axis there is one block along it"
        yield Finding("kernel.launch.grid", words, is_error=False)
    if used > have:
        words = f"the launch has {have} of the axes x, y, z; the kernel asks for its place along "
        words += f"{_AXES[used - 1]} too"
        yield Finding("kernel.launch.grid", words, is_error=False)


def _axes_used(kernels: Sequence[KernelDefinition], pattern: str) -> int:
    """Axes up to the last one that every definition of a kernel names; 1 without kernels."""
    named = [re.findall(pattern, blank(k.body)) for k in kernels]
    return min((max((1 + _AXIS[name] for name in names), default=1) for names in named), default=1)


def _plain(job: Job) -> KernelDefinition | None:
    """The kernel, if every thread runs each statement at most once and calls no function; else None."""
    if job.kernel.source is None or not job.kernel.backend.language.kernel_word:
        return None
    found = definitions(kernels_of(job.kernel), job.kernel.entry)
    if len(found) != 1 or _AGAIN.search(blank(found[0].body)):
        return None
    # A function-like macro may hold a loop, or a store.
    used = {call.rstrip("( \t\n") for call in _WORDS.findall(found[0].body)}
    macros = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", job.kernel.source, re.M)
    return None if used & set(macros) or "asm" in found[0].body else found[0]


def _stores(kernel: KernelDefinition, place: int) -> int:
    """Most elements of a buffer that one thread writes; 0 if unknown."""
    if place >= len(kernel.arguments) or not kernel.arguments[place].name:
        return 0
    a = kernel.arguments[place]
    body = blank(kernel.body)
    uses = re.findall(rf"(?<![\w.]){re.escape(a.name)}\b(\s*\[)?", body)
    pointed_at = re.search(rf"&\s*{re.escape(a.name)}\b", body)
    return 0 if pointed_at or not all(uses) else len(uses) * a.lanes
