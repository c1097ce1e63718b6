"""`init` at a shell: the command that it prints works there, and what it cannot take is named."""

import shlex
from pathlib import Path

import pytest

from testbed.servers import free_port
from warpsmith.cli import main
from warpsmith.testing.jobs import SCALE_SOURCE


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    found = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, found.out, found.err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, beside one that holds a kernel and needs quotes."""
    (tmp_path / "its kernels").mkdir()
    (tmp_path / "its kernels" / "scale.cl").write_text(SCALE_SOURCE)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize("target", ["s.yaml", "made/deep/s.yaml", "-s.yaml", "it's.yaml"])
def test_the_next_command_works_where_it_is_printed(
    here: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    code, out, _ = ran(capsys, "init", "../its kernels/scale.cl", f"--out={target}")
    assert code == 0
    words = shlex.split(out.split("then: ")[1])
    assert words[:2] == ["warpsmith", "tune"]
    assert words[3:] == ["-I", "../its kernels"]
    code, _, err = ran(capsys, "validate", *words[2:])
    assert (code, [line for line in err.splitlines() if line.startswith("error")]) == (0, [])


def test_a_kernel_beside_its_job_needs_no_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ran(capsys, "init", "../its kernels/scale.cl")
    assert out.rstrip().endswith("then: warpsmith tune '../its kernels/scale.yaml'")


def test_a_refused_folder_is_named_as_the_option_takes_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(capsys, "init", "../its kernels/scale.cl", "-o", "s.yaml")
    code, _, err = ran(capsys, "validate", "s.yaml")
    assert code == 2
    assert "allow its folder with -I '../its kernels' if it may be sent" in err


def test_a_target_in_no_folder_is_refused_before_anything_is_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("")
    code, _, err = ran(capsys, "init", "../its kernels/scale.cl", "-o", "file/s.yaml")
    assert code == 2
    assert err.startswith("error: --out: file/s.yaml cannot be written: ")
    assert [p.name for p in here.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tune", "k.cl"], "k.cl: is a kernel's source and no job file; run: warpsmith init k.cl"),
        (["validate", "k.cl"], "run: warpsmith init k.cl"),
        (["init", "job.yaml"], "job.yaml is a job file already; run: warpsmith validate job.yaml"),
        (["init", "job.json"], "job.json is a job file already; run: warpsmith validate job.json"),
        (["init", "k.cl", "--backend", "replay"], "'replay' is not cuda, opencl, hip or triton"),
        (["validate", "job.yaml", "-I", "absent"], "'absent' does not exist"),
        (["validate", "twice.yaml"], "budget stands in lines 2 and 3"),
    ],
)
def test_what_a_command_cannot_take_is_named(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    Path("k.cl").write_text(SCALE_SOURCE)
    Path("job.yaml").write_text("name: x\n")
    Path("job.json").write_text('{"kernel": {}, "workloads": []}')
    Path("twice.yaml").write_text("name: x\nbudget: {}\nbudget: {}\n")
    code, out, err = ran(capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_help_offers_only_what_init_takes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, "init", "--help")
    assert code == 0
    assert "cuda|opencl|hip|triton" in out and "replay" not in out


def test_a_local_service_that_is_away_says_how_to_start_it(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    code, _, err = ran(capsys, "watch", "x", "--url", f"http://127.0.0.1:{port}")
    assert code == 3
    assert err.endswith(f"; start a service with: warpsmith serve --port {port}\n")


def test_a_service_elsewhere_is_not_started_here(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = ran(capsys, "watch", "x", "--url", "http://nowhere.invalid:8765")
    assert "does not answer" in err and "warpsmith serve" not in err
