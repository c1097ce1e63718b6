"""Overwrites device memory before launches that are looked at. Runs in the device child."""

import secrets
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.backends.base import Memory

JOINED_BYTES = 4 << 20
"""Size in bytes up to which a buffer is read in one piece, however few of its elements are needed."""
SCRATCH_CHUNKS = 128
"""Limit on the pieces into which a range is cut before a random half of them is overwritten."""
COIN_ONE_IN = 3
"""Reciprocal share of spoilings, of a buffer that is read in one piece, that overwrite each element by a coin
of its own: where a kernel leaves marks beside elements, some marks are then left without their elements."""
SCRATCH_ELEMENTS = 64
"""Least number of elements of such a piece."""
SCRATCH_SINGLES = 16
"""Number of elements that are overwritten one by one."""


def spoil(
    memory: Memory,
    at: int,
    size_bytes: int,
    element_bytes: int,
    spans: Sequence[tuple[int, int]],
    likely: bool = False,
) -> None:
    """Overwrite a random part of some elements of a buffer.

    The rest keeps what the last launch left.

    Args:
        at: byte at which the buffer begins.
        size_bytes: of the buffer.
        spans: half-open ranges of elements.
        likely: overwrite with other elements of the buffer, which look like results, instead of noise.
    """
    by_coin = not likely and size_bytes <= JOINED_BYTES and secrets.randbelow(COIN_ONE_IN) == 0
    pieces = list(spans if by_coin else _pieces(spans))
    longest = max(stop - start for start, stop in pieces) * element_bytes
    if likely and size_bytes > longest:
        from_elsewhere = secrets.randbelow((size_bytes - longest) // element_bytes + 1) * element_bytes
        noise = np.frombuffer(memory.read(at + from_elsewhere, longest), np.uint8)
    else:
        noise = np.resize(np.frombuffer(secrets.token_bytes(4096), np.uint8), longest)
    if size_bytes <= JOINED_BYTES:
        data = np.frombuffer(memory.read(at, size_bytes), np.uint8).copy()
        for start, stop in pieces:
            size = (stop - start) * element_bytes
            elements = data[start * element_bytes : stop * element_bytes].reshape(-1, element_bytes)
            taken = _coins(stop - start) if by_coin else slice(None)
            elements[taken] = noise[:size].reshape(-1, element_bytes)[taken]
        memory.write(data, at)
        return
    for start, stop in pieces:
        memory.write(noise[: (stop - start) * element_bytes], at + start * element_bytes)


def _coins(count: int) -> NDArray[np.bool_]:
    drawn = np.frombuffer(secrets.token_bytes(-(-count // 8)), np.uint8)
    return np.unpackbits(drawn, count=count).astype(np.bool_)


def fill_with_poison(memory: Memory, at: int, size_bytes: int) -> bytes:
    """Fill a buffer with bytes that no kernel can have left there; returns the four that are repeated."""
    # Fills come in words; the guard begins directly after the last element.
    pattern, words = poison_word(), size_bytes // 4 * 4
    if words:
        memory.fill(pattern, at, words)
    rest = pattern[: size_bytes - words]
    if rest:
        memory.write(np.frombuffer(rest, np.uint8), at + words)
    return pattern


def poison_word() -> bytes:
    """Four random bytes, far from zero in every float type, since zero may be a correct result."""
    high = (0x70 + secrets.randbelow(11) + 0x80 * secrets.randbits(1) for _ in range(2))
    return bytes(byte for top in high for byte in (secrets.randbits(8), top))


def _pieces(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """A random half of the pieces of `spans`, or at random single elements; at least one.

    A half detects elements that were not written. Single elements detect a kernel that samples its output to
    see whether the work is done: it cannot sample reliably without doing the work.
    """
    pieces = []
    for start, stop in spans:
        step = max(SCRATCH_ELEMENTS, -(-(stop - start) // SCRATCH_CHUNKS))
        pieces += [(at, min(at + step, stop)) for at in range(start, stop, step)]
    # All of a single piece would leave no mark by which a kernel takes the rest for its own.
    if len(pieces) == 1 or secrets.randbits(1):
        for _ in range(SCRATCH_SINGLES):
            start, stop = secrets.choice(spans)
            at = start + secrets.randbelow(stop - start)
            yield at, at + 1
        return
    lots = secrets.randbits(len(pieces))
    taken = [piece for i, piece in enumerate(pieces) if lots >> i & 1]
    yield from taken or pieces[:1]
