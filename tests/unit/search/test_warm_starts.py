"""Starts from earlier searches: winners in turn, apart from each other, never more than asked for."""

from warpsmith.domain.templates.space import Configuration, Parameter, Space
from warpsmith.search.searchers.warm_starts import onto, starts_from


def history(*times: tuple[int, int, float | None]) -> list[tuple[Configuration, float | None]]:
    return [({"A": a, "B": b}, t) for a, b, t in times]


def test_the_fastest_comes_first_and_what_failed_never() -> None:
    old = history((1, 1, None), (2, 2, 5.0), (3, 3, 1.0), (4, 4, 2.0))
    assert starts_from([old]) == [{"A": 3, "B": 3}, {"A": 4, "B": 4}, {"A": 2, "B": 2}]


def test_winners_side_by_side_count_once() -> None:
    old = history((1, 1, 1.0), (1, 2, 1.1), (2, 1, 1.2), (2, 2, 1.3))
    assert starts_from([old]) == [{"A": 1, "B": 1}, {"A": 2, "B": 2}]


def test_good_everywhere_goes_before_each_devices_own_best() -> None:
    one = history((1, 1, 1.0), (2, 2, 1.1), (3, 3, 9.0), (4, 4, 8.0))
    other = history((3, 3, 1.0), (2, 2, 1.1), (1, 1, 9.0), (4, 4, 8.0))
    found = starts_from([one, other], count=3)
    assert found == [{"A": 2, "B": 2}, {"A": 1, "B": 1}, {"A": 3, "B": 3}]


def test_no_more_than_asked_for_and_none_of_nothing() -> None:
    old = history(*((i, i, float(i)) for i in range(1, 30)))
    assert len(starts_from([old])) == 8
    assert starts_from([]) == []
    assert starts_from([history((1, 1, None))]) == []


def test_old_results_are_read_in_the_new_parameters() -> None:
    space = Space(
        parameters=(Parameter(name="A", values=(1, 2, 4)), Parameter(name="NEW", values=(8, 16), default=16))
    )
    assert onto(space, {"A": 2, "GONE": 7}) == {"A": 2, "NEW": 16}
    assert onto(space, {"A": 3}) == {"A": 1, "NEW": 16}


def test_of_several_results_for_one_configuration_the_best_counts() -> None:
    old = history((1, 1, 3.0), (2, 2, 2.0), (1, 1, 1.0), (1, 1, 9.0))
    assert starts_from([old]) == [{"A": 1, "B": 1}, {"A": 2, "B": 2}]
