"""What a process has begun ends at once when its work is recalled, and starts again after that."""

import gc
from collections.abc import Iterator

import pytest

from warpsmith import recall
from warpsmith.errors import LeaseLost


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
    recall.resume()


def test_what_runs_is_interrupted_at_once_and_cleaned_up_when_the_task_is_over() -> None:
    running = Running()
    recall.register(running)
    recall.recall()
    assert running.became == ["interrupted"]
    recall.resume()
    assert running.became == ["interrupted", "killed"]


def test_nothing_starts_until_the_next_task() -> None:
    recall.recall()
    late = Running()
    with pytest.raises(LeaseLost):
        recall.require_wanted()
    with pytest.raises(LeaseLost):
        recall.register(late)
    assert late.became == ["killed"]
    recall.resume()
    recall.require_wanted()
    recall.register(Running())


def test_what_was_asked_for_before_does_not_start_in_the_next_task() -> None:
    asked = recall.mark()
    recall.require_wanted(asked)
    recall.recall()
    recall.resume()
    with pytest.raises(LeaseLost):
        recall.require_wanted(asked)
    recall.require_wanted(recall.mark())


def test_what_is_gone_is_forgotten() -> None:
    running = Running()
    became = running.became
    recall.register(running)
    del running
    gc.collect()
    recall.recall()
    assert became == []
