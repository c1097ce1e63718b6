"""Inputs drawn from a secret seed, the same in every process, fast at any size.

A pool of fresh random values is drawn per buffer and tiled by slices at random places: a buffer of
10^8 elements costs a memory copy, and no period is short enough to be guessed.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.kernel import Distribution, Draw, Role
from warpsmith.domain.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.verify.dtypes import numpy_dtype
from warpsmith.verify.input_families import applied

Array = NDArray[np.generic]

POOL_ELEMENTS = 1 << 20
TILE_ELEMENTS = 1 << 16
INTEGER_RANGE = Draw(distribution=Distribution.INTEGERS, low=0, high=128)
"""Default distribution of integer inputs."""


def draw_inputs(plan: WorkloadPlan) -> dict[str, Array]:
    """Flat arrays of every input and inout of `plan`, by argument name."""
    drawn = [b for b in plan.buffers if b.role is not Role.OUTPUT]
    return {b.name: draw_buffer(b, plan.seed, plan.variant, plan.family) for b in drawn}


def draw_buffer(buffer: BufferPlan, seed: int, variant: int = 0, family: Family = Family.DECLARED) -> Array:
    """The elements of one buffer; see `drawn_pieces`."""
    out = np.empty(buffer.elements, dtype=numpy_dtype(buffer.dtype))
    begin = 0
    for piece in drawn_pieces(buffer, seed, variant, family):
        out[begin : begin + piece.size] = piece
        begin += piece.size
    return out


def drawn_pieces(
    buffer: BufferPlan, seed: int, variant: int = 0, family: Family = Family.DECLARED
) -> Iterator[Array]:
    """The elements of one buffer in order and in pieces, so that only a few megabytes are held.

    Args:
        variant: number of a set of values of the same distribution (buffer sets of one timing).
        family: transformation of the drawn values.
    """
    rng = np.random.Generator(np.random.PCG64(_key(seed, buffer.name, variant)))
    draw = buffer.draw or (Draw() if buffer.dtype.is_float else INTEGER_RANGE)
    if buffer.elements <= POOL_ELEMENTS:
        yield applied(family, _values(rng, draw, buffer.elements, buffer), buffer, rng)
        return
    pool = applied(family, _values(rng, draw, POOL_ELEMENTS + TILE_ELEMENTS, buffer), buffer, rng)
    starts = rng.integers(0, POOL_ELEMENTS, size=-(-buffer.elements // TILE_ELEMENTS))
    for tile, start in enumerate(starts):
        yield pool[start : start + min(TILE_ELEMENTS, buffer.elements - tile * TILE_ELEMENTS)]


def _values(rng: np.random.Generator, draw: Draw, count: int, buffer: BufferPlan) -> Array:
    dtype = numpy_dtype(buffer.dtype)
    match draw.distribution:
        case Distribution.NORMAL:
            values = rng.standard_normal(count, dtype=np.float32) * np.float32(draw.std)
            return (values + np.float32(draw.mean)).astype(dtype)
        case Distribution.UNIFORM:
            span = draw.high - draw.low
            return (rng.random(count, dtype=np.float32) * np.float32(span) + np.float32(draw.low)).astype(
                dtype
            )
        case Distribution.INTEGERS:
            return rng.integers(int(draw.low), max(int(draw.high), int(draw.low) + 1), count).astype(dtype)
        case Distribution.CONSTANT:
            return np.full(count, draw.low).astype(dtype)


def _key(seed: int, name: str, variant: int) -> int:
    digest = hashlib.sha256(f"{seed}/{name}/{variant}".encode()).digest()
    return int.from_bytes(digest[:16], "big")
