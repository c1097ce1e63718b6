"""Chooses the elements of an output that a search trial compares."""

import numpy as np

MIN_CHUNKS = 64


def sample_ranges(elements: int, row: int, rng: np.random.Generator, budget: int) -> list[tuple[int, int]]:
    """Half-open, sorted, disjoint ranges of a flat output of `elements`.

    The ranges always include the beginnings and ends of the first and last row, to detect skipped first or
    last blocks and ragged edges. The others lie at random places that the kernel cannot know.

    Args:
        row: extent of the fastest dimension.
        rng: a source that the kernel cannot predict.
        budget: approximate number of elements to compare.
    """
    if elements <= budget:
        return [(0, elements)]
    chunk = max(1, budget // (4 * MIN_CHUNKS))
    row = max(1, min(row, elements))
    rows = elements // row
    fixed = np.array([0, row - chunk, row, elements - row, elements - chunk])
    anywhere = rng.integers(0, elements, 2 * MIN_CHUNKS)
    row_ends = rng.integers(0, rows, 2 * MIN_CHUNKS - 5) * row + row - chunk
    starts = np.concatenate([fixed, anywhere, row_ends])
    starts = np.unique(np.maximum(starts[starts < elements], 0))
    stops = np.minimum(starts + chunk, elements)
    # Sorted spans of equal length: a span begins a new range if the span before it ends earlier.
    fresh = np.concatenate([[True], starts[1:] > stops[:-1]])
    first = np.flatnonzero(fresh)
    last = np.concatenate([first[1:] - 1, [starts.size - 1]])
    return list(zip(starts[first].tolist(), stops[last].tolist(), strict=True))
