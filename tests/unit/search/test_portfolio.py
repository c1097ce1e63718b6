"""The default searcher's parts: known starts, the process against a direct solve, the density's sums."""

import numpy as np
import pytest

from warpsmith.domain.jobs.job import SearcherName
from warpsmith.domain.templates.space import Configuration, Constraint, Parameter, Space
from warpsmith.search import enumerate_space, make_searcher
from warpsmith.search.models.categorical_density import CategoricalDensity
from warpsmith.search.models.covariance import Kind, Tables, matern
from warpsmith.search.models.gaussian_process import (
    JITTER,
    MEAN_PRECISION,
    VARIANCE_SHAPE,
    WINDOW,
    GaussianProcess,
)
from warpsmith.search.searchers.portfolio import (
    FIRST_POINTS,
    FRESH_POINTS,
    LEAST_QUIET_RESULTS,
    MAX_STARTS,
    QUIET_TURNS,
    TRIAL_FRESH,
    TRIAL_STARTS,
    TRUSTED_POINTS,
    PortfolioSearcher,
)

SPACE = Space(
    parameters=(
        *(Parameter(name=n, values=tuple(2**i for i in range(6))) for n in ("A", "B", "C")),
        Parameter(name="D", values=("x", "y", "z")),
    ),
    constraints=(Constraint(expression="A * B <= 256"),),
)
FEASIBLE = enumerate_space(SPACE, [{}])


def loss(c: Configuration) -> float:
    return 1.0 + abs(int(c["A"]) - 8) / 8 + abs(int(c["B"]) - 4) + abs(int(c["C"]) - 2) + (c["D"] == "x")


BY_LOSS = sorted((FEASIBLE.configuration(i) for i in range(len(FEASIBLE))), key=loss)


def searched(
    searcher: PortfolioSearcher, count: int, starts: list[Configuration], batch: int = 1
) -> list[Configuration]:
    searcher.start_with(starts)
    asked: list[Configuration] = []
    while len(asked) < count:
        some = searcher.ask(batch)
        for configuration in some:
            searcher.tell(configuration, loss(configuration))
        asked += some
    return asked


def test_good_starts_after_a_trial_then_fresh_points_then_the_rest_now_and_then() -> None:
    starts = [*BY_LOSS[:12], *BY_LOSS[-8:]]
    asked = searched(PortfolioSearcher(FEASIBLE, 1), 70, starts)
    known = [c in starts for c in asked]
    trial = [True] * TRIAL_STARTS + [False] * TRIAL_FRESH
    assert known[: len(trial)] == trial
    early = MAX_STARTS + FRESH_POINTS
    assert [c for c in asked[:early] if c in starts] == starts[:MAX_STARTS]
    assert sum(known[:early]) == MAX_STARTS
    assert all(c in asked for c in starts)


@pytest.mark.parametrize("batch", [1, 5, 7])
def test_after_bad_starts_a_search_goes_on_as_if_there_had_been_none(batch: int) -> None:
    starts = BY_LOSS[:-9:-1]
    searcher = PortfolioSearcher(FEASIBLE, 1)
    asked = searched(searcher, 42, starts, batch)
    early = [c in starts for c in asked[: TRIAL_STARTS + TRIAL_FRESH]]
    assert early == [True] * TRIAL_STARTS + [False] * TRIAL_FRESH
    # A batch of seven asks for two starts more before any is told.
    dropped = {FEASIBLE.index(c) for c in asked[: max(5, batch)] if c in starts}
    assert searcher._dropped == dropped
    assert len(dropped) == (5 if batch == 7 else TRIAL_STARTS)
    assert searcher._first_points() == FIRST_POINTS

    without = PortfolioSearcher(FEASIBLE, 1)
    own = [c for c in asked if FEASIBLE.index(c) not in searcher._dropped]
    for configuration in own:
        without.tell(configuration, loss(configuration))
    assert searcher._order == without._order
    assert searcher._logs == without._logs
    rows = sorted(searcher._logs, key=lambda r: searcher._logs[r])
    assert np.allclose(searcher._density.ratio(rows), without._density.ratio(rows))
    assert min(map(loss, own)) == loss(BY_LOSS[0])


@pytest.mark.parametrize("seed", range(6))
def test_bad_starts_cost_their_evaluations_and_nothing_else(seed: int) -> None:
    starts = BY_LOSS[:-9:-1]
    misled = searched(PortfolioSearcher(FEASIBLE, seed), 40, starts)
    cold = searched(PortfolioSearcher(FEASIBLE, seed), 40 - TRIAL_STARTS, [])
    assert misled[:TRIAL_STARTS] == starts[:TRIAL_STARTS]
    assert misled[TRIAL_STARTS:] == cold


def test_a_set_of_little_more_than_its_starts_is_searched_whole() -> None:
    few = enumerate_space(
        SPACE.model_copy(update={"constraints": (Constraint(expression="A * B == 1"),)}), [{}]
    )
    rows = [few.configuration(i) for i in range(len(few))]
    for starts in (rows, rows[:-1], rows[::-1]):
        asked = searched(PortfolioSearcher(few, 1), len(few), starts)
        assert sorted(map(str, asked)) == sorted(map(str, rows))


def test_what_compilers_said_outlives_dropped_starts() -> None:
    starts = BY_LOSS[:-4:-1]
    searcher = PortfolioSearcher(FEASIBLE, 1)
    searcher.start_with(starts)
    spilling, broken = BY_LOSS[30], BY_LOSS[40]
    searcher.learn(spilling, 0.1, True)
    searcher.exclude(broken)
    slow = searcher._process.foreseen.copy()
    searched(searcher, 12, [])
    assert searcher._started == 0, "dropped"
    assert slow.any()
    assert np.array_equal(searcher._process.foreseen, slow)
    chance = searcher._density.chance_to_run()
    assert isinstance(chance, np.ndarray)
    index = FEASIBLE.index(broken)
    assert index is not None
    assert chance[index] < np.median(chance)


def test_a_search_taken_up_again_judges_its_starts_as_before() -> None:
    starts = BY_LOSS[:-21:-1]
    first = PortfolioSearcher(FEASIBLE, 1)
    # It finds one of the dropped starts by itself.
    asked = [*searched(first, 30, starts), starts[TRIAL_STARTS + 4]]
    first.tell(asked[-1], loss(asked[-1]))
    again = PortfolioSearcher(FEASIBLE, 1)
    again.start_with(starts)
    for configuration in asked:
        again.tell(configuration, loss(configuration))
    assert again._misled()
    assert starts[TRIAL_STARTS] not in searched(again, 10, [])
    assert not again._misled()
    assert again._dropped == first._dropped
    assert again._order[: len(first._order)] == first._order


@pytest.mark.parametrize("refit", [False, True])
def test_posterior_is_that_of_a_direct_solve(refit: bool) -> None:
    process = GaussianProcess(FEASIBLE)
    rng = np.random.default_rng(3)
    rows = [int(r) for r in rng.permutation(len(FEASIBLE))[:40]]
    for row in rows:
        process.add(row)
    targets = rng.standard_normal(40)
    if refit:
        process.refit(rows, targets)
    mean, deviation = process.posterior(targets)
    tables, weights = process._tables, process._weights
    every = tables.distances(weights, tables.codes[rows]).astype(np.float64)
    cross = matern(every)
    gram = cross[:, rows] + (process._noise + JITTER) * np.eye(40)
    solved = np.linalg.solve(gram, cross)
    inverse = np.linalg.inv(gram)
    centre = (inverse @ targets).sum() / (inverse.sum() + MEAN_PRECISION)
    assert np.allclose(mean, centre + (targets - centre) @ solved, atol=2e-3)
    explained = (targets - centre) @ inverse @ (targets - centre)
    variance = (VARIANCE_SHAPE + explained / 2) / (VARIANCE_SHAPE + 40 / 2)
    wanted = variance * np.maximum(1.0 - (cross * solved).sum(axis=0), 1e-10)
    assert np.allclose(deviation**2, wanted, atol=5e-3)


def test_whole_numbers_are_compared_by_their_odd_part_as_well() -> None:
    space = Space(
        parameters=(Parameter(name="A", values=(32, 48, 64, 96)), Parameter(name="B", values=(1, 2, 4)))
    )
    tables = Tables(enumerate_space(space, [{}]))
    found = {(k, c): t for k, c, t in zip(tables.kinds, tables.columns, tables.tables, strict=True)}
    numbers = [t for k, t in zip(tables.kinds, tables.tables, strict=True) if k is Kind.NUMBER]
    assert [k for k, _ in found] == [Kind.ORDER, Kind.NUMBER, Kind.DIFFERS, Kind.ORDER, Kind.DIFFERS]
    assert numbers[0].tolist() == [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    assert numbers[1][0, 2] > 0
    assert numbers[1][1, 3] > 0


def test_the_process_keeps_a_window_with_the_best_in_it() -> None:
    process = GaussianProcess(FEASIBLE)
    rows = list(range(len(FEASIBLE)))[: WINDOW + 100]
    for row in rows:
        process.add(row)
    targets = np.random.default_rng(0).standard_normal(len(rows))
    process.refit(rows, targets)
    assert len(process.rows) <= WINDOW
    assert {int(i) for i in np.argsort(targets)[:50]} <= set(process.rows)
    assert np.isfinite(process.posterior(np.zeros(len(process.rows)))[0]).all()


def test_density_prefers_what_is_like_the_good_ones_and_avoids_what_failed() -> None:
    density = CategoricalDensity(FEASIBLE)
    good = [i for i in range(len(FEASIBLE)) if FEASIBLE.configuration(i)["D"] == "y"][:6]
    failed = [i for i in range(len(FEASIBLE)) if FEASIBLE.configuration(i)["D"] == "z"][:6]
    for row in good + failed:
        density.ask(row)
        density.tell(row, row in good)
    ratio, chance = density.ratio(good), density.chance_to_run()
    assert isinstance(chance, np.ndarray)
    alike = {d: [i for i in range(300, 500) if FEASIBLE.configuration(i)["D"] == d] for d in ("y", "z")}
    assert ratio[alike["y"]].mean() > ratio[alike["z"]].mean()
    assert chance[alike["y"]].mean() > chance[alike["z"]].mean()


def test_a_search_settles_when_nothing_is_to_be_gained_and_not_before() -> None:
    study = make_searcher(SearcherName.DEFAULT, FEASIBLE, 2, least_gain=0.01)
    values = []
    while batch := study.ask(2):
        for configuration in batch:
            values.append(loss(configuration))
            study.tell(configuration, values[-1])
    assert min(values) == 1.0
    assert TRUSTED_POINTS + LEAST_QUIET_RESULTS <= len(values) < len(FEASIBLE) / 2
    assert min(values[:-LEAST_QUIET_RESULTS]) <= 1.01


@pytest.mark.parametrize(("side", "enough"), [(10, 20), (50, 50)])
def test_the_larger_the_set_the_more_results_must_have_brought_nothing(side: int, enough: int) -> None:
    values = tuple(range(side))
    space = Space(parameters=tuple(Parameter(name=n, values=values) for n in "AB"))
    feasible = enumerate_space(space, [{}])
    searcher = PortfolioSearcher(feasible, 0)
    for configuration in searcher.ask(TRUSTED_POINTS):
        searcher.tell(configuration, 1.0)
    searcher._gains = [0.0] * 3
    told = TRUSTED_POINTS
    while not searcher.settled(0.01):
        searcher.tell(feasible.configuration(int(searcher.open_rows[0])), 1.0)
        told += 1
    assert told == max(enough + 1, TRUSTED_POINTS)


def test_a_settled_search_is_settled_when_it_is_taken_up_again() -> None:
    first = make_searcher(SearcherName.DEFAULT, FEASIBLE, 3, least_gain=0.01)
    history = []
    while batch := first.ask(1):
        first.tell(batch[0], loss(batch[0]))
        history.append((batch[0], loss(batch[0])))
    again = make_searcher(SearcherName.DEFAULT, FEASIBLE, 3, history=history, least_gain=0.01)
    more = 0
    while batch := again.ask(1):
        again.tell(batch[0], loss(batch[0]))
        more += 1
    assert more <= 2 * QUIET_TURNS
