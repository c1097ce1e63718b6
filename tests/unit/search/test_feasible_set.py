"""The feasible set equals brute force, and is counted without ever building the product."""

import itertools
import time
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.deadlines import stretched
from testbed.repetitions import examples
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.templates.space import Constraint, Parameter, Space, configuration_key
from warpsmith.errors import ExpressionError
from warpsmith.search import enumerate_space
from warpsmith.search.spaces import feasible_set
from warpsmith.search.spaces.feasible_set import SAMPLE
from warpsmith.search.spaces.vectorised_constraints import holds

CONSTRAINTS = (
    "A * B <= 64",
    "A % B == 0",
    "n % (A * C) == 0",
    "A + B > C or W == 'y'",
    "not (A == 1 and W == 'x')",
    "1 < A * C <= 32",
    "min(A, B) >= 2 if C > 1 else A > 0",
    "ceil_div(n, A) * B <= device.most",
    "W in ('x', 'z')",
    "n // (A - 1) > 3",
    "B in (1, 4, 16) and next_pow2(A) == A",
)


@examples(80)
@given(
    st.lists(st.sampled_from(CONSTRAINTS), max_size=5, unique=True),
    st.lists(st.integers(1, 4096), min_size=1, max_size=3),
)
def test_equals_brute_force(texts: list[str], dimensions: list[int]) -> None:
    space = Space(
        parameters=(
            Parameter(name="A", values=(1, 2, 3, 4, 8)),
            Parameter(name="B", values=(1, 2, 4, 16)),
            Parameter(name="C", values=(1, 2, 5)),
            Parameter(name="W", values=("x", "y", "z")),
        ),
        constraints=tuple(Constraint(expression=t) for t in texts),
    )
    scopes = [{"n": n, "device.most": 5000} for n in dimensions]
    found = enumerate_space(space, scopes)
    wanted = {}
    for values in itertools.product(*(p.values for p in space.parameters)):
        configuration = dict(zip("ABCW", values, strict=True))
        mask = [all(_true(t, {**configuration, **s}) for t in texts) for s in scopes]
        if any(mask):
            wanted[configuration_key(configuration)] = mask
    got = {configuration_key(found.configuration(i)): list(found.allowed[i]) for i in range(found.count)}
    assert got == wanted
    assert all(found.index(found.configuration(i)) == i for i in range(found.count))


def _true(text: str, scope: Mapping[str, Value]) -> bool:
    try:
        return bool(Expression(text).evaluate(scope))
    except ExpressionError:
        return False


def test_an_unknown_name_is_an_error() -> None:
    space = Space(
        parameters=(Parameter(name="A", values=(1, 2)),), constraints=(Constraint(expression="A < Z"),)
    )
    with pytest.raises(ExpressionError, match="unknown name 'Z'"):
        enumerate_space(space, [{}])


def test_no_parameters_is_one_configuration() -> None:
    assert enumerate_space(Space(), [{"n": 1}]).count == 1


def test_large_products_are_filtered_as_they_grow() -> None:
    powers = tuple(2**i for i in range(8))
    space = Space(
        parameters=tuple(Parameter(name=f"p{i}", values=powers) for i in range(8)),
        constraints=tuple(
            Constraint(expression=e)
            for e in ("p0 * p1 == 64", "p2 * p3 == 32", "p4 * p5 * p6 == 64", "p7 % p0 == 0")
        ),
    )
    started = time.monotonic()
    found = enumerate_space(space, [{}])
    assert time.monotonic() - started < stretched(2)
    assert found.exact
    assert found.count == sum(6 * 28 * (8 - k) for k in range(7))


def test_beyond_the_limit_a_part_is_drawn_and_all_are_counted() -> None:
    space = Space(
        parameters=tuple(Parameter(name=f"p{i}", values=tuple(range(1, 17))) for i in range(7)),
        constraints=(Constraint(expression="p0 + p1 <= 20"),),
    )
    found = enumerate_space(space, [{}])
    assert found.exact
    assert found.count == 178 * 16**5
    assert len(found) == SAMPLE
    some = map(found.configuration, range(0, len(found), 997))
    assert all(int(c["p0"]) + int(c["p1"]) <= 20 for c in some)


def test_connected_constraints_are_counted_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step holds more than a piece, and of what is found a sample is kept."""
    for name in ("LIMIT", "FRONTIER"):
        monkeypatch.setattr(feasible_set, name, 500)
    space = Space(
        parameters=tuple(Parameter(name=f"p{i}", values=tuple(range(1, 9))) for i in range(5)),
        constraints=tuple(Constraint(expression=f"p{i} <= p{i + 1}") for i in range(4)),
    )
    wanted = set(itertools.combinations_with_replacement(range(8), 5))
    seen = Counter[tuple[int, ...]]()
    for seed in range(100):
        found = enumerate_space(space, [{}], limit=100, seed=seed)
        assert (found.exact, found.count, len(found)) == (True, len(wanted), 100)
        seen.update(map(tuple, found.codes.tolist()))
    assert set(seen) == wanted
    _are_alike(list(seen.values()), 100 * 100 / len(wanted))


def test_every_configuration_is_as_likely_as_any_other_however_many_workloads_allow_it() -> None:
    space = Space(
        parameters=tuple(Parameter(name=f"p{i}", values=tuple(range(8))) for i in range(4)),
        constraints=tuple(
            Constraint(expression=e) for e in ("p0 * p1 < n", "p2 < n", "n < 12 or p3 % 2 == 0")
        ),
    )
    scopes = [{"n": n} for n in (3, 6, 9, *range(10, 18))]
    whole = enumerate_space(space, scopes)
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in range(100):
        found = enumerate_space(space, scopes, limit=400, seed=seed)
        assert (found.exact, found.count, len(found)) == (True, len(whole), 400)
        seen.update(map(tuple, found.codes.tolist()))
    rows = [whole.index(found.configuration(row)) for row in range(400)]
    assert np.array_equal(found.allowed, whole.allowed[np.array(rows, int)])
    assert len(seen) == len(whole)
    _are_alike(list(seen.values()), 100 * 400 / len(whole))


def test_workloads_that_agree_on_nothing_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts are too large to be joined, and no workload allows a row of both."""
    monkeypatch.setattr(feasible_set, "FRONTIER_LIMIT", 10)
    parameters = tuple(Parameter(name=n, values=tuple(range(8))) for n in "ABCD")
    texts = ("A + B < 9 * n", "C + D < 9 * (1 - n)")
    space = Space(parameters=parameters, constraints=tuple(Constraint(expression=e) for e in texts))
    none = enumerate_space(space, [{"n": 0}, {"n": 1}])
    assert (none.exact, none.count, len(none)) == (True, 0, 0)
    some = enumerate_space(space, [{"n": 0.5}, {"n": 1}])
    assert (some.exact, some.count, len(some)) == (True, 15**2, 15**2)


def _are_alike(seen: list[int], mean: float) -> None:
    """Counts of draws without replacement vary less than Poisson's; 1.15 is six deviations above."""
    assert float(np.var(seen)) < 1.15 * mean


SLOW = ("(p0 + p1) ** 13 % 7 != 3", "(p2 * p3) ** 8 % 5 >= p5 - p6")
"""Their intermediate values are too large for arrays, so they are evaluated row by row."""


def _slow(parameters: int, texts: tuple[str, ...] = SLOW) -> Space:
    return Space(
        parameters=tuple(Parameter(name=f"p{i}", values=tuple(range(1, 13))) for i in range(parameters)),
        constraints=tuple(Constraint(expression=t) for t in texts),
    )


def test_slow_constraints_end_in_a_sample() -> None:
    """All rows would take minutes."""
    space = _slow(7, (*SLOW, "p0 + p2 + p4 + p5 > 4"))
    started = time.monotonic()
    found = enumerate_space(space, [{"n": n} for n in range(4)], seconds=0.5)
    assert time.monotonic() - started < stretched(4)
    assert not found.exact
    assert found.count > 0
    rows = [found.configuration(i) for i in range(0, found.count, 7)]
    assert all(_true(t, row) for t in SLOW for row in rows)


def test_a_column_that_takes_too_long_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is looked at within a column: its rows alone would take minutes."""
    looked = []

    def slowly(*arguments: object) -> object:
        looked.append(arguments)
        time.sleep(0.01)
        return holds(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(feasible_set, "holds", slowly)
    monkeypatch.setattr(feasible_set, "PIECE", 16)
    space = _slow(6, ("p0 + p1 + p2 + p3 + p4 + p5 > 5",))
    started = time.monotonic()
    found = enumerate_space(space, [{}], limit=10_000_000, seconds=0.2)
    assert time.monotonic() - started < stretched(5)
    assert not found.exact
    assert len(looked) < 12**6 / 16


def test_constraints_that_are_slow_and_few_are_looked_at_to_the_end() -> None:
    found = enumerate_space(_slow(2, SLOW[:1]), [{}])
    assert found.exact
    assert found.count == sum((a + b) ** 13 % 7 != 3 for a in range(1, 13) for b in range(1, 13))


def test_no_time_at_all_still_finds_some() -> None:
    found = enumerate_space(_slow(4, ("p0 > 1",)), [{}], seconds=0.0)
    assert not found.exact
    assert found.count > 10
    assert enumerate_space(Space(), [{}], seconds=0.0).exact


def test_pieces_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    space = _slow(4, ("p0 * p1 % p2 == n", "p3 < p0"))
    scopes = [{"n": n} for n in range(3)]
    whole = enumerate_space(space, scopes)
    monkeypatch.setattr(feasible_set, "PIECE", 7)
    pieces = enumerate_space(space, scopes)
    assert np.array_equal(whole.codes, pieces.codes)
    assert np.array_equal(whole.allowed, pieces.allowed)
