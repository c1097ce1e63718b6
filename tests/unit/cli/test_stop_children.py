"""What a process has begun ends at once when its work is recalled, and starts again after that."""

import gc
from collections.abc import Iterator

import pytest

from warpsmith.errors import LeaseLost
from warpsmith.processes import stop_children


class Running:
    """Notes what becomes of it."""

    def __init__(self) -> None:
        self.became: list[str] = []

    def interrupt(self) -> None:
        self.became.append("interrupted")

    def kill(self) -> None:
        self.became.append("killed")


@pytest.fixture(autouse=True)
def _afterwards() -> Iterator[None]:
    yield
    stop_children.resume()


def test_what_runs_is_interrupted_at_once_and_cleaned_up_when_the_task_is_over() -> None:
    running = Running()
    stop_children.register(running)
    stop_children.recall()
    assert running.became == ["interrupted"]
    stop_children.resume()
    assert running.became == ["interrupted", "killed"]


def test_nothing_starts_until_the_next_task() -> None:
    stop_children.recall()
    late = Running()
    with pytest.raises(LeaseLost):
        stop_children.require_wanted()
    with pytest.raises(LeaseLost):
        stop_children.register(late)
    assert late.became == ["killed"]
    stop_children.resume()
    stop_children.require_wanted()
    stop_children.register(Running())


def test_what_was_asked_for_before_does_not_start_in_the_next_task() -> None:
    asked = stop_children.mark()
    stop_children.require_wanted(asked)
    stop_children.recall()
    stop_children.resume()
    with pytest.raises(LeaseLost):
        stop_children.require_wanted(asked)
    stop_children.require_wanted(stop_children.mark())


def test_what_is_gone_is_forgotten() -> None:
    running = Running()
    became = running.became
    stop_children.register(running)
    del running
    gc.collect()
    stop_children.recall()
    assert became == []
