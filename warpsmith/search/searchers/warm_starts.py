"""First proposals of a new search, taken from other devices, shapes or earlier rounds.

Old results only choose a few starts. They neither enter the model nor exclude any part of the space, so
misleading history costs no more than its evaluations.
"""

from collections.abc import Mapping, Sequence

from warpsmith.domain.templates.space import Configuration, Space, configuration_key

History = Sequence[tuple[Configuration, float | None]]
"""Configurations with their objective; None: the configuration was rejected."""

STARTS = 8
"""Limit on the number of starts that are worth their evaluations."""
APART = 2
"""Number of parameters in which two starts must differ; closer ones add little information."""


def starts_from(histories: Sequence[History], count: int = STARTS) -> list[Configuration]:
    """Winners of earlier searches, best first, for `SetSearcher.start_with`.

    They alternate between the best by mean rank over all histories and each history's own best. Of winners
    that are close to each other only the best is taken.

    Args:
        histories: one per device or shape, the most similar first.
        count: most configurations to return.
    """
    measured = [_measured(h) for h in histories]
    measured = [m for m in measured if m]
    known: dict[str, Configuration] = {configuration_key(c): c for h in histories for c, _ in h}
    ranked = [sorted(m, key=lambda k, m=m: (m[k], k)) for m in measured]  # type: ignore[misc]
    if len(ranked) > 1:
        ranked.insert(0, _by_mean_rank(ranked))
    chosen: list[Configuration] = []
    at = [0] * len(ranked)
    while len(chosen) < count and any(i < len(r) for i, r in zip(at, ranked, strict=True)):
        for number, order in enumerate(ranked):
            while at[number] < len(order):
                candidate = known[order[at[number]]]
                at[number] += 1
                if all(_distance(candidate, c) >= APART for c in chosen):
                    chosen.append(candidate)
                    break
    return chosen[:count]


def onto(space: Space, configuration: Configuration) -> Configuration:
    """A configuration in another space's parameters. Unknown parameters are left out, and missing ones get
    their defaults."""
    defaults = space.defaults
    known = {p.name: configuration[p.name] for p in space.parameters if p.name in configuration}
    fitting = {p.name: known[p.name] for p in space.parameters if known.get(p.name) in p.values}
    return {**defaults, **fitting}


def _measured(history: History) -> dict[str, float]:
    best: dict[str, float] = {}
    for configuration, value in history:
        if value is not None:
            key = configuration_key(configuration)
            best[key] = min(value, best.get(key, value))
    return best


def _by_mean_rank(ranked: Sequence[Sequence[str]]) -> list[str]:
    """The configurations that every history measured, by mean relative rank."""
    common = set(ranked[0]).intersection(*ranked[1:])
    total = dict.fromkeys(sorted(common), 0.0)
    for order in ranked:
        for position, key in enumerate(order):
            if key in total:
                total[key] += position / len(order)
    return sorted(total, key=lambda k: (total[k], k))


def _distance(one: Mapping[str, object], other: Mapping[str, object]) -> int:
    return sum(one[n] != other.get(n) for n in one)
