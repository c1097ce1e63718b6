"""Deadlines of tests: as they are on a quiet machine, later on a slow one, never earlier."""

import time

import pytest

from testbed import deadlines
from testbed.deadlines import MOST, Deadline, comes_true, slowness, stretched

SHORT_S = 0.05


def slow(monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    """Let work take so many times longer than on a quiet core."""
    monkeypatch.setattr(deadlines, "_work_s", lambda: times * deadlines.QUIET_S)


@pytest.mark.parametrize(("times", "expected"), [(0.2, 1), (1, 1), (4, 4), (1000, MOST)])
def test_a_machine_is_never_faster_than_quiet_nor_slower_than_the_most(
    monkeypatch: pytest.MonkeyPatch, times: float, expected: float
) -> None:
    slow(monkeypatch, times)
    assert slowness() == pytest.approx(expected)
    assert stretched(3) == pytest.approx(3 * expected)


def test_a_deadline_passes_where_it_stands_on_a_quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 1)
    deadline = Deadline(SHORT_S)
    assert not deadline.passed()
    time.sleep(SHORT_S)
    assert deadline.passed()


def test_a_machine_that_became_slow_meanwhile_has_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    began, deadline = time.monotonic(), Deadline(SHORT_S)
    slow(monkeypatch, 5)
    while not deadline.passed():
        time.sleep(SHORT_S / 10)
    assert time.monotonic() - began >= 5 * SHORT_S


def test_what_comes_true_is_waited_for_and_what_does_not_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    slow(monkeypatch, 1)
    turns = iter([False, False, True])
    assert comes_true(lambda: next(turns), 60, 0)
    assert not comes_true(lambda: False, SHORT_S)
