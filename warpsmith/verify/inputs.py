"""Inputs drawn from a secret seed, the same in every process, fast at any size.

A pool of fresh random values is drawn per buffer and tiled by slices at random places: a buffer of
10^8 elements costs a memory copy, and no period is short enough to be guessed.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import ARRANGED, Distribution, Draw
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.plan import BufferPlan, Family, WorkloadPlan
from warpsmith.verify.arranged import arranged_pieces
from warpsmith.verify.dtypes import narrowed, numpy_dtype, reference_dtype, widened
from warpsmith.verify.edge_cases import bounds_of_integers, edge_case_values, stream_name
from warpsmith.verify.input_families import applied

Array = NDArray[np.generic]

POOL_ELEMENTS = 1 << 20
TILE_ELEMENTS = 1 << 16
INTEGER_RANGE = Draw(distribution=Distribution.INTEGERS, low=0, high=128)
"""Default distribution of integer inputs."""
TRUE_OR_FALSE = Draw(distribution=Distribution.INTEGERS, low=0, high=2)
SCALES = Draw(distribution=Distribution.UNIFORM, low=0.25, high=4.0)
"""Default distribution of inputs that are scales, since they have no zero and no sign."""


def default_draw(dtype: Dtype) -> Draw:
    """Distribution of an input if the job says none."""
    if dtype is Dtype.BOOL:
        return TRUE_OR_FALSE
    if dtype is Dtype.FLOAT8_E8M0FNU:
        return SCALES
    return Draw() if dtype.is_float else INTEGER_RANGE


def draw_inputs(plan: WorkloadPlan) -> dict[str, Array]:
    """Flat arrays of every input and inout of `plan`, by argument name."""
    drawn = [b for b in plan.buffers if b.role is not Role.OUTPUT]
    return {b.name: draw_buffer(b, plan.seed, plan.variant, plan.family) for b in drawn}


def draw_buffer(buffer: BufferPlan, seed: int, variant: int = 0, family: Family = Family.DECLARED) -> Array:
    """The elements of one buffer; see `drawn_pieces`."""
    drawn = _joined(buffer, numpy_dtype(buffer.dtype), drawn_pieces(buffer, seed, variant, family))
    return narrowed(_moved(widened(drawn), buffer, seed, variant), buffer.dtype) if _moves(buffer) else drawn


def draw_wide(buffer: BufferPlan, seed: int, variant: int = 0, family: Family = Family.DECLARED) -> Array:
    """The elements of `draw_buffer` in the type in which a reference computes."""
    dtype = reference_dtype(buffer.dtype)

    def wide(values: Array) -> Array:
        return widened(values) if buffer.dtype.is_float else values.astype(dtype)

    drawn = _joined(buffer, dtype, drawn_pieces(buffer, seed, variant, family, wide))
    return _moved(widened(drawn), buffer, seed, variant) if _moves(buffer) else drawn


@dataclass(frozen=True)
class Tiles:
    """The elements of a large buffer: slices of a pool at random places."""

    pool: Array
    """Drawn values, flat."""
    starts: NDArray[np.int64]
    """Offsets in the pool at which each tile of `TILE_ELEMENTS` begins."""
    elements: int
    """Elements of the buffer."""

    def pieces(self) -> Iterator[Array]:
        """The elements tile by tile, as views of the pool."""
        for tile, start in enumerate(self.starts):
            yield self.pool[start : start + min(TILE_ELEMENTS, self.elements - tile * TILE_ELEMENTS)]

    def span(self, start: int, stop: int) -> Array:
        """The elements of a range."""
        first = start // TILE_ELEMENTS
        parts = []
        for tile in range(first, -(-stop // TILE_ELEMENTS)):
            at = tile * TILE_ELEMENTS
            begin, end = max(start, at) - at, min(stop, at + TILE_ELEMENTS) - at
            parts.append(self.pool[self.starts[tile] + begin : self.starts[tile] + end])
        return np.concatenate(parts) if parts else self.pool[:0]


def tiles_of(
    buffer: BufferPlan, seed: int, variant: int = 0, family: Family = Family.DECLARED
) -> Tiles | None:
    """Tiles from which `drawn_pieces` takes a large buffer's elements; None if they are drawn otherwise."""
    draw = buffer.draw or default_draw(buffer.dtype)
    if (
        buffer.elements <= POOL_ELEMENTS
        or family is Family.EDGE_CASE
        or _moves(buffer)
        or draw.distribution in (*ARRANGED, Distribution.FILE)
    ):
        return None
    rng = np.random.Generator(np.random.PCG64(_key(seed, buffer.name, variant)))
    return _tiles(rng, draw, buffer, family)


def pool_of(buffer: BufferPlan, seed: int, variant: int, family: Family = Family.DECLARED) -> Array | None:
    """Values from any place of which a buffer may be filled, more of them than it has elements; None if its
    elements depend on each other, are given, or have no other values."""
    draw = buffer.draw or default_draw(buffer.dtype)
    given = (*ARRANGED, Distribution.FILE, Distribution.CONSTANT)
    if family is Family.EDGE_CASE or draw.distribution in given:
        return None
    rng = np.random.Generator(np.random.PCG64(_key(seed, buffer.name, variant)))
    count = min(buffer.elements, POOL_ELEMENTS) + TILE_ELEMENTS
    return applied(family, _values(rng, draw, count, buffer), buffer, rng)


def drawn_pieces(
    buffer: BufferPlan,
    seed: int,
    variant: int = 0,
    family: Family = Family.DECLARED,
    form: Callable[[Array], Array] = lambda values: values,
) -> Iterator[Array]:
    """The elements of one buffer in order and in pieces, so that only a few megabytes are held.

    Args:
        variant: number of a set of values of the same distribution (buffer sets of one timing).
        family: transformation of the drawn values.
        form: applied to what is drawn, element by element; once to what many pieces are taken from.
    """
    is_edge = family is Family.EDGE_CASE
    key = _key(seed, stream_name(buffer, variant) if is_edge else buffer.name, variant)
    draw = buffer.draw or default_draw(buffer.dtype)
    if draw.distribution in ARRANGED:
        # Parts of a routing belong together, whatever their names.
        key = key if draw.routing is None else _key(seed, "routing", variant)
        for piece in arranged_pieces(buffer, draw, key, family):
            yield form(piece.astype(numpy_dtype(buffer.dtype)))
        return
    if draw.distribution is Distribution.FILE:
        yield form(np.frombuffer(draw.npy.raw, numpy_dtype(buffer.dtype))[: buffer.elements])
        return
    rng = np.random.Generator(np.random.PCG64(key))
    if is_edge:
        bounds = bounds_of_integers(buffer, variant, seed)
        if bounds is not None:
            draw = Draw(distribution=Distribution.INTEGERS, low=bounds[0], high=bounds[1])
        yield form(edge_case_values(_values(rng, draw, buffer.elements, buffer), buffer, seed, variant))
        return
    if buffer.elements <= POOL_ELEMENTS:
        yield form(applied(family, _values(rng, draw, buffer.elements, buffer), buffer, rng))
        return
    tiles = _tiles(rng, draw, buffer, family)
    yield from replace(tiles, pool=form(tiles.pool)).pieces()


def _tiles(rng: np.random.Generator, draw: Draw, buffer: BufferPlan, family: Family) -> Tiles:
    pool = applied(family, _values(rng, draw, POOL_ELEMENTS + TILE_ELEMENTS, buffer), buffer, rng)
    starts = rng.integers(0, POOL_ELEMENTS, size=-(-buffer.elements // TILE_ELEMENTS))
    return Tiles(pool, starts, buffer.elements)


def _moves(buffer: BufferPlan) -> bool:
    return bool(buffer.moved) and buffer.dtype.is_float


def _moved(values: NDArray[np.float64], buffer: BufferPlan, seed: int, variant: int) -> NDArray[np.float64]:
    """Each value moved by a share of its size that is drawn evenly up to `buffer.moved`."""
    rng = np.random.Generator(np.random.PCG64(_key(seed, f"moved {buffer.name}", variant)))
    return values * (1.0 + rng.uniform(-buffer.moved, buffer.moved, values.size))


def _joined(buffer: BufferPlan, dtype: "np.dtype[np.generic]", pieces: Iterable[Array]) -> Array:
    out = np.empty(buffer.elements, dtype=dtype)
    begin = 0
    for piece in pieces:
        out[begin : begin + piece.size] = piece
        begin += piece.size
    return out


def _values(rng: np.random.Generator, draw: Draw, count: int, buffer: BufferPlan) -> Array:
    dtype, (low, high) = buffer.dtype, draw.range
    match draw.distribution:
        case Distribution.NORMAL:
            values = rng.standard_normal(count, dtype=np.float32) * np.float32(draw.std)
            return narrowed(values + np.float32(draw.mean), dtype)
        case Distribution.UNIFORM:
            return narrowed(
                rng.random(count, dtype=np.float32) * np.float32(high - low) + np.float32(low), dtype
            )
        case Distribution.INTEGERS:
            return narrowed(rng.integers(int(low), max(int(high), int(low) + 1), count), dtype)
        case Distribution.MASK:
            return narrowed((rng.random(count) < draw.share).astype(np.uint8), dtype)
        case Distribution.CONSTANT:
            return narrowed(np.full(count, low), dtype)
    raise AssertionError(f"{draw.distribution.value} is not drawn element by element")


def _key(seed: int, name: str, variant: int) -> int:
    digest = hashlib.sha256(f"{seed}/{name}/{variant}".encode()).digest()
    return int.from_bytes(digest[:16], "big")
