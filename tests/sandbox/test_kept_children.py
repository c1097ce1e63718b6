"""Reference children that are kept: for the same job's function only, and not for ever."""

import os
import time
from collections.abc import Iterator, Mapping
from typing import cast

import pytest

from testbed.deadlines import comes_true
from tests.sandbox.kernels import plan
from warpsmith.sandbox import ReferenceRunner
from warpsmith.sandbox.hosts.halted_children import HaltedChildren
from warpsmith.sandbox.hosts.kept_children import KeptChildren
from warpsmith.sandbox.transport.process import ChildProcess

WHO = """
import os
def reference(inputs, dims):
    return {"y": inputs["x"] * 0 + os.getpid()}
"""
FAILS = """
def reference(inputs, dims):
    raise ValueError
"""


@pytest.fixture
def kept() -> Iterator[KeptChildren]:
    made = KeptChildren(60.0)
    yield made
    made.end_all()


def who(runner: ReferenceRunner, source: str = WHO) -> int:
    """The process that computed."""
    (found,) = runner.numpy_many(source, "reference", [(plan(10), {"n": 10})])
    assert isinstance(found, Mapping)
    return int(found["y"][0])


def ends(pid: int) -> bool:
    def is_gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    return comes_true(is_gone, 20)


def test_a_child_waits_for_the_next_call(kept: KeptChildren) -> None:
    runner = ReferenceRunner(kept=kept)
    assert who(runner) == who(runner)


def test_by_default_every_call_has_its_own() -> None:
    runner = ReferenceRunner()
    first = who(runner)
    assert ends(first)
    assert who(runner) != first


def test_a_child_never_runs_another_source(kept: KeptChildren) -> None:
    runner = ReferenceRunner(kept=kept)
    first = who(runner)
    assert who(runner, WHO + "# another job") != first
    assert ends(first)


def test_a_child_whose_function_failed_is_not_kept(kept: KeptChildren) -> None:
    runner = ReferenceRunner(kept=kept)
    runner.numpy_many(FAILS, "reference", [(plan(10), {"n": 10})])
    assert kept.take(FAILS) is None


def test_a_child_that_died_is_replaced(kept: KeptChildren) -> None:
    runner = ReferenceRunner(kept=kept)
    first = who(runner)
    os.kill(first, 9)
    assert ends(first)
    time.sleep(0.05)  # its server tells of the end
    assert who(runner) != first


class Recorded:
    """A child that only remembers how it was treated last."""

    last = ""

    def suspend(self) -> None:
        self.last = "stands still"

    def wake(self) -> None:
        self.last = "goes on"


def test_a_child_that_is_kept_does_not_stand_still() -> None:
    children, child = HaltedChildren(), Recorded()
    with children.running(cast(ChildProcess, child)):
        children.halt()
        assert child.last == "stands still"
    assert child.last == "goes on", "nobody else would wake it: it is none of them any more"


def test_idle_children_end_after_their_time() -> None:
    first = who(ReferenceRunner(kept=KeptChildren(0.05)))
    assert ends(first)
