"""Contents of guard zones: secret bytes that a write changes, and that a read shows. In the device child."""

import secrets

import numpy as np

from warpsmith.backends.base import Memory, PageGuarded
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.memory import GuardZones
from warpsmith.domain.jobs.plan import BufferPlan
from warpsmith.verify.dtypes import narrowed, smallest_normal

WRITTEN = (Role.OUTPUT, Role.INOUT)
DRAWN_BYTES = 64 << 10
"""Bytes of a zone that are drawn."""
LEAST, MOST = 0.5, 2.0
"""Size of the numbers behind a written buffer of floats."""
LEAST_PART = 0.25
"""Least size of small numbers, in units of the type's smallest normal number: no type rounds it to zero."""


def violations(name: str, memory: Memory, canaries: tuple[bytes, bytes], size_bytes: int) -> list[str]:
    """The name of a buffer if a launch changed a zone around it, or of each side with a page that it reached
    for."""
    if isinstance(memory, PageGuarded):
        return [f"{place} of {name}" for place in memory.reached]
    guard = len(canaries[0])
    seen = (memory.read(0, guard), memory.read(guard + size_bytes, guard)) if guard else canaries
    return [name] if seen != canaries else []


def canary_pair(buffer: BufferPlan, guards: GuardZones) -> tuple[bytes, bytes]:
    """Contents of the zones before and behind a buffer.

    A kernel may add to what lies there. Not-a-number and large numbers would stay as they are, and whether a
    shape is right would be luck. So floats that are written have numbers of the size of common values.
    Small ones are subnormal: any number that is added changes them, and hardly one that is stored equals
    them. But a read of them is like one of zeros, and is not seen.

    In a wide zone the same bytes are repeated.
    """
    size_bytes = guards.size_bytes
    drawn_bytes = min(size_bytes, DRAWN_BYTES)
    signed_float = buffer.dtype.is_float and buffer.dtype is not Dtype.FLOAT8_E8M0FNU
    if buffer.role not in WRITTEN or not signed_float:
        before, behind = secrets.token_bytes(drawn_bytes), secrets.token_bytes(drawn_bytes)
        return _filled(before, size_bytes), _filled(behind, size_bytes)
    normal = smallest_normal(buffer.dtype)
    least, most = (LEAST_PART * normal, normal) if guards.small else (LEAST, MOST)
    before, behind = (_numbers(buffer.dtype, drawn_bytes, least, most) for _ in range(2))
    return _filled(before, size_bytes), _filled(behind, size_bytes)


def _filled(drawn: bytes, size_bytes: int) -> bytes:
    return drawn if len(drawn) == size_bytes else (drawn * -(-size_bytes // len(drawn)))[:size_bytes]


def _numbers(dtype: Dtype, count_bytes: int, least: float, most: float) -> bytes:
    lots = np.random.default_rng(secrets.randbits(128))
    count = count_bytes // dtype.size_bytes
    sizes = lots.uniform(least, most, count) * lots.choice([-1.0, 1.0], count)
    return narrowed(sizes, dtype).tobytes()
