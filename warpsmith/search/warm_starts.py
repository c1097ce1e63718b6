"""What other devices, shapes or earlier rounds found, as first proposals of a new search.

Old results choose a few starts and nothing more: they neither enter the model nor close any part of the
space, so that history which misleads costs its evaluations and no others.
"""

from collections.abc import Mapping, Sequence

from warpsmith.domain.space import Configuration, Space, configuration_key

History = Sequence[tuple[Configuration, float | None]]
"""Configurations with their objective; None where one was rejected."""

STARTS = 8
"""Most starts that are worth their evaluations."""
APART = 2
"""Parameters in which two starts must differ; closer ones tell little more than one of them."""


def starts_from(histories: Sequence[History], count: int = STARTS) -> list[Configuration]:
    """Winners of earlier searches, best first, to hand to `SetSearcher.start_with`.

    Taken in turn: what was good everywhere by mean rank, then each history's own best. Of winners that
    lie side by side only the best is taken.

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
    """A configuration in another space's parameters: what that space does not know is left out, what the
    configuration does not say is the default."""
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
    """What every history measured, by mean relative rank."""
    common = set(ranked[0]).intersection(*ranked[1:])
    total = dict.fromkeys(sorted(common), 0.0)
    for order in ranked:
        for position, key in enumerate(order):
            if key in total:
                total[key] += position / len(order)
    return sorted(total, key=lambda k: (total[k], k))


def _distance(one: Mapping[str, object], other: Mapping[str, object]) -> int:
    return sum(one[n] != other.get(n) for n in one)
