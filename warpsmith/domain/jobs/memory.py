"""Memory needs of a job, computed from its shapes, so that a job that fits no device is refused at once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import NoReturn

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.device import DeviceInfo, DeviceLimits
from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.job import Job, NumpyReference, Workload
from warpsmith.domain.jobs.plan import WorkloadPlan
from warpsmith.errors import ExpressionError, InvalidInput

GUARD_BYTES = 4096
WIDE_GUARDS = 4
"""Size of wide guard zones, as a multiple of all buffers of a workload."""
MOST_GUARD_BYTES = 8 << 20

MAX_SETS = 64
"""Limit on the buffer sets over which the timed launches of one workload rotate."""
DISTINCT_VARIANTS = 4
"""Number of sets with distinct values. Further sets repeat these values at other addresses and share their
pristine copies."""
DEFAULT_CACHE_BYTES = 32 << 20
REDRAW_BYTES = 64 << 20
"""Size in bytes up to which inputs may be rewritten between two timed samples."""
HOST_SET_BYTES = 1 << 30
"""Limit on the bytes of the rotating sets of one workload if the device shares the host's memory."""
CHECKED_CASES = 5
"""Expected outputs of a large workload that a worker keeps at once: own draw, another draw, three
families."""
KEPT_CASES = 2
"""Expected outputs per workload that a search keeps: the workload's own draw and another one."""
REPORTS = 2
"""Copies of the outputs that are read back: of a checked launch and of its repetition."""
WIDE_BYTES = 8
"""Bytes per element in a reference, which computes in float64 or in the widest integer type."""


class PagesAt(StrEnum):
    """Place of the page without access rights that a buffer lies against."""

    BEHIND = "behind"
    """Behind the last byte, as near as the alignment permits on which kernels may rely."""
    BEFORE = "before"
    RIGHT_BEHIND = "right behind"
    """Right behind the last byte. The buffer is aligned to its elements only."""


@dataclass(frozen=True)
class GuardZones:
    """Memory before and behind each buffer, which no launch may change."""

    size_bytes: int = GUARD_BYTES
    """Bytes of the zone before a buffer, and of the one behind it; 0: no zones."""
    small: bool = False
    """Zones of written floats hold subnormal numbers, which show an addition of any size, and hide a read."""
    pages: PagesAt | None = None
    """Not zones but pages, which show a read, too, and read-only inputs without the right to write."""


@dataclass(frozen=True)
class JobBytes:
    """Peak memory of a job, in bytes, without guard zones, libraries and a reference's own temporaries."""

    process: int
    """Device memory of one process."""
    device: int
    """Device memory of the two processes that are compared side by side."""
    host: int
    """Host memory: drawn inputs, a running reference, expected outputs, and the device's buffers if kernels
    run on the host's own cores."""


def buffer_bytes(job: Job, workload: Workload, scope: Mapping[str, Value] | None = None) -> Mapping[str, int]:
    """Bytes of every buffer of one workload, by argument name.

    Args:
        scope: limits of a device, for shapes that name them.

    Raises:
        ExpressionError: a shape cannot be evaluated, for instance because it names a limit and `scope` is
            None.
    """
    names = {**(scope or {}), **job.space.defaults, **workload.scope()}
    return {a.name: _elements(a, names) * a.dtype.size_bytes for a in job.kernel.declared if a.is_buffer}


def all_bytes(job: Job, device: DeviceInfo | None = None) -> JobBytes:
    """Peak memory of a job with all its workloads.

    Args:
        device: device it runs on. None: one buffer set is counted, and a memory apart from the host's.

    Raises:
        ExpressionError: a shape cannot be evaluated.
    """
    return _total([_held(job, w, device) for w in job.workloads], device)


def check_memory(job: Job, devices: Sequence[DeviceInfo] = (), most_bytes: int = 0) -> None:
    """Check that a job fits in the memory of one of the devices and its machine, and below the operator's
    cap.

    Args:
        devices: devices of the job's back end; empty if it is unknown where the job will run.
        most_bytes: the cap, for the device and for the machine alike; 0: none.

    Raises:
        InvalidInput: it does not fit; the message names the largest workload and argument, the job's need and
            the memory available.
    """
    refusals = []
    largest_first: Sequence[DeviceInfo] = sorted(devices, key=_room, reverse=True)
    for device in largest_first or (None,):
        try:
            refusal = _refusal(job, device, most_bytes)
        except ExpressionError:
            continue  # only its device can evaluate it, or nobody; the worker says which
        if not refusal:
            return
        refusals.append(refusal)
    if refusals:
        _refuse(job, refusals[0])


def fitting(job: Job, devices: Sequence[DeviceInfo]) -> Sequence[DeviceInfo]:
    """Select the devices with enough memory for a job; all of them if none has, or if it is unknown."""
    fit = []
    for device in devices:
        try:
            if not _refusal(job, device, 0):
                fit.append(device)
        except ExpressionError:
            return devices
    return fit or devices


def cold_sets(set_bytes: int, limits: DeviceLimits, shares_host: bool) -> int:
    """Number of buffer sets of this size over which a cold timing rotates: enough to leave the last-level
    cache."""
    cache_bytes = limits.l2_bytes or DEFAULT_CACHE_BYTES
    wanted = max(2, min(MAX_SETS, -(-2 * cache_bytes // max(1, set_bytes))))
    room = limits.total_memory_bytes // 8 or HOST_SET_BYTES
    if shares_host:
        room = min(room, HOST_SET_BYTES)
    return max(1, min(wanted, room // (2 * max(1, set_bytes))))


@dataclass(frozen=True)
class _Held:
    """Memory of one workload, in bytes."""

    sets: int
    """All its buffer sets on the device, pristine copies and scratch included."""
    first: int
    """The part of `sets` that a process without timing holds."""
    drawn: int
    """Inputs that a child keeps to detect changes."""
    wide: int
    """Inputs of a NumPy reference."""
    expected: int
    """Outputs of one case, and a byte for each element of which it is said whether it counts."""
    outputs: int
    """Outputs that a launch leaves, and a copy of what counts of them."""


def _held(job: Job, workload: Workload, device: DeviceInfo | None) -> _Held:
    sizes = buffer_bytes(job, workload, None if device is None else device.scope())
    of_role: Counter[Role] = Counter()
    wide = expected = outputs = 0
    for a in (a for a in job.kernel.declared if a.is_buffer):
        size, elements = sizes[a.name], sizes[a.name] // a.dtype.size_bytes
        of_role[a.role] += size
        if a.role not in (Role.SCRATCH, Role.OUTPUT):
            wide += elements * WIDE_BYTES
        if a.is_mutated:
            outputs += size
            expected += elements * WIDE_BYTES
    if not isinstance(job.reference, NumpyReference):
        wide, expected = 0, outputs
    in_part = [a for a in job.kernel.declared if a.kept is not None]
    expected += sum(sizes[a.name] // a.dtype.size_bytes for a in in_part)
    outputs += sum(sizes[a.name] for a in in_part)
    scratch, inout = of_role[Role.SCRATCH], of_role[Role.INOUT]
    set_bytes = of_role.total() - scratch
    count = 1 if device is None else cold_sets(set_bytes, device.limits, device.shares_host)
    sets = count * set_bytes + min(count, DISTINCT_VARIANTS) * inout + scratch
    drawn = set_bytes - of_role[Role.OUTPUT]
    return _Held(sets, set_bytes + inout + scratch, drawn, wide, expected, outputs)


def _total(held: Sequence[_Held], device: DeviceInfo | None) -> JobBytes:
    process = sum(h.sets for h in held)
    # A process with every workload has a second process beside it: the reference with the largest workload,
    # or the other side of a comparison, for which the first process holds a single workload.
    both = max(process + max(h.first for h in held), 2 * max(h.sets for h in held))
    kept = sum(h.drawn + KEPT_CASES * h.expected for h in held)
    working = max(h.wide + h.drawn + CHECKED_CASES * h.expected + REPORTS * h.outputs for h in held)
    host = kept + working
    if device is not None and device.shares_host:
        host += both
    return JobBytes(process, both, host)


def _refusal(job: Job, device: DeviceInfo | None, most_bytes: int) -> str:
    need = all_bytes(job, device)
    if device is not None:
        total = device.limits.total_memory_bytes
        needed = need.process if device.shares_host else need.device
        if total and needed > total:
            return f"{_gb(needed)} on the device, and {device.device_class} has {_gb(total)}"
        if device.host_memory_bytes and need.host > device.host_memory_bytes:
            there = f"the machine of {device.device_class} grants {_gb(device.host_memory_bytes)}"
            return f"{_gb(need.host)} of a worker's memory, and {there}"
    if most_bytes and max(need.device, need.host) > most_bytes:
        where = "on the device" if need.device >= need.host else "of a worker's memory"
        words = f"the operator permits a job {_gb(most_bytes)} (WARPSMITH_JOB_MEMORY_MB)"
        return f"{_gb(max(need.device, need.host))} {where}, and {words}"
    return ""


def _refuse(job: Job, words: str) -> NoReturn:
    sized = []
    for index, workload in enumerate(job.workloads):
        try:
            sized.append((index, workload, buffer_bytes(job, workload)))
        except ExpressionError:
            sized.append((index, workload, {}))
    index, workload, sizes = max(sized, key=lambda entry: sum(entry[2].values()))
    several = len(job.workloads) > 1
    largest = max(sizes, key=lambda name: sizes[name], default="")
    alone = f" ({largest} alone is {_gb(sizes[largest])})" if largest else ""
    holds = "with it and the others the job holds" if several else "the job holds"
    fix = "lower the dimensions or list fewer workloads" if several else "lower the dimensions"
    raise InvalidInput(f"workloads.{index}.dimensions", f"{workload.key}{alone}: {holds} {words}; {fix}")


def _room(device: DeviceInfo) -> tuple[int, int]:
    return device.limits.total_memory_bytes, device.host_memory_bytes


def _elements(argument: Argument, names: Mapping[str, Value]) -> int:
    return prod(extent.integer(names) for extent in argument.shape)


def _gb(size_bytes: int) -> str:
    """`24 GB`, `1.5 GB`, `310 MB`."""
    if size_bytes >= 10**9:
        return f"{size_bytes / 10**9:.3g} GB" if size_bytes < 10**12 else f"{size_bytes / 10**9:.0f} GB"
    return f"{max(1, round(size_bytes / 10**6))} MB"


def redrawn_cheaply(plan: WorkloadPlan) -> bool:
    """True if inputs are small enough (`REDRAW_BYTES`) for a timed launch to get others than the rest."""
    return sum(b.size_bytes for b in plan.buffers if b.role is not Role.OUTPUT) <= REDRAW_BYTES


def wide_zones(plan: WorkloadPlan, *, small: bool) -> GuardZones:
    """Guard zones that show a write some rows outside a buffer, where usual ones end.

    Args:
        small: see `GuardZones`.
    """
    total = sum(b.size_bytes for b in plan.buffers)
    wide = min(MOST_GUARD_BYTES, WIDE_GUARDS * total) // GUARD_BYTES * GUARD_BYTES
    return GuardZones(max(GUARD_BYTES, wide), small)
