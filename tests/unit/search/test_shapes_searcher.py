"""One search for the configurations of many shapes."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from warpsmith.domain.jobs.job import Job, SearcherName
from warpsmith.domain.jobs.known_winner import KnownWinner
from warpsmith.domain.templates.space import SHAPE_PREFIX, Constraint, Parameter, Space
from warpsmith.domain.templates.template import Template
from warpsmith.search import enumerate_space
from warpsmith.search.factory import make_searcher
from warpsmith.search.models.shape_process import ShapeProcess
from warpsmith.search.searchers.shapes_searcher import ShapesSearcher
from warpsmith.search.spaces.feasible_set import FeasibleSet
from warpsmith.search.spaces.shape_space import with_shapes
from warpsmith.testing.jobs import scale_job

SIZES = (16, 64, 256, 1024, 4096)
TILES = (16, 32, 64, 128, 256)


def job(**changes: Any) -> Job:
    """A kernel with five workloads and two parameters."""
    values = [{"name": n, "values": list(TILES)} for n in ("ROWS", "COLS")]
    made = scale_job().model_dump(mode="json", exclude_unset=True)
    made["kernel"]["source"] += "\n// ROWS COLS\n"
    made["parameters"] = [*made["parameters"], *values]
    made["workloads"] = [{"dimensions": {"n": n}} for n in SIZES]
    return Job.model_validate(made | {"searcher": "shapes"} | changes)


def time_of(rows: int, columns: int, size: int) -> float:
    """A time whose best tile grows with the size; the larger the size, the more a bad tile costs."""
    best = math.log2(min(256, max(16, size // 8)))
    off = (
        (math.log2(rows) - best) ** 2 + 0.5 * (math.log2(columns) - 7) ** 2 + 0.1 * abs(rows - columns) / 256
    )
    return size * (1.0 + 0.02 * math.log2(size) * off)


def feasible(of: Template, workloads: Job) -> FeasibleSet:
    return enumerate_space(of.space, [w.scope() for w in workloads.workloads])


def test_the_shape_is_a_parameter_and_a_row_runs_on_one_workload() -> None:
    of = job()
    template = with_shapes(Template(kernel=of.kernel, space=of.space), of)
    found = feasible(template, of)
    assert found.sole_workloads is not None and set(found.sole_workloads) == set(range(5))
    assert len(found) == 5 * len(feasible(Template(kernel=of.kernel, space=of.space), of))
    for row in (0, len(found) // 2, len(found) - 1):
        size = found.configuration(row)[f"{SHAPE_PREFIX}n"]
        assert of.workloads[int(found.sole_workloads[row])].dimensions["n"] == size


def test_the_kernel_knows_nothing_of_it() -> None:
    of = job()
    template = with_shapes(Template(kernel=of.kernel, space=of.space), of)
    made = template.configured(template.space.defaults)
    assert SHAPE_PREFIX not in made.source and f"{SHAPE_PREFIX}n" in made.configuration
    plain = Template(kernel=of.kernel, space=of.space).configured(of.space.defaults)
    assert made.key == plain.key, "the binaries of all shapes are one"


def test_other_shapes_forbid_nothing_so_that_checks_reach_every_configuration() -> None:
    of = job()
    template = with_shapes(Template(kernel=of.kernel, space=of.space), of)
    elsewhere = enumerate_space(template.space, [{"n": 33}])
    assert len(elsewhere) == len(feasible(template, of))


def test_a_template_without_different_shapes_stays_as_it_is() -> None:
    of = job(workloads=[{"dimensions": {"n": 16}}])
    template = Template(kernel=of.kernel, space=of.space)
    assert with_shapes(template, of) is template
    told = of.model_copy(
        update={"known_winners": (KnownWinner(dimensions={"n": 32}, configuration={"a": 1}),)}
    )
    found = feasible(with_shapes(template, told), told).sole_workloads
    assert found is not None and not found.any()
    assert feasible(template, told).sole_workloads is None
    several = job()
    once = with_shapes(template, several)
    assert with_shapes(once, several) is once


def test_workloads_that_are_no_product_are_all_there_is() -> None:
    of = job(workloads=[{"dimensions": {"n": n}} for n in (16, 64)])
    pairs = [{"dimensions": {"n": n, "m": m}} for n, m in ((16, 8), (64, 32), (16, 32))]
    of = Job.model_validate(of.model_dump(mode="json", exclude_unset=True) | {"workloads": pairs})
    found = feasible(with_shapes(Template(kernel=of.kernel, space=of.space), of), of)
    shapes = {
        (c[f"{SHAPE_PREFIX}n"], c[f"{SHAPE_PREFIX}m"]) for c in map(found.configuration, range(len(found)))
    }
    assert shapes == {(16, 8), (64, 32), (16, 32)} and found.sole_workloads is not None


def pairs_of(sizes: tuple[int, ...]) -> FeasibleSet:
    """Every tile on every size."""
    values = (Parameter(name="ROWS", values=TILES), Parameter(name="COLS", values=TILES))
    shape = Parameter(name=f"{SHAPE_PREFIX}n", values=sizes)
    rules = tuple(Constraint(expression=f"n != {s} or {SHAPE_PREFIX}n == {s}") for s in sizes)
    return enumerate_space(Space(parameters=(*values, shape), constraints=rules), [{"n": s} for s in sizes])


def value_of(configuration: Mapping[str, Any]) -> float:
    """The objective: the time over that of the user's kernel."""
    rows, columns, size = (int(configuration[n]) for n in ("ROWS", "COLS", f"{SHAPE_PREFIX}n"))
    return time_of(rows, columns, size) / time_of(16, 16, size)


def table(
    seed: int, trials: int, fails: Callable[[Mapping[str, Any]], bool] = lambda c: False
) -> tuple[dict[int, float], list[dict[str, Any]]]:
    """The best time of each size over the true best, and what was asked."""
    found = pairs_of(SIZES)
    searcher = make_searcher(SearcherName.SHAPES, found, seed)
    assert isinstance(searcher, ShapesSearcher)
    best = {s: time_of(16, 16, s) for s in SIZES}
    asked: list[dict[str, Any]] = []
    for _ in range(trials):
        (configuration,) = searcher.ask(1)
        asked.append(dict(configuration))
        searcher.tell(configuration, None if fails(configuration) else value_of(configuration))
        if not fails(configuration):
            size = int(configuration[f"{SHAPE_PREFIX}n"])
            best[size] = min(best[size], value_of(configuration) * time_of(16, 16, size))
    true = {s: min(time_of(r, c, s) for r, c in itertools.product(TILES, TILES)) for s in SIZES}
    return {s: best[s] / true[s] for s in SIZES}, asked


@pytest.mark.parametrize("seed", range(3))
def test_what_is_learnt_at_one_size_serves_the_next(seed: int) -> None:
    found, asked = table(seed, 30)
    assert max(found.values()) <= 1.02, found
    assert len({tuple(sorted(c.items())) for c in asked}) == 30, "nothing is asked twice"
    assert all(sum(c[f"{SHAPE_PREFIX}n"] == s for c in asked) >= 3 for s in SIZES), "no size is given up"


def chances(best: Callable[[int], int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Logarithm of each row's chance, if the tile of a size is `best` or like it."""
    found = pairs_of(SIZES)
    rows = [found.configuration(r) for r in range(len(found))]
    off = [abs(math.log2(int(c["ROWS"]) / best(int(c[f"{SHAPE_PREFIX}n"])))) for c in rows]
    return np.maximum(-3.0 * np.array(off), -6.0)


def asked_with(told: np.ndarray[tuple[int], np.dtype[np.float64]], trials: int) -> list[dict[str, Any]]:
    """What a search asks that is told chances."""
    searcher = ShapesSearcher(pairs_of(SIZES), 0, told)
    asked: list[dict[str, Any]] = []
    for _ in range(trials):
        asked += [dict(c) for c in searcher.ask(1)]
        searcher.tell(asked[-1], value_of(asked[-1]))
    return asked


def right(size: int) -> int:
    """The best tile of a size."""
    return min(256, max(16, size // 8))


def test_what_is_likely_to_be_best_is_tried_first() -> None:
    first = asked_with(chances(right), 10)
    assert all(c["ROWS"] == right(int(c[f"{SHAPE_PREFIX}n"])) for c in first[:5]), first


def test_chances_that_mislead_cost_no_more_than_some_evaluations() -> None:
    asked = asked_with(chances(lambda size: 16 if size > 300 else 256), 45)
    for size in SIZES:
        true = min(time_of(r, c, size) for r, c in itertools.product(TILES, TILES)) / time_of(16, 16, size)
        assert min(1.0, *(value_of(c) for c in asked if c[f"{SHAPE_PREFIX}n"] == size)) <= 1.02 * true, size


def test_the_users_kernel_is_known_and_is_not_asked_for() -> None:
    _, asked = table(0, 40)
    assert not [c for c in asked if c["ROWS"] == c["COLS"] == 16]


def test_what_fails_at_one_size_is_not_tried_at_the_others() -> None:
    found, asked = table(1, 40, fails=lambda c: c["ROWS"] == 256)
    failed = [(c["ROWS"], c["COLS"]) for c in asked if c["ROWS"] == 256]
    assert len(failed) == len(set(failed)) <= 5
    assert found[16] <= 1.02


def test_equal_seeds_ask_equally_and_a_resumed_search_goes_on() -> None:
    assert table(7, 20) == table(7, 20)
    _, asked = table(7, 20)
    found, history = pairs_of(SIZES), [(c, value_of(c)) for c in asked]
    resumed = make_searcher(SearcherName.SHAPES, found, 7, history=history)
    fresh = resumed.ask(5)
    assert not [c for c in fresh if c in asked] and len(fresh) == 5


def test_a_search_without_a_gain_left_settles() -> None:
    found = pairs_of(SIZES[:2])
    searcher = make_searcher(SearcherName.SHAPES, found, 0, least_gain=0.01)
    lots = np.random.default_rng(0)
    asked = 0
    while batch := searcher.ask(1):
        asked += 1
        searcher.tell(batch[0], 1.0 + 0.001 * float(lots.random()))
    assert 10 <= asked < len(found) - 10


def test_results_that_are_taken_in_one_by_one_tell_what_they_tell_at_once() -> None:
    of = pairs_of(SIZES)
    rows = np.random.default_rng(1).permutation(len(of))[:40]
    logs = np.array([math.log(value_of(of.configuration(int(row)))) for row in rows])
    told, once = ShapeProcess(of, [2]), ShapeProcess(of, [2])
    for count in (2, 3, 30, 20, 40):
        told.posterior(rows[:count], logs[:count])
    fitted = told.posterior(rows[::-1], logs[::-1])
    for found, whole in zip(fitted, once.posterior(rows, logs), strict=True):
        assert np.allclose(found, whole, rtol=1e-6)
    told.fit(rows, logs)
    assert not np.allclose(told.posterior(rows, logs)[0], fitted[0], rtol=1e-3), "weights of its own"
