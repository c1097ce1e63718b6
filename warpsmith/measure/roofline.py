"""The shortest time that a device allows, from ceilings measured on it.

Every output is compared, so all bytes of it that count must be written. Inputs may be read in part only.
They therefore count for the share of the floor that a result states, but never for a rejection. A job may say
how many bytes a launch moves (`bytes`), for inputs that are gathered and in-out buffers that are written in
part.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import Ceilings
from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.plan import WorkloadPlan

MARGIN = 0.5
"""Fraction of the floor below which a time is refused. The copy kernel may not reach full bandwidth, and data
written at the end of a sample may still be in a cache."""

HOST_MARGIN = 0.2
"""Fraction `MARGIN` if kernels share the host's cores, whose other work may have slowed the ceiling
kernels."""


Bound = Literal["bytes", "flops", "launch"]


@dataclass(frozen=True)
class Floor:
    """The shortest time for a workload, and its bound."""

    us: float
    """Floor in µs: the longest of moving all bytes once, all operations in single precision, and one
    launch."""
    bound: Bound
    least_us: float
    """Time in µs below which a measurement cannot be right."""
    written_us: float
    """Time in µs to write all outputs, or of an empty launch if that is longer. `least_us` is a fraction of
    it."""


def not_refuted(floor: Floor | None, measured_us: float) -> Floor | None:
    """The floor, unless a launch was faster than it.

    Then it is unknown: the ceilings were measured on a busy device, or the launch moves fewer bytes.
    """
    return None if floor is None or measured_us < floor.us else floor


def bytes_once(plan: WorkloadPlan) -> int:
    """Bytes of all buffers, each moved once; in-out buffers count twice."""
    return sum(b.size_bytes * (2 if b.role is Role.INOUT else 1) for b in plan.buffers)


def floor_of(
    plan: WorkloadPlan,
    ceilings: Ceilings,
    cache: CacheState,
    shares_host: bool = False,
    operations: float = 0.0,
    moved: int | None = None,
    shares: Mapping[str, float] | None = None,
) -> Floor:
    """The floor of a workload in one cache state.

    Args:
        operations: floating-point operations of a launch. Their ceiling is that of plain single-precision
            code; matrix units are faster, so operations never count for a rejection.
        moved: bytes that a launch reads and writes, as the job gives them. None: all buffers, in-out buffers
            twice.
        shares: by name of an output, the share of its elements that count. A kernel that leaves the others
            alone may leave alone what they would be computed from.
    """
    shares = shares or {}
    written = sum(math.ceil(b.size_bytes * shares.get(b.name, 1.0)) for b in plan.mutated)
    if moved is None:
        most = max((shares.get(b.name, 1.0) for b in plan.mutated), default=1.0)
        moved = math.ceil(bytes_once(plan) * most)
    else:
        written = min(written, moved)
    fastest = max(ceilings.hot_bytes_per_s, ceilings.cold_bytes_per_s)
    rate = ceilings.cold_bytes_per_s if cache is CacheState.COLD else fastest
    floors: dict[Bound, float] = {
        "bytes": moved / rate * 1e6,
        "flops": operations / ceilings.flops_per_s * 1e6,
        "launch": ceilings.launch_us,
    }
    bound = max(floors, key=lambda name: floors[name])
    # Writes may end in the last-level cache in either state.
    written_us = max(written / fastest * 1e6, ceilings.launch_us)
    least_us = (HOST_MARGIN if shares_host else MARGIN) * written_us
    return Floor(floors[bound], bound, least_us, written_us)


def below_floor(floor: Floor, time_us: float) -> str:
    """The reason why a time cannot be right; empty if it can."""
    if time_us >= floor.least_us:
        return ""
    return f"{time_us:.3g} us, where a launch that writes all outputs takes {floor.least_us:.3g} us at least"
