"""Values that always fail are found, and what merely stood beside them is not."""

import itertools

import numpy as np
import pytest

from warpsmith.domain.jobs.job import SearcherName
from warpsmith.domain.templates.space import Configuration, Parameter, Space
from warpsmith.search import enumerate_space, make_searcher
from warpsmith.search.searchers.failing_values import failing_values

CODES = np.array(list(itertools.product(range(4), range(3), range(2))), np.int16)


def failing(fails: list[tuple[int, int]], rows: range = range(len(CODES))) -> list[tuple[int, int]]:
    """What is found if configurations with one of these (parameter, value) fail."""
    return failing_values(CODES, {r: not any(CODES[r, c] == v for c, v in fails) for r in rows})


def test_what_always_fails_is_found_and_nothing_else() -> None:
    assert failing([]) == []
    assert failing([(0, 3)]) == [(0, 3)]
    assert failing([(0, 3), (1, 1)]) == [(1, 1), (0, 3)]


def test_a_value_that_was_tried_only_beside_a_bad_one_is_not_blamed() -> None:
    rows = [r for r in range(len(CODES)) if CODES[r, 0] == 3 or CODES[r, 1] != 2]
    worked = {r: bool(CODES[r, 0] != 3) for r in rows}
    found = failing_values(CODES, worked | {r: False for r in rows if CODES[r, 1] == 2})
    assert found == [(0, 3)]


def test_three_rejections_or_a_space_of_rejections_prove_nothing() -> None:
    rows = [r for r in range(len(CODES)) if CODES[r, 0] == 3][:3]
    assert failing_values(CODES, {0: True, 1: True} | dict.fromkeys(rows, False)) == []
    assert failing_values(CODES, dict.fromkeys(range(len(CODES)), False)) == []
    alone = {r: r == 0 for r in range(len(CODES))}
    assert failing_values(CODES, alone) == []


SPACE = Space(
    parameters=(
        Parameter(name="BLOCK", values=(32, 64, 128, 256, 512, 1024)),
        Parameter(name="VEC", values=(1, 2, 4, 8)),
        Parameter(name="UNROLL", values=(0, 1, 2, 4)),
    )
)
FEASIBLE = enumerate_space(SPACE, [{}])


def run(name: SearcherName, seed: int) -> list[Configuration]:
    """Everything that a searcher asks for, in order, if blocks above 128 fail."""
    searcher = make_searcher(name, FEASIBLE, seed=seed)
    asked: list[Configuration] = []
    while batch := searcher.ask(1):
        asked += batch
        block = int(batch[0]["BLOCK"])
        searcher.tell(batch[0], None if block > 128 else 1.0 + abs(block - 64) / int(batch[0]["VEC"]))
    return asked


@pytest.mark.parametrize("name", [n for n in SearcherName if n is not SearcherName.GRID])
def test_a_searcher_gives_it_up_until_nothing_else_is_left(name: SearcherName) -> None:
    asked = run(name, 0)
    assert len(asked) == FEASIBLE.count, "in the end everything is asked for"
    good = FEASIBLE.count // 2
    wasted = [c for c in asked[: good + 20] if int(c["BLOCK"]) > 128]
    assert len(wasted) <= 20
    assert run(name, 0) == asked


def test_a_success_takes_a_value_back() -> None:
    searcher = make_searcher(SearcherName.GRID, FEASIBLE, seed=0)
    rows = [FEASIBLE.configuration(n) for n in range(FEASIBLE.count)]
    of_64 = [c for c in rows if c["BLOCK"] == 64]
    for c in [c for c in rows if c["BLOCK"] == 128][:8]:
        searcher.tell(c, 1.0)
    for c in of_64[:4]:
        searcher.tell(c, None)
    assert not any(FEASIBLE.configuration(int(n))["BLOCK"] == 64 for n in searcher.open_rows)
    searcher.tell(of_64[4], 1.0)
    assert sum(FEASIBLE.configuration(int(n))["BLOCK"] == 64 for n in searcher.open_rows) == len(of_64) - 5
