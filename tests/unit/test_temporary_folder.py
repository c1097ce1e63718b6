"""What a command and its processes leave in the temporary folder: nothing, even after SIGKILL."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from warpsmith.system.temporary_folder import (
    NEW_S,
    PREFIX,
    shared_temporary_folder,
    temporary_folder,
)

ROOT = Path(__file__).resolve().parents[2]
HOLDS = """
import sys, tempfile
from warpsmith.system.temporary_folder import temporary_folder
with temporary_folder():
    tempfile.mkdtemp(prefix="pymp-")
    print(tempfile.gettempdir(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@contextmanager
def holder() -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Another process with a temporary folder, or with a share in this one's."""
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().decode().strip())
        finally:
            process.kill()


def test_everything_in_it_goes_with_it(root: Path) -> None:
    with temporary_folder():
        assert shared_temporary_folder() == root
        for prefix in ("warpsmith-", "pymp-"):
            assert Path(tempfile.mkdtemp(prefix=prefix)).parent.parent == root
        with temporary_folder():
            pass
        assert Path(tempfile.gettempdir()).exists()
    assert list(root.iterdir()) == []
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(root)


def test_the_last_of_those_who_share_it_removes_it(root: Path) -> None:
    with holder() as (process, folder):
        os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
        with temporary_folder():
            assert shared_temporary_folder() == root
            process.kill()
            process.wait()
            assert Path(tempfile.gettempdir()) == folder
        assert list(root.iterdir()) == []


def test_sigterm_leaves_time_to_clear_up(root: Path) -> None:
    with holder() as (process, folder):
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
    assert not folder.exists()
    assert list(root.iterdir()) == []


def test_one_who_ends_first_leaves_it_to_the_others(root: Path) -> None:
    with temporary_folder():
        with holder() as (process, folder):
            assert folder == Path(tempfile.gettempdir())
            process.communicate(b"")
        assert folder.exists()
    assert list(root.iterdir()) == []


def test_the_next_start_clears_what_a_killed_process_left_and_nothing_else(root: Path) -> None:
    others = root / "warpsmith-1000", root / f"{PREFIX}elsewhere", root / f"{PREFIX}open", root / "pymp-x"
    for other in others:
        other.mkdir(mode=0o700)
    (others[1] / ".owner-1-1-1").touch()  # a process of another container
    others[2].chmod(0o755)  # nothing that this program makes
    link = root / f"{PREFIX}link"
    link.symlink_to(ROOT)
    with holder() as (_living, theirs), holder() as (process, left):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert any(left.iterdir())
        with temporary_folder():
            mine = Path(tempfile.gettempdir())
            assert {*root.iterdir()} == {*others, link, theirs, mine}
    assert ROOT.exists()


def test_a_folder_that_is_being_made_is_left_alone(root: Path) -> None:
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    with temporary_folder():
        assert made.exists()
    os.utime(made, (1, made.stat().st_mtime - 2 * NEW_S))
    with temporary_folder():
        assert not made.exists()


def test_a_number_of_a_process_that_was_given_again_owns_nothing(root: Path) -> None:
    with temporary_folder():
        (mark,) = Path(tempfile.gettempdir()).iterdir()
    pid, started, space = mark.name.removeprefix(".owner-").split("-")
    left = Path(tempfile.mkdtemp(prefix=PREFIX))
    (left / f".owner-{pid}-{int(started) - 1}-{space}").touch()
    with temporary_folder():
        assert not left.exists()


def test_without_a_place_to_write_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with temporary_folder():
        pass
