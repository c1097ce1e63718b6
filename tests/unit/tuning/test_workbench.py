"""A tool ends with its seconds and says what it left out, and keeps to what the job minimises."""

import time
from typing import Any, cast

import pytest

from tests.metering import Meter, cuda_job, hot_ports
from warpsmith.measure import energy as measuring
from warpsmith.testing.jobs import DEVICE
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.tools.time import time_
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


def test_where_energy_counts_the_tool_measures_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SETTLE_S", 0.01)
    monkeypatch.setattr(measuring, "LEAST_S", 0.01)
    times, watts = {64: 100.0, 128: 100.0, 256: 100.0}, {64: 400.0, 128: 200.0, 256: 400.0}
    session = DeviceSession(cuda_job(metric="energy"), hot_ports(Meter(), times, watts))
    try:
        baseline = measure_baseline(session)
        template = session.inputs.user_template
        chosen = template.space.defaults | {"BLOCK": 128}
        answer = time_(Workbench(session, baseline, 600), template, [chosen])
        assert answer.ok and "of your kernel's energy a launch" in answer.text, answer
        bare = tuple(t.model_copy(update={"energy_mj": None}) for t in baseline.timings)
        older = Workbench(session, baseline.model_copy(update={"timings": bare}), 600)
        refused = time_(older, template, [chosen])
        assert not refused.ok and "submit the job again" in refused.text
    finally:
        session.close()
