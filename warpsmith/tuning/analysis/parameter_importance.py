"""Effect of each parameter on the time, from the search's own trials. Pure.

Importance is the share of the variance of log time that the values of a parameter explain, corrected for the
number of values (epsilon squared), so that noise explains nothing on average. A search samples good regions
more densely, so these shares describe its trials and not the whole space.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations

from warpsmith.domain.base import Frozen
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected
from warpsmith.domain.templates.space import Configuration

MIN_TRIALS = 8
"""Number of measured trials below which no effect is reported."""
LEAST = 0.02
"""Least share that a pair must explain beyond its parameters to be reported."""
MAX_PAIRS = 6

Trials = Sequence[tuple[Configuration, Outcome]]


class Effect(Frozen):
    """One parameter."""

    parameter: str
    importance: float
    """Share of the variance of log time that the parameter explains, 0 to 1."""
    best: dict[str, float]
    """Best objective by value; below 1 is faster than the user's kernel."""
    rejected: dict[str, str] = {}
    """`rejected of tried` by value, for values with rejections."""


class Interaction(Frozen):
    """Two parameters that must be chosen together."""

    parameters: tuple[str, str]
    importance: float
    """Share of the variance that the pair explains beyond its two parameters."""


def effects(trials: Trials) -> tuple[tuple[Effect, ...], tuple[Interaction, ...]]:
    """Parameters by falling importance, and the pairs that matter. Empty with too few trials."""
    measured = [(c, math.log(o.objective)) for c, o in trials if isinstance(o, Measured)]
    if len(measured) < MIN_TRIALS:
        return (), ()
    varied = [n for n in sorted(measured[0][0]) if len({str(c[n]) for c, _ in measured}) > 1]
    shares = {n: _explained(measured, lambda c, n=n: str(c[n])) for n in varied}  # type: ignore[misc]
    found = [Effect(parameter=n, importance=shares[n], **_by_value(n, trials)) for n in varied]
    pairs = []
    for a, b in combinations(varied, 2):
        share = _explained(measured, lambda c, a=a, b=b: (str(c[a]), str(c[b])))  # type: ignore[misc]
        beyond = share - shares[a] - shares[b]
        if beyond >= LEAST:
            pairs.append(Interaction(parameters=(a, b), importance=round(beyond, 3)))
    return (
        tuple(sorted(found, key=lambda e: -e.importance)),
        tuple(sorted(pairs, key=lambda p: -p.importance)[:MAX_PAIRS]),
    )


def _explained(
    measured: Sequence[tuple[Configuration, float]], group: Callable[[Configuration], Hashable]
) -> float:
    groups: dict[Hashable, list[float]] = {}
    for configuration, value in measured:
        groups.setdefault(group(configuration), []).append(value)
    values = [v for _, v in measured]
    mean = sum(values) / len(values)
    total = sum((v - mean) ** 2 for v in values)
    within = 0.0
    for group_values in groups.values():
        middle = sum(group_values) / len(group_values)
        within += sum((v - middle) ** 2 for v in group_values)
    spare = len(values) - len(groups)
    if total <= 0 or spare <= 0:
        return 0.0
    between = total - within - (len(groups) - 1) * within / spare
    return round(min(1.0, max(0.0, between / total)), 3)


def _by_value(name: str, trials: Trials) -> dict[str, dict[str, float] | dict[str, str]]:
    best: dict[str, float] = {}
    tried: dict[str, int] = {}
    failed: dict[str, int] = {}
    for configuration, outcome in sorted(trials, key=lambda t: (isinstance(t[0][name], str), t[0][name])):
        value = str(configuration[name])
        tried[value] = tried.get(value, 0) + 1
        if isinstance(outcome, Measured):
            best[value] = min(best.get(value, math.inf), round(outcome.objective, 4))
        elif isinstance(outcome, Rejected):
            failed[value] = failed.get(value, 0) + 1
    return {"best": best, "rejected": {v: f"{n} of {tried[v]}" for v, n in failed.items()}}
