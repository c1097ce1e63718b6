"""Who sees the progress of a call: a terminal, a notebook, a function, or nobody."""

import sys
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput
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


@pytest.mark.parametrize("progress", [False, None, "auto"])
def test_it_is_silent_where_nobody_looks(progress: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with shown(progress) as show:
        show(STATUS)
    assert capfd.readouterr() == ("", "")


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
