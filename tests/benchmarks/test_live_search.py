"""Searches in turns on one measurement: each goes as it would alone, and nothing is measured twice."""

from collections import Counter

from benchmarks.search.live import OwnStream, Turns, trace
from tests.unit.search.test_portfolio import FEASIBLE, loss
from warpsmith.domain.job import SearcherName
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.search import make_searcher

BUDGET = 30
KINDS = [(n, seed) for n in (SearcherName.DEFAULT, SearcherName.RANDOM) for seed in range(3)]


def value(configuration: Configuration) -> float | None:
    return None if configuration["D"] == "z" else loss(configuration)


def streams() -> list[OwnStream]:
    return [OwnStream(n.value, make_searcher(n, FEASIBLE, seed), BUDGET) for n, seed in KINDS]


def test_every_search_goes_as_it_would_alone_and_nothing_is_measured_twice() -> None:
    several, alone = streams(), streams()
    turns, measured = Turns(several), Counter[str]()
    while asked := turns.ask(4):
        for configuration in asked:
            measured[configuration_key(configuration)] += 1
            turns.tell(configuration, value(configuration))
    assert set(measured.values()) == {1}
    assert measured.total() < len(KINDS) * BUDGET, "they share what they look at"
    for one, other in zip(several, alone, strict=True):
        while (wanted := other.ask()) is not None:
            other.tell(value(wanted))
        assert one.keys == other.keys
        assert len(one.keys) == len(trace(one, turns.values)) == BUDGET


def test_what_nobody_asked_for_is_known_when_somebody_does() -> None:
    first = streams()[0].ask()
    assert first is not None
    turns = Turns(streams()[:1])
    turns.tell(first, 1.0)
    turns.tell(first, 2.0)
    assert first not in turns.ask(1)
    assert turns.values == {configuration_key(first): 1.0}
