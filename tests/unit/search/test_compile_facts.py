"""What the default searcher makes of compilers' reports."""

import math

import numpy as np
import pytest

from warpsmith.domain.templates.space import Configuration, Parameter, Space
from warpsmith.search.searchers.compile_facts import SPILLS, slowness
from warpsmith.search.searchers.portfolio import FIRST_POINTS, PortfolioSearcher
from warpsmith.search.spaces.feasible_set import FeasibleSet, enumerate_space

SPACE = Space(parameters=tuple(Parameter(name=n, values=(1, 2, 4, 8, 16)) for n in "ABCD"))
REPORTS = {"good": (1.0, False), "slow": (0.1, True)}


def value(configuration: Configuration) -> float:
    a, b, c, d = (math.log2(float(configuration[n])) for n in "ABCD")
    return 1.0 + abs(a - 2) + abs(b - 3) + 0.3 * abs(c - d)


def searched(seed: int, budget: int, report: str = "", foreseen: int = 0) -> tuple[list[int], FeasibleSet]:
    feasible = enumerate_space(SPACE, [{}])
    searcher = PortfolioSearcher(feasible, seed)
    rows = []
    for _ in range(budget):
        if report:
            for configuration in searcher.likely(foreseen):
                searcher.learn(configuration, *REPORTS[report])
        (asked,) = searcher.ask(1)
        searcher.tell(asked, value(asked))
        row = feasible.index(asked)
        assert row is not None
        rows.append(row)
    return rows, feasible


@pytest.mark.parametrize(
    ("occupancy", "spills", "want"),
    [(None, False, 0.0), (1.0, False, 0.0), (0.5, False, 0.0), (1.0, True, SPILLS), (0.0, False, 1.0)],
)
def test_only_few_threads_and_spills_are_expected_to_be_slow(
    occupancy: float | None, spills: bool, want: float
) -> None:
    assert slowness(occupancy, spills) == pytest.approx(want)


def test_the_fewer_threads_the_slower() -> None:
    expected = [slowness(o, False) for o in (0.05, 0.125, 0.2, 0.3, 0.4)]
    assert expected == sorted(expected, reverse=True)
    assert len(set(expected)) == 5


@pytest.mark.parametrize("seed", range(3))
def test_reports_that_say_nothing_change_nothing(seed: int) -> None:
    assert searched(seed, 40, "good", 8)[0] == searched(seed, 40)[0]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_reported_slow_waits(seed: int) -> None:
    feasible = enumerate_space(SPACE, [{}])
    slow = {r for r in range(len(feasible)) if feasible.configuration(r)["C"] == 1}
    counts = []
    for told in (False, True):
        searcher = PortfolioSearcher(feasible, seed)
        if told:
            for row in range(len(feasible)):
                searcher.learn(feasible.configuration(row), *REPORTS["slow" if row in slow else "good"])
        asked = []
        for _ in range(60):
            (configuration,) = searcher.ask(1)
            searcher.tell(configuration, value(configuration))
            asked.append(feasible.index(configuration))
        counts.append(sum(row in slow for row in asked))
    assert counts[1] < counts[0]


def test_a_report_speaks_of_its_own_configuration_alone() -> None:
    feasible = enumerate_space(SPACE, [{}])
    plain, told = PortfolioSearcher(feasible, 0), PortfolioSearcher(feasible, 0)
    for _ in range(12):
        (configuration,) = plain.ask(1)
        assert told.ask(1) == [configuration]
        plain.tell(configuration, value(configuration))
        told.tell(configuration, value(configuration))
    told.learn(feasible.configuration(7), *REPORTS["slow"])
    targets = plain._targets(plain._process.rows)
    before, _ = plain._process.posterior(targets)
    after, _ = told._process.posterior(targets)
    others = np.arange(len(feasible)) != 7
    np.testing.assert_array_equal(before[others], after[others])
    assert after[7] > before[7]


def test_what_is_likely_is_new_and_often_asked_for_next() -> None:
    feasible = enumerate_space(SPACE, [{}])
    searcher = PortfolioSearcher(feasible, 1)
    seen: set[int] = set()
    hits = 0
    for turn in range(50):
        likely = [feasible.index(c) for c in searcher.likely(8)]
        assert len(likely) <= 8
        assert not seen.intersection(likely), "what was asked for is not likely any more"
        (configuration,) = searcher.ask(1)
        row = feasible.index(configuration)
        assert row is not None
        seen.add(row)
        hits += turn > FIRST_POINTS and row in likely
        searcher.tell(configuration, value(configuration))
    assert hits >= 15


@pytest.mark.parametrize(("warm", "known"), [(0, 5), (2, 5), (5, 4)])
def test_the_first_points_are_known_before_the_default_has_run(warm: int, known: int) -> None:
    feasible = enumerate_space(SPACE, [{}])
    default, *others = (feasible.configuration(r) for r in (3, 40, 80, 120, 160, 200))
    told, plain = PortfolioSearcher(feasible, 1), PortfolioSearcher(feasible, 1)
    for searcher in (told, plain):
        searcher.start_with(others[:warm])
    likely = told.likely(5, after=[default])
    for searcher in (told, plain):
        searcher.tell(default, value(default))
    asked = told.ask(5)
    assert asked == plain.ask(5), "to ask what is likely changes nothing"
    assert all(c in likely for c in asked[:known])
    assert default not in likely


def test_what_was_learnt_is_not_likely_again() -> None:
    feasible = enumerate_space(SPACE, [{}])
    searcher = PortfolioSearcher(feasible, 1)
    for _ in range(20):
        (configuration,) = searcher.ask(1)
        searcher.tell(configuration, value(configuration))
    first = searcher.likely(8)
    for configuration in first:
        searcher.learn(configuration, *REPORTS["good"])
    assert len(first) == 8
    assert not [c for c in searcher.likely(8) if c in first]


def test_what_does_not_build_is_never_asked_for_and_is_no_result() -> None:
    feasible = enumerate_space(SPACE, [{}])
    searcher = PortfolioSearcher(feasible, 2)
    bad = [feasible.configuration(r) for r in range(0, len(feasible), 5)]
    for configuration in bad:
        searcher.exclude(configuration)
        searcher.exclude(configuration)
    asked: list[Configuration] = []
    while found := searcher.ask(1):
        asked += found
        searcher.tell(found[0], value(found[0]))
    assert len(asked) == len(feasible) - len(bad)
    assert not [c for c in asked if c in bad]
    assert len(searcher.values) == len(asked)
