"""Long arrays worked on by several threads: NumPy lets other threads run during an operation on a piece."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from warpsmith.processes.cores import usable_cores

CHUNK_ELEMENTS = 1 << 17
"""Elements worked on at once, so that temporaries stay in a core's cache; with 2^22, each takes four times as
long."""
SPAN_CHUNKS = 8
"""Least number of chunks of a span: below it, a thread costs more than it saves."""
CORES_SHARE = 4
"""Number of cores per thread; the others draw inputs and compute references."""

T = TypeVar("T")


def pieces(span: slice) -> Iterator[slice]:
    """Slices that cover a span, each small enough for cheap temporaries."""
    starts = range(span.start, span.stop, CHUNK_ELEMENTS)
    return (slice(begin, min(begin + CHUNK_ELEMENTS, span.stop)) for begin in starts)


def in_spans(size: int, work: Callable[[slice], T]) -> list[T]:
    """Results of `work` on spans that cover this number of elements, in order.

    Args:
        work: is called for several spans at once.
    """
    chunks = -(-size // CHUNK_ELEMENTS)
    count = max(1, min(usable_cores() // CORES_SHARE, chunks // SPAN_CHUNKS))
    length = -(-chunks // count) * CHUNK_ELEMENTS
    spans = [slice(begin, min(begin + length, size)) for begin in range(0, max(1, size), max(1, length))]
    if len(spans) == 1:
        return [work(spans[0])]
    with ThreadPoolExecutor(len(spans)) as threads:
        return list(threads.map(work, spans))
