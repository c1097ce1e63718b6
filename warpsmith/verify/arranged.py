"""Inputs that promise something of all elements together: permutations, distinct integers, offsets, routing.

Permutations come from a keyed bijection of the indices, so that any part of one can be computed alone.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.arguments.draw import Distribution, Draw, Routing, number_of
from warpsmith.domain.jobs.plan import BufferPlan, Family

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

PIECE_ELEMENTS = 1 << 18
"""Elements that are computed at once."""
_ROUNDS = 6


def arranged_pieces(buffer: BufferPlan, draw: Draw, key: int, family: Family) -> Iterator[Integers]:
    """The elements of a buffer in order and in pieces, as 64-bit integers.

    Args:
        key: 128 secret bits.
        family: other values with the same property: sorted ones, or offsets with other differences.
    """
    if draw.routing is not None:
        yield _routed(draw.routing, int(number_of(draw.high)), buffer.elements, key, family)
        return
    row = buffer.shape[-1] if draw.per_row else buffer.elements
    if draw.distribution is Distribution.OFFSETS:
        for begin in range(0, buffer.elements, row):
            yield _offsets(draw, row, np.random.Generator(np.random.PCG64(key + begin)), family)
        return
    low, high = (int(bound) for bound in draw.range)
    span = row if draw.distribution is Distribution.PERMUTATION else high - low
    for begin in range(0, buffer.elements, PIECE_ELEMENTS):
        places = np.arange(begin, min(begin + PIECE_ELEMENTS, buffer.elements), dtype=np.int64)
        rows, places = np.divmod(places, row)
        if family is Family.SORTED:
            whole, rest = divmod(span, row)
            yield low + places * whole + places * rest // row
        else:
            yield low + _permuted(places.astype(np.uint64), rows.astype(np.uint64), span, key)


def rearranged(values: Integers, buffer: BufferPlan, draw: Draw, rng: np.random.Generator) -> Integers:
    """Make other values with the property of drawn ones, cheaper than a further draw; not of a routing."""
    rows = values.reshape(-1, buffer.shape[-1] if draw.per_row else buffer.elements)
    low, high = (int(bound) for bound in draw.range)
    if draw.distribution is Distribution.OFFSETS:
        steps = rng.permutation(np.diff(rows, axis=1), axis=1)
        return np.cumsum(np.concatenate([rows[:, :1], steps], axis=1), axis=1).reshape(-1)
    span = rows.shape[1] if draw.distribution is Distribution.PERMUTATION else high - low
    shifts = rng.integers(0, span, (rows.shape[0], 1))
    return (low + (rows[:, rng.permutation(rows.shape[1])] - low + shifts) % span).reshape(-1)


def _permuted(places: Words, rows: Words, span: int, key: int) -> Integers:
    """Images of places under a bijection of 0..span-1 that the key and the row choose.

    A Feistel network permutes the next power of four. An image beyond the span is permuted again, which ends
    because the place itself lies on the same cycle.
    """
    half = max(1, ((span - 1).bit_length() + 1) // 2)
    images = _feistel(places, rows, half, key)
    beyond = np.flatnonzero(images >= span)
    while beyond.size:
        images[beyond] = _feistel(images[beyond], rows[beyond], half, key)
        beyond = beyond[images[beyond] >= span]
    return images.astype(np.int64)


def _feistel(values: Words, rows: Words, half: int, key: int) -> Words:
    bits, mask = np.uint64(half), np.uint64((1 << half) - 1)
    left, right = values >> bits, values & mask
    for turn in range(_ROUNDS):
        secret = np.uint64((key >> (16 * turn)) & (2**64 - 1) ^ (turn * 0x9E3779B97F4A7C15) & (2**64 - 1))
        left, right = right, left ^ (_mixed(right + (_mixed(rows + secret))) & mask)
    return (left << bits) | right


def _mixed(words: Words) -> Words:
    """Every bit of a result depends on every bit of its word."""
    words = words ^ (words >> np.uint64(33))
    words = words * np.uint64(0xFF51AFD7ED558CCD)
    words = words ^ (words >> np.uint64(33))
    words = words * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(33))


def _routed(of: Routing, tokens: int, elements: int, key: int, family: Family) -> Integers:
    """A part of a routing, filled up as the engines do; all parts with the same key belong together.

    Args:
        family: all alike routed otherwise; to the fewest experts if values are to be equal or sparse.
    """
    few = family in (Family.REPEATED, Family.SPARSE, Family.ZEROS)
    chosen = _chosen(tokens, of.experts, of.chosen, of.skew, few, key)
    padded = -(-np.bincount(chosen, minlength=of.experts) // of.block) * of.block
    ends = np.cumsum(padded)
    if of.part == "count":
        return np.full(elements, ends[-1], np.int64)
    if of.part == "experts":
        found = np.zeros(elements, np.int64)
        found[: ends[-1] // of.block] = np.repeat(np.arange(of.experts), padded // of.block)
        return found
    found = np.full(elements, chosen.size, np.int64)
    order = np.argsort(chosen, kind="stable")
    own = chosen[order]
    first = np.searchsorted(own, np.arange(of.experts))
    found[(ends - padded)[own] + np.arange(chosen.size) - first[own]] = order
    return found


@lru_cache(maxsize=2)
def _chosen(tokens: int, experts: int, count: int, skew: float, few: bool, key: int) -> Integers:
    """Experts of each token, one after another; parts of a routing share them."""
    rng = np.random.Generator(np.random.PCG64(key))
    likely = -skew * np.log1p(rng.permutation(experts))
    if few:
        likely[count:] -= 1e3
    # The largest of logarithms of weights plus Gumbel noise are a draw without repetition.
    scores = likely + rng.gumbel(size=(tokens, experts))
    found: Integers = np.argpartition(scores, experts - count, axis=1)[:, experts - count :].reshape(-1)
    return found


def _offsets(draw: Draw, count: int, rng: np.random.Generator, family: Family) -> Integers:
    """Offsets from low to high; the family says how their differences are spread."""
    low, high = (int(bound) for bound in draw.range)
    steps, least = count - 1, int(number_of(draw.least))
    free = high - low - least * steps
    if not steps:
        return np.array([low], np.int64)
    cuts = _cuts(steps, free, rng, family)
    differences = np.diff(cuts, prepend=0, append=free)
    if family is Family.SORTED:
        differences = np.sort(differences)
    return low + np.concatenate([[0], np.cumsum(differences + least)]).astype(np.int64)


def _cuts(steps: int, free: int, rng: np.random.Generator, family: Family) -> Integers:
    """Places, in order, that divide what is free among the steps."""
    if family in (Family.REPEATED, Family.SCALED_DOWN):
        return np.array([free * n // steps for n in range(1, steps)], np.int64)
    if family in (Family.SPIKE, Family.ZEROS):
        longest = int(rng.integers(0, steps))
        return np.where(np.arange(steps - 1) < longest, 0, free).astype(np.int64)
    if family is Family.SPARSE:
        few = np.sort(rng.integers(0, free + 1, max(1, steps // 16)))
        return np.sort(rng.choice(few, steps - 1)).astype(np.int64)
    return np.sort(rng.integers(0, free + 1, steps - 1)).astype(np.int64)
