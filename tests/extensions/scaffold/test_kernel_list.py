"""`init FOLDER` lists kernels with what each lacks."""

import json
import shlex
from pathlib import Path

import pytest

from tests.extensions.scaffold.test_init_command import ran
from warpsmith.extensions.scaffold.command import kernel_list
from warpsmith.testing.jobs import SCALE_SOURCE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sources, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "scale.cl").write_text(SCALE_SOURCE)
    host = (
        'int main() { return 0; }\nconst char* s = R"(__kernel void inner(__global int* x) { x[0] = 1; })";\n'
    )
    (tmp_path / "host.cpp").write_text(host)
    (tmp_path / "macro.cl").write_text("__kernel void m(__global int* x) { x[0] = WIDTH; }\n")
    (tmp_path / "plain.c").write_text("int kernel(void) { return 0; }\n")
    (tmp_path / "wrong.cl").write_text("__kernel void w(__global int* x) { x[0] = undefined_name(1); }\n")
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    """The list as JSON, by kernel."""
    code, out, _ = ran(capsys, "init", ".", "--json")
    assert code == 0
    return {k["kernel"]: k for k in json.loads(out)["kernels"]}


def test_each_kernel_is_listed_with_what_it_lacks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys)
    assert set(found) == {"scale", "inner", "m", "w"}
    assert (found["inner"]["file"], found["inner"]["line"]) == ("host.cpp", 2)
    assert found["scale"]["language"] == "opencl"
    assert str(found["scale"]["lacks"]).startswith("TODO ")
    assert found["m"]["lacks"] == "needs -D WIDTH"
    said = str(found["w"]["lacks"])
    assert said.startswith("does not compile: ") or "not compiled here" in said


def test_the_table_is_aligned_and_ends_with_a_command_that_works(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ran(capsys, "init", ".")
    *rows, last = out.splitlines()
    assert code == 0
    assert len({row.index("opencl") for row in rows[1:]}) == 1
    words = shlex.split(last.split(": ")[1])
    assert words[0] == "warpsmith"
    assert ran(capsys, *words[1:])[0] == 0


def test_limits_and_broken_files_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_list, "MAX_KERNELS", 1)
    monkeypatch.setattr(kernel_list, "MAX_FILE_BYTES", 1000)
    (folder / "a-big.cl").write_text("__kernel " + " " * 1000)
    _, out, err = ran(capsys, "init", ".")
    assert len(out.splitlines()) == 3
    assert "a-big.cl: has more than" in err
    assert "only the first 1 kernels are listed" in err


def test_a_folder_without_kernels_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ran(capsys, "init", str(tmp_path))
    assert (code, out) == (2, "")
    assert err == f"error: no kernel below {tmp_path}\n"
