"""Number and order of timings. Counts are fixed before the first launch."""

import random

from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.plan import TimingPlan

SEARCH_SAMPLES = 9
"""Samples per trial: enough for a median that ranks configurations; the few winners are measured again."""


def search_plan(cache: CacheState) -> TimingPlan:
    """Timing plan of a search trial: alone, against the stored baseline."""
    return TimingPlan(cache=cache, samples=SEARCH_SAMPLES)


def winner_blocks(pairs: int, seed: int) -> tuple[str, ...]:
    """Order of baseline (A) and winner (B) blocks: ABBA or BAAB in random order, `pairs` of each.

    Each group of four cancels a linear drift of clocks or temperature; the random choice keeps a
    periodic disturbance from falling on one side.
    """
    rng = random.Random(seed)
    order: list[str] = []
    for _ in range(pairs // 2):
        order += rng.choice((["A", "B", "B", "A"], ["B", "A", "A", "B"]))
    if pairs % 2:
        order += rng.choice((["A", "B"], ["B", "A"]))
    return tuple(order)


def other_cache(cache: CacheState) -> CacheState:
    """The cache state that the objective does not use."""
    return CacheState.HOT if cache is CacheState.COLD else CacheState.COLD
