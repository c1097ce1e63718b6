"""Near-ties at the top of a search, measured again, so that the winner is not the luckiest sample. Pure."""

import math
from collections.abc import Callable, Sequence

CONTENDERS = 6
"""Near-ties that are measured again, at most."""
TIMINGS = 20
"""Of all near-ties of a workload together, at most."""
WIDTH = 2.5
"""How many times the noise a configuration may be behind the best and still count as a near-tie: the
best of many samples is too good by about as much."""


def near_ties(times: Sequence[float], noise: float) -> int:
    """How many of `times`, ascending, cannot be told from the first.

    Args:
        noise: relative standard deviation of one of them.
    """
    within = [t for t in times if t <= times[0] * (1 + WIDTH * noise)]
    return min(len(within), CONTENDERS)


def retime_near_ties(
    times: Sequence[float], noise: float, measure: Callable[[int], float | None], budget: int
) -> list[int]:
    """An order of all `times` in which near-ties stand by what they were measured again.

    Rounds over those still in question; who is clearly behind is not measured further.

    Args:
        times: of the search, ascending.
        noise: relative standard deviation of one of them.
        measure: another time of one, by position; None where it failed, which puts it last.
        budget: most measurements.
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
