"""What `--out` names is looked at before anything runs, and a result outlives what goes wrong at the end."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from warpsmith.cli import main
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.commands import tune as tune_module
from warpsmith.extensions.clients.commands.interrupts import Interrupted
from warpsmith.extensions.clients.commands.out_folder import require_folder
from warpsmith.testing.jobs import scale_job

Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command that must end with code 2, and returns its error."""

    def run(*arguments: str | Path) -> str:
        with pytest.raises(SystemExit) as caught:
            main([str(a) for a in arguments])
        assert caught.value.code == 2
        return capsys.readouterr().err

    return run


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(scale_job().model_dump(mode="json", exclude_unset=True)))
    return path


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        pytest.fail("it started before it looked at --out")

    monkeypatch.setattr("warpsmith.extensions.clients.commands.tune.embedded_service", started)
    monkeypatch.setattr("warpsmith.extensions.clients.commands.result.connect", started)
    monkeypatch.setattr("warpsmith.extensions.exports.commands.command.connect", started)


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize("command", ["tune", "result", "export"])
@pytest.mark.parametrize("below", ["", "below/it"])
def test_a_file_where_the_folder_should_be_is_told_before_anything_runs(
    refused: Refused, job_file: Path, tmp_path: Path, command: str, below: str
) -> None:
    file = tmp_path / "kernel.cl"
    file.write_text("")
    job = job_file if command == "tune" else "some-job"
    said = refused(command, job, "--out", file / below)
    assert said == f"error: --out: {file} exists and is no folder; name a folder\n"


@pytest.mark.usefixtures("nothing_starts")
def test_a_folder_that_may_not_be_written_to_is_told(
    refused: Refused, job_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != locked and may(path, mode))
    said = refused("tune", job_file, "--out", locked / "new")
    assert said == f"error: --out: files cannot be written to {locked}; name another folder\n"


def test_a_link_to_nowhere_is_no_folder_and_a_folder_to_come_is_one(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    with pytest.raises(InvalidInput, match="link exists and is no folder"):
        require_folder(link)
    require_folder(tmp_path / "a" / "b")
    require_folder(tmp_path)
    assert list(tmp_path.iterdir()) == [link], "to look makes nothing"


class _EndedJob:
    """A service whose only job has ended."""

    def result(self, _id: str) -> object:
        return object()

    def trials(self, _id: str) -> list[object]:
        return []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device", "report.html"), 3),
        (KeyError("a fault of the report"), None),
        (Interrupted(2), 130),
    ],
)
def test_whatever_ends_the_writing_says_how_to_fetch_the_result(
    error: BaseException,
    code: int | None,
    job_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def service(*_: object) -> Iterator[_EndedJob]:
        yield _EndedJob()

    def failing(*_: Any) -> None:
        raise error

    monkeypatch.setattr(tune_module, "embedded_service", service)
    ended = SimpleNamespace(id="job7", state=JobState.DONE, detail="")
    monkeypatch.setattr(tune_module, "submit_or_resume", lambda *_, **__: ended)
    monkeypatch.setattr(tune_module, "follow", lambda *_: ended)
    monkeypatch.setattr(tune_module, "print_report", lambda _: None)
    monkeypatch.setattr(tune_module, "write_bundle", failing)
    with pytest.raises((SystemExit, KeyError)) as caught:
        main(["tune", str(job_file), "--no-check", "--out", str(tmp_path / "out")])
    if code is not None:
        assert isinstance(caught.value, SystemExit) and caught.value.code == code
    said = capsys.readouterr().err
    assert "`warpsmith result job7 --out FOLDER`" in said
    if isinstance(error, OSError):
        assert "No space left on device: 'report.html'" in said
