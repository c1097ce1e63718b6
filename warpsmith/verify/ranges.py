"""Which elements of an output a search trial looks at."""

import random

MIN_CHUNKS = 64


def sample_ranges(elements: int, row: int, rng: random.Random, budget: int) -> list[tuple[int, int]]:
    """Half-open, sorted, disjoint ranges of a flat output of `elements`.

    The first and the last row's beginnings and ends are always among them, so that skipped first or
    last blocks and ragged edges show; the rest lies at random places the kernel cannot know.

    Args:
        row: extent of the fastest dimension.
        rng: a source that the kernel cannot predict.
        budget: about how many elements to look at.
    """
    if elements <= budget:
        return [(0, elements)]
    chunk = max(1, budget // (4 * MIN_CHUNKS))
    row = max(1, min(row, elements))
    starts = [0, row - chunk, row, elements - row, elements - chunk]
    starts += [rng.randrange(elements) for _ in range(2 * MIN_CHUNKS)]
    rows = elements // row
    starts += [rng.randrange(rows) * row + row - chunk for _ in range(2 * MIN_CHUNKS - 5)]
    spans = sorted((max(0, s), min(elements, max(0, s) + chunk)) for s in starts if s < elements)
    merged: list[tuple[int, int]] = []
    for start, stop in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
