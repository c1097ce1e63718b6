"""`init` at a terminal asks for what it guessed; an editor opens at what is left."""

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.deadlines import HANGS_S
from warpsmith.extensions.scaffold.command.questions import answered

ROOT = Path(__file__).resolve().parents[3]
SOURCE = """__kernel void scale(__global const float* x, __global float* y, float a, int n) {
  int i = get_global_id(0);
  if (i < n) y[i] = x[i] < a ? x[(int) a] : 0;
  if (i < n / 2 + 5) y[i] += a;
}
"""
"""Two bounds and a branch leave open what the launch, two shapes and a number are."""


def _own_terminal() -> None:
    """Make standard input the terminal that signals come from."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def at_a_terminal(folder: Path, typed: list[str], *options: str, **variables: str) -> tuple[int, str]:
    """Exit code and all that a terminal shows of `init scale.cl`; a line is typed at every question."""
    (folder / "scale.cl").write_text(SOURCE)
    ours, theirs = pty.openpty()
    # Without a device nothing is compiled, which no question depends on.
    none = {"OCL_ICD_VENDORS": str(folder / "no-drivers")}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "VISUAL": "", "EDITOR": "", **none, **variables}
    command = [sys.executable, "-m", "warpsmith", "init", "scale.cl", *options]
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=_own_terminal,  # noqa: PLW1509  this process has no other thread
    )
    os.close(theirs)
    shown, waiting = "", list(typed)
    until = time.monotonic() + HANGS_S
    while time.monotonic() < until:
        if not select.select([ours], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(ours, 4096)
        except OSError:
            break  # the other end is closed
        if not data:
            break
        shown += data.decode()
        if shown.endswith("]: ") and waiting:
            os.write(ours, waiting.pop(0).encode())
    os.close(ours)
    return child.wait(HANGS_S), shown


def made(folder: Path) -> tuple[dict[str, Any], str]:
    """The job file as data and as text."""
    text = (folder / "scale.yaml").read_text()
    return yaml.safe_load(text), text


def test_answers_take_the_place_of_guesses_and_of_their_marks(tmp_path: Path) -> None:
    typed = ["2.5\n", "ceil_div(m, 64)\n", "ceil_div(n + 64, 64)\n", "many\n", "4096\n"]
    code, shown = at_a_terminal(tmp_path, typed)
    assert code == 0, shown
    assert "a (float32)" in shown and "[1.0]: " in shown
    assert "unknown name 'm' (known: n)" in shown
    data, text = made(tmp_path)
    assert data["kernel"]["launch"] == {"grid": ["ceil_div(n + 64, 64)"], "block": [64]}
    assert {"name": "a", "dtype": "float32", "role": "scalar", "value": 2.5} in data["kernel"]["arguments"]
    assert data["workloads"] == [{"dimensions": {"n": 4096}}]
    assert "is not a whole number" in shown or "is not a valid expression" in shown or "unknown name" in shown
    marked = [line for line in text.splitlines() if "# TODO" in line]
    assert [line.split("# ")[1] for line in marked] == ["TODO: shape", "TODO: shape"]


def test_enter_takes_the_guess(tmp_path: Path) -> None:
    code, shown = at_a_terminal(tmp_path, ["\n"] * 4)
    assert code == 0, shown
    data, text = made(tmp_path)
    assert data["workloads"] == [{"dimensions": {"n": 1024}}]
    assert "its value" not in text and "blocks along" not in text


def test_the_end_of_input_leaves_the_rest_marked(tmp_path: Path) -> None:
    code, shown = at_a_terminal(tmp_path, ["3\n", "\x04"])
    assert code == 0, shown
    _, text = made(tmp_path)
    assert "value: 3}\n" in text and "# TODO: blocks along" in text and "# TODO: the sizes" in text


def test_no_input_asks_nothing(tmp_path: Path) -> None:
    code, shown = at_a_terminal(tmp_path, [], "--no-input")
    assert code == 0 and "]: " not in shown
    assert "# TODO: its value" in made(tmp_path)[1]


def test_an_editor_opens_at_the_first_mark(tmp_path: Path) -> None:
    nano = tmp_path / "nano"
    nano.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/opened"\n')
    nano.chmod(0o755)
    code, shown = at_a_terminal(tmp_path, [], "--edit", EDITOR=str(nano))
    assert code == 0 and "]: " not in shown
    line = next(n for n, row in enumerate(made(tmp_path)[1].splitlines(), 1) if "# TODO: shape" in row)
    assert (tmp_path / "opened").read_text() == f"+{line} {tmp_path / 'scale.yaml'}\n"


@pytest.mark.parametrize(
    ("value", "words"), [("", "set VISUAL or EDITOR"), ("no-such-editor -w", "no-such-editor is not found")]
)
def test_without_an_editor_nothing_is_written(tmp_path: Path, value: str, words: str) -> None:
    code, shown = at_a_terminal(tmp_path, [], "--edit", EDITOR=value)
    assert code == 2 and words in shown
    assert not (tmp_path / "scale.yaml").exists()


def test_what_the_form_refuses_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_text(SOURCE)
    text = """name: k
kernel:
  backend: opencl
  source_file: k.cl
  entry: scale
  arguments:
    - {name: y, dtype: float32, role: output, shape: [n]}
  launch:
    grid: [1]
    block: [64]  # TODO: threads
workloads:
  - dimensions: {n: 1024}
"""
    given = iter(["0", "1, 2, 3, 4", "16, 4"])
    said: list[str] = []
    found = answered(text, tmp_path / "k.yaml", lambda _words, _guess: next(given), said.append)
    assert "    block: [16, 4]\n" in found
    assert len(said) == 2 and said[1] == "give one to three extents, with commas between"


def test_an_interrupt_writes_nothing(tmp_path: Path) -> None:
    code, shown = at_a_terminal(tmp_path, ["3\n", "\x03"])
    assert code == 130 and "Traceback" not in shown
    assert not (tmp_path / "scale.yaml").exists()
