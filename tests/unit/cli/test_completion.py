"""Completion: what a shell offers for a command and for an option, and what `--install-completion` leaves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S

ROOT = Path(__file__).resolve().parents[3]
BASH = shutil.which("bash")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home without settings, and a folder first on PATH whose `warpsmith` is this tree."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "warpsmith"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m warpsmith "$@"\n')
    program.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return {
        "HOME": str(home),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run(command: list[str], environment: dict[str, str]) -> str:
    """What a command prints."""
    ran = subprocess.run(
        command,
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_completes_commands_and_options_after_the_installation(environment: dict[str, str]) -> None:
    assert BASH is not None
    # A second command keeps bash from replacing itself by the program, which asks its parent for the shell.
    run([BASH, "-c", "warpsmith --install-completion; exit $?"], environment)
    script = f"source {environment['HOME']}/.bash_completions/warpsmith.sh\n"
    for words, at in (("warpsmith dra", 1), ("warpsmith keys ro", 2), ("warpsmith submit --prio", 2)):
        script += f"COMP_WORDS=({words}) COMP_CWORD={at}\n_warpsmith_completion warpsmith\n"
        script += 'echo "${COMPREPLY[@]}"\n'
    assert run([BASH, "-c", script], environment).splitlines() == ["drain", "rotate", "--priority"]
    assert "warpsmith.sh" in Path(environment["HOME"], ".bashrc").read_text()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_offered_the_same(shell: str, environment: dict[str, str]) -> None:
    asked = environment | {
        "_WARPSMITH_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    command = run(["warpsmith"], asked | {"_TYPER_COMPLETE_ARGS": "warpsmith dra"})
    option = run(["warpsmith"], asked | {"_TYPER_COMPLETE_ARGS": "warpsmith submit --prio"})
    assert "drain" in command and "submit" not in command
    assert "--priority" in option and "--label" not in option


@pytest.mark.parametrize(("shell", "line"), [("zsh", "#compdef warpsmith"), ("fish", "--command warpsmith")])
def test_other_shells_have_a_script(shell: str, line: str, environment: dict[str, str]) -> None:
    script = run(["warpsmith"], environment | {"_WARPSMITH_COMPLETE": f"source_{shell}"})
    assert line in script and "_WARPSMITH_COMPLETE" in script
