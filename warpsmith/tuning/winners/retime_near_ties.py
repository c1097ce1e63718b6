"""Times near-ties at the top of a search again, so that the winner is not the luckiest sample. Pure."""

import math
from collections.abc import Callable, Sequence

MOST_NEAR_TIES = 6
"""Limit on the near-ties that are timed again."""
TIMINGS = 20
"""Limit on the new timings of all near-ties of a workload together."""
WIDTH = 2.5
"""Distance to the best, in units of the noise, within which a configuration counts as a near-tie: the minimum
of many samples is too good by about as much."""


def near_ties(times: Sequence[float], noise: float) -> int:
    """Number of leading `times`, ascending, that cannot be distinguished from the first.

    Args:
        noise: relative standard deviation of one of them.
    """
    within = [t for t in times if t <= times[0] * (1 + WIDTH * noise)]
    return min(len(within), MOST_NEAR_TIES)


def retime_near_ties(
    times: Sequence[float], noise: float, measure: Callable[[int], float | None], budget: int
) -> list[int]:
    """An order of all `times` in which near-ties are ordered by new measurements.

    Rounds continue over the undecided ones; a configuration that is clearly behind is not timed further.

    Args:
        times: times of the search, ascending.
        noise: relative standard deviation of one of them.
        measure: measures one again, by position; None if that failed, which puts it last.
        budget: limit on the measurements.
    """
    rest = list(range(len(times)))
    playing = rest[: near_ties(times, noise)] if times else []
    if len(playing) < 2:
        return rest
    again: dict[int, list[float]] = {i: [] for i in playing}
    failed: set[int] = set()
    open_ = list(playing)
    while len(open_) > 1 and budget >= len(open_):
        for i in open_:
            value = measure(i)
            budget -= 1
            if value is None:
                failed.add(i)
            else:
                again[i].append(math.log(value))
        open_ = [i for i in open_ if i not in failed]
        count = max((len(again[i]) for i in open_), default=1)
        means = {i: sum(again[i]) / len(again[i]) for i in open_}
        least = min(means.values(), default=0.0)
        open_ = [i for i in open_ if means[i] <= least + WIDTH * noise * math.sqrt(2 / count)]
    played = [i for i in playing if again[i] and i not in failed]
    played.sort(key=lambda i: sum(again[i]) / len(again[i]))
    unplayed = [i for i in rest if i not in played and i not in failed]
    return [*played, *unplayed, *sorted(failed)]
