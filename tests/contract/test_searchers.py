"""One suite for every searcher: the port's promises, held by all of them."""

import pytest

from warpsmith.domain.jobs.job import SearcherName
from warpsmith.domain.templates.space import (
    Configuration,
    Constraint,
    Parameter,
    Space,
    configuration_key,
)
from warpsmith.search import Hints, enumerate_space, make_searcher
from warpsmith.search.searchers.set_searcher import SetSearcher
from warpsmith.tuning.trials.lazy_searcher import LazySearcher

SPACE = Space(
    parameters=(
        Parameter(name="BLOCK", values=(32, 64, 128, 256, 512)),
        Parameter(name="VEC", values=(1, 2, 4, 8)),
        Parameter(name="FAST", values=(True, False)),
        Parameter(name="LAYOUT", values=("row", "column")),
    ),
    constraints=(Constraint(expression="BLOCK * VEC <= 1024"),),
)
FEASIBLE = enumerate_space(SPACE, [{}])


def cost(configuration: Configuration) -> float | None:
    block, vec = int(configuration["BLOCK"]), int(configuration["VEC"])
    if block == 512 and vec == 2:
        return None
    return 1 + abs(block - 128) / 64 + abs(vec - 4) + (configuration["LAYOUT"] == "row")


@pytest.mark.parametrize("name", list(SearcherName))
class TestSearcher:
    def test_asks_every_feasible_configuration_once(self, name: SearcherName) -> None:
        searcher = make_searcher(name, FEASIBLE, seed=3)
        seen: list[str] = []
        while batch := searcher.ask(7):
            for configuration in batch:
                assert FEASIBLE.index(configuration) is not None
                seen.append(configuration_key(configuration))
                searcher.tell(configuration, cost(configuration))
        assert len(seen) == len(set(seen)) == FEASIBLE.count
        assert list(searcher.ask(1)) == []

    def test_is_reproducible(self, name: SearcherName) -> None:
        def run() -> list[Configuration]:
            searcher = make_searcher(name, FEASIBLE, seed=5)
            out: list[Configuration] = []
            for _ in range(25):
                (configuration,) = searcher.ask(1)
                searcher.tell(configuration, cost(configuration))
                out.append(configuration)
            return out

        assert run() == run()

    def test_history_is_never_asked_again(self, name: SearcherName) -> None:
        history = [(FEASIBLE.configuration(i), cost(FEASIBLE.configuration(i))) for i in range(0, 40, 2)]
        searcher = make_searcher(name, FEASIBLE, seed=1, history=history)
        asked = []
        while batch := searcher.ask(4):
            for configuration in batch:
                searcher.tell(configuration, cost(configuration))
                asked.append(configuration_key(configuration))
        assert not set(asked) & {configuration_key(c) for c, _ in history}
        assert len(asked) + len(history) == FEASIBLE.count

    def test_warm_starts_come_first(self, name: SearcherName) -> None:
        start = FEASIBLE.configuration(17)
        outside = {**start, "BLOCK": 512, "VEC": 8}
        searcher = make_searcher(name, FEASIBLE, seed=1, hints=Hints(warm_starts=[outside, start]))
        assert list(searcher.ask(1)) == [start]

    def test_what_was_proposed_and_never_finished_comes_first_however_bad_it_is(
        self, name: SearcherName
    ) -> None:
        every = [FEASIBLE.configuration(i) for i in range(FEASIBLE.count)]
        by_cost = sorted((c for c in every if cost(c) is not None), key=lambda c: cost(c) or 0.0)
        history = [(c, cost(c)) for c in by_cost[:20]]
        unfinished = by_cost[:-13:-1]
        searcher = make_searcher(
            name, FEASIBLE, seed=1, history=history, hints=Hints(warm_starts=by_cost[20:25])
        )
        searcher.finish_first(unfinished)
        asked = []
        for _ in unfinished:
            (configuration,) = searcher.ask(1)
            searcher.tell(configuration, cost(configuration))
            asked.append(configuration)
        assert asked == unfinished

    def test_a_batch_has_no_repeats_while_results_are_out(self, name: SearcherName) -> None:
        searcher = make_searcher(name, FEASIBLE, seed=2)
        first = list(searcher.ask(12))
        second = list(searcher.ask(12))
        keys = [configuration_key(c) for c in first + second]
        assert len(set(keys)) == 24
        for configuration in reversed(first + second):
            searcher.tell(configuration, cost(configuration))
        assert searcher.ask(1)

    def test_what_is_not_in_the_set_is_ignored(self, name: SearcherName) -> None:
        searcher = make_searcher(name, FEASIBLE, seed=2)
        searcher.tell({"BLOCK": 7}, 1.0)
        assert len(list(searcher.ask(3))) == 3

    def test_what_is_told_again_changes_nothing(self, name: SearcherName) -> None:
        once, twice = (make_searcher(name, FEASIBLE, seed=6) for _ in range(2))
        for _ in range(15):
            expected = list(once.ask(1))
            assert list(twice.ask(1)) == expected
            (configuration,) = expected
            for searcher in (once, twice, twice):
                searcher.tell(configuration, cost(configuration))
            twice.tell(configuration, 1e-9)

    def test_one_that_is_made_late_asks_what_it_would_have_asked(self, name: SearcherName) -> None:
        history = [(FEASIBLE.configuration(i), cost(FEASIBLE.configuration(i))) for i in range(0, 40, 3)]
        early = make_searcher(name, FEASIBLE, seed=4)
        made: list[SetSearcher] = []

        def make() -> SetSearcher:
            made.append(make_searcher(name, FEASIBLE, seed=4))
            return made[0]

        late = LazySearcher(make)
        for searcher in (early, late):
            for configuration, value in history:
                searcher.tell(configuration, value)
        assert not made, "a searcher that is never asked costs nothing"
        for _ in range(6):
            expected = list(early.ask(2))
            assert list(late.ask(2)) == expected
            for searcher in (early, late):
                for configuration in expected:
                    searcher.tell(configuration, cost(configuration))
        assert len(made) == 1

    def test_only_those_with_a_model_have_compilers_work_ahead(self, name: SearcherName) -> None:
        late = LazySearcher(lambda: make_searcher(name, FEASIBLE, seed=4))
        assert (late.forecast is not None) is (name in (SearcherName.DEFAULT, SearcherName.SHAPES))


def test_the_default_finds_the_best_of_a_thousand_in_few() -> None:
    space = Space(
        parameters=(
            *(Parameter(name=n, values=tuple(2**i for i in range(8))) for n in ("A", "B", "C")),
            Parameter(name="D", values=("x", "y", "z")),
        ),
        constraints=(Constraint(expression="A * B <= 1024"),),
    )
    feasible = enumerate_space(space, [{}])

    def loss(c: Configuration) -> float:
        away = abs(int(c["A"]).bit_length() - 6) + abs(int(c["B"]).bit_length() - 3)
        return 1 + away + abs(int(c["C"]).bit_length() - 5) / 2 + (c["D"] != "y")

    needed = []
    for seed in range(5):
        searcher = make_searcher(SearcherName.DEFAULT, feasible, seed)
        n = 0
        while n < 120:
            n += 1
            (configuration,) = searcher.ask(1)
            searcher.tell(configuration, loss(configuration))
            if loss(configuration) == 1:
                break
        needed.append(n)
    assert sorted(needed)[2] <= 60, needed
