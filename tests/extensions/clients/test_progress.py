"""Who sees the progress of a call: a terminal, a notebook, a function, or nobody."""

import sys
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.commands.status_views import ProgressLines
from warpsmith.extensions.clients.python.progress import shown
from warpsmith.http_models import JobStatus

STATUS = JobStatus(
    id="job1",
    name="scale",
    state=JobState.SEARCHING,
    detail="searching\x1b[2J",
    backend="opencl",
    rounds=1,
    trials_budget=8,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


def test_a_function_is_given_every_status() -> None:
    seen: list[JobStatus] = []
    with shown(seen.append) as show:
        show(STATUS)
        show(STATUS)
    assert seen == [STATUS, STATUS]


def test_it_can_be_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with shown(False) as show:
        show(STATUS)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [None, "auto"])
def test_elsewhere_it_is_a_line_now_and_then_and_the_last(
    progress: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [100.0]
    monkeypatch.setattr("warpsmith.extensions.clients.commands.status_views.time.monotonic", lambda: now_s[0])
    with shown(progress) as show:
        for tried in range(30):
            more = {"trials_done": tried, "best_speedup": 2.06, "seconds_left": 31.4 - tried, "detail": ""}
            show(STATUS.model_copy(update=more))
            now_s[0] += 1
        show(STATUS.model_copy(update={"state": JobState.DONE, "trials_done": 30, "detail": "\x1b[2J"}))
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "searching: 0 tried, best 2.1x, 31 s left",
        "searching: 10 tried, best 2.1x, 21 s left",
        "searching: 20 tried, best 2.1x, 11 s left",
        "done: 30 tried - \\u001b[2J",
    ]


def test_a_line_says_that_a_wait_begins_and_that_it_ended() -> None:
    said: list[str] = []
    tell = ProgressLines(said.append)
    held = "searching; waits: the device is held by process 7"
    for detail in ("searching", "searching", held, held, "searching", "searching"):
        tell(STATUS.model_copy(update={"detail": detail}))
    assert [line.split(" - ")[1] for line in said] == ["searching", held, "searching"]


def test_a_status_prints_as_a_line() -> None:
    assert str(STATUS) == "job1 scale: searching, round 0/1, 0/8 trials (0 rejected)"


def test_a_terminal_shows_trials(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with shown("auto") as show:
        show(STATUS)
    said = capfd.readouterr()
    assert said.out == "" and "0/8 trials" in said.err
    assert "\x1b[2J" not in said.err, "a service does not steer the terminal"


def test_a_notebook_has_one_display_that_changes(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[str, str]] = []

    class Handle:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            told.append(("update", bundle["text/plain"]))

    def display(bundle: dict[str, str], raw: bool, display_id: bool) -> Handle:
        told.append(("display", bundle["text/plain"]))
        return Handle()

    module = ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    with shown("auto") as show:
        show(STATUS)
        show(STATUS)
        show(STATUS.model_copy(update={"trials_done": 3}))
    assert [kind for kind, _ in told] == ["display", "update"]
    assert "0/8 trials" in told[0][1] and "3/8 trials" in told[1][1]
    assert "\x1b" not in told[0][1]
    assert capfd.readouterr() == ("", "")


def test_anything_else_is_refused() -> None:
    with pytest.raises(InvalidInput, match="progress: 'loud' is none; give 'auto', False, or a function"):  # noqa: SIM117
        with shown("loud"):  # type: ignore[arg-type]
            pass
