"""A tool ends with its seconds, and says what it left out."""

import time
from typing import Any, cast

from warpsmith.testing.jobs import DEVICE
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.tools.workbench import Workbench


def bench(seconds: float) -> Workbench:
    """A bench that is asked for its time only."""
    return Workbench(cast(DeviceSession, None), BaselineResult(device=DEVICE), seconds)


def test_what_there_is_time_for_is_done() -> None:
    said: list[str] = []
    wanted: list[dict[str, Any]] = [{"A": 1}, {"A": 2}]
    assert list(bench(600).in_time(wanted, said)) == wanted
    assert said == []


def test_the_first_is_done_in_any_case_and_the_rest_is_named() -> None:
    said: list[str] = []
    late = bench(0.0)
    time.sleep(0.001)
    assert list(late.in_time([{"A": 1}, {"A": 2}, {"A": 4}], said)) == [{"A": 1}]
    assert said == ["the other 2 were not done: the seconds are spent"]
