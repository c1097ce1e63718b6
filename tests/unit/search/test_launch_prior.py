"""What the launch says of configurations, and what the default searcher makes of it."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.space import Constraint, Parameter, Space
from warpsmith.search.models.features import derived_features
from warpsmith.search.searchers.portfolio import (
    FIRST_EXPECTED,
    FIRST_POINTS,
    PATIENCE,
    PLAUSIBLE_SHARE,
    PortfolioSearcher,
)
from warpsmith.search.spaces.feasible_set import FeasibleSet, enumerate_space
from warpsmith.search.spaces.launch_prior import UNEVEN, SizedLaunch, launched, uneven_values

SPACE = Space(
    parameters=(
        Parameter(name="BX", values=(1, 8, 16, 48, 64, 128, 512)),
        Parameter(name="BY", values=(1, 2, 4)),
        Parameter(name="TILE", values=(1, 2, 4, 8)),
    ),
    constraints=(Constraint(expression="BX * BY <= 1024"),),
)
LAUNCH = Launch(
    block=(Expression("BX"), Expression("BY")), grid=(Expression("ceil_div(n, BX * TILE)"), Expression("m"))
)
SCOPES = [{"n": 4096, "m": 4}, {"n": 16384, "m": 1}]


def of(launch: Launch = LAUNCH, warp: int = 32) -> tuple[FeasibleSet, SizedLaunch]:
    feasible = enumerate_space(SPACE, SCOPES)
    found = launched(launch, feasible, SCOPES, warp)
    assert found is not None
    return feasible, found


def test_sizes_are_means_of_logarithms_over_workloads() -> None:
    feasible, found = of()
    row = feasible.index({"BX": 64, "BY": 2, "TILE": 4})
    assert row is not None
    threads, blocks, total = (sizes[row] for sizes in found.sizes)
    assert threads == 7
    assert blocks == pytest.approx(np.log2([16 * 4, 64 * 1]).mean())
    assert total == threads + blocks


def test_few_threads_and_idle_lanes_are_expected_to_be_slow_and_large_blocks_are_not() -> None:
    feasible, found = of()

    def expected(bx: int, by: int = 1) -> float:
        row = feasible.index({"BX": bx, "BY": by, "TILE": 1})
        assert row is not None
        return float(found.expected[row])

    assert expected(128) < expected(64) < expected(16) < expected(8)
    assert expected(128) < expected(512) == expected(512, 2) == expected(64)
    assert expected(64) < expected(48) < expected(1), "a quarter of the second warp is idle"


def test_processor_cores_have_no_warps_and_nothing_is_expected() -> None:
    _, found = of(warp=1)
    assert not found.expected.any()


@pytest.mark.parametrize("grid", ["ceil_div(n, BX - 16)", "n // (BX * 4096)"])
def test_a_launch_without_a_value_somewhere_says_nothing(grid: str) -> None:
    feasible = enumerate_space(SPACE, SCOPES)
    launch = Launch(block=(Expression("BX"),), grid=(Expression(grid),))
    assert launched(launch, feasible, SCOPES, 32) is None


def test_a_quantity_that_the_constraints_speak_of_already_counts_once() -> None:
    feasible, found = of()
    # The constraint knows the threads of a block; blocks and threads in all are new.
    assert len(derived_features(feasible)) == 1
    assert len(derived_features(feasible, found)) == 3


def test_first_points_are_plausible_launches() -> None:
    feasible, found = of()
    searcher = PortfolioSearcher(feasible, 3, launched=found)
    first = [feasible.index(c) for c in searcher.ask(FIRST_POINTS)]
    limit = np.quantile(found.expected, PLAUSIBLE_SHARE)
    assert all(row is not None and found.expected[row] <= limit for row in first)
    assert (found.expected > limit).mean() > 0.3, "or the test says nothing"


@pytest.mark.parametrize("time", [lambda bx: 1.0 + abs(bx - 64), lambda bx: 1.0 + abs(bx - 512)])
def test_what_is_measured_overrules_what_was_expected(time: Callable[[int], float]) -> None:
    feasible, found = of()
    searcher = PortfolioSearcher(feasible, 1, launched=found)
    for _ in range(30):
        (configuration,) = searcher.ask(1)
        searcher.tell(configuration, time(int(configuration["BX"]) * int(configuration["BY"])))
    row = searcher.best()
    assert row is not None
    best = feasible.configuration(row)
    least = min(time(int(c["BX"]) * int(c["BY"])) for c in map(feasible.configuration, range(len(feasible))))
    assert time(int(best["BX"]) * int(best["BY"])) == least


def test_a_launch_that_says_nothing_changes_nothing() -> None:
    feasible, found = of()
    silent = SizedLaunch((), np.zeros_like(found.expected))
    one, two = PortfolioSearcher(feasible, 5), PortfolioSearcher(feasible, 5, launched=silent)
    for _ in range(12):
        (a,), (b,) = one.ask(1), two.ask(1)
        assert a == b
        for searcher in (one, two):
            searcher.tell(a, float(int(a["BX"]) + int(a["TILE"])))


UNEVEN_SPACE = Space(
    parameters=(
        Parameter(name="B", values=(32, 48, 64, 96)),
        Parameter(name="T", values=(1, 2, 3, 4, 5)),
        Parameter(name="ODD", values=(3, 5)),
        Parameter(name="SHARE", values=(0.5, 0.75)),
        Parameter(name="U", values=(0, 1, 3)),
        Parameter(name="W", values=("a", "b")),
    )
)


def test_values_that_are_no_power_of_two_count_where_others_are() -> None:
    feasible = enumerate_space(UNEVEN_SPACE, SCOPES)
    found = uneven_values(feasible)

    def of_row(**changes: int | float | str) -> float:
        row = feasible.index({"B": 32, "T": 1, "ODD": 3, "SHARE": 0.5, "U": 0, "W": "a", **changes})
        assert row is not None
        return float(found[row])

    assert of_row() == of_row(T=2, ODD=5, SHARE=0.75, U=3, W="b") == of_row(B=64, T=4) == 0
    assert of_row(B=48) == of_row(B=96) == of_row(T=3) == 1
    assert of_row(B=96, T=5) == 2


def test_they_are_expected_to_be_slower_on_devices_with_warps() -> None:
    feasible = enumerate_space(UNEVEN_SPACE, SCOPES)
    launch = Launch(block=(Expression("64"),), grid=(Expression("ceil_div(n, 64)"),))
    found, cores = (launched(launch, feasible, SCOPES, warp) for warp in (32, 1))
    assert found is not None
    assert cores is not None
    assert np.allclose(found.expected - found.expected.min(), UNEVEN * uneven_values(feasible))
    assert not cores.expected.any()


def test_fewer_first_points_where_something_is_expected() -> None:
    feasible, found = of()
    for said, first in ((found, FIRST_EXPECTED), (None, FIRST_POINTS)):
        searcher = PortfolioSearcher(feasible, 2, launched=said)
        for turn in range(FIRST_POINTS + 2):
            (configuration,) = searcher.ask(1)
            assert bool(searcher._gains) == (turn >= first)
            searcher.tell(configuration, 1.0 + turn)


def test_the_density_minds_what_is_expected() -> None:
    feasible, found = of()
    chosen = {}
    for weight in (0.0, 50.0):
        said = SizedLaunch(found.sizes, weight * found.expected + 1e-9)
        searcher = PortfolioSearcher(feasible, 4, launched=said)
        for _ in range(8):
            (configuration,) = searcher.ask(1)
            searcher.tell(configuration, 1.0 + int(configuration["TILE"]))
        searcher._turn = 1  # the density's comes next
        (configuration,) = searcher.ask(1)
        row = feasible.index(configuration)
        assert row is not None
        chosen[weight] = float(found.expected[row])
    assert chosen[50.0] <= float(np.quantile(found.expected, 0.25))


def test_the_density_waits_for_what_it_proposed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    feasible, found = of()
    searcher = PortfolioSearcher(feasible, 6, launched=found)
    turns: list[int] = []
    ratio = searcher._density.ratio

    def counted(ranked: Sequence[int]) -> NDArray[np.float64]:
        turns.append(1)
        return ratio(ranked)

    monkeypatch.setattr(searcher._density, "ratio", counted)
    for _ in range(4):
        batch = searcher.ask(8)
        known = len(turns)
        for configuration in batch:
            searcher.tell(configuration, 1.0 + int(configuration["TILE"]))
        assert len(turns) == known
    assert len(turns) == 3, "one in every batch but the first, which knows nothing"
    for _ in range(6):
        (configuration,) = searcher.ask(1)
        searcher.tell(configuration, 2.0 + int(configuration["TILE"]))
    assert len(turns) == 6, "every other turn where results come one by one"


def test_the_density_does_not_wait_for_ever() -> None:
    feasible, found = of()
    searcher = PortfolioSearcher(feasible, 6, launched=found)
    for configuration in searcher.ask(8):
        searcher.tell(configuration, 1.0 + int(configuration["TILE"]))
    while searcher._counted is None:
        lost = searcher.ask(1)
    waited = 0
    while searcher._counted == feasible.index(lost[0]):
        for configuration in searcher.ask(1):
            searcher.tell(configuration, 2.0 + int(configuration["TILE"]))
            waited += 1
    assert PATIENCE < waited <= PATIENCE + 2
