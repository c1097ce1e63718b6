"""Runs the blocks of a page as printed, as a user would in a folder of their own, without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from testbed.deadlines import HANGS_S

ROOT = Path(__file__).resolve().parents[1]
OFFLINE = """
import sys

def offline(event, args):
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in ("127.0.0.1", "::1"):
        raise PermissionError(f"a page may not connect to {args[1][0]}")

sys.addaudithook(offline)
"""
"""The `sitecustomize` of every Python program that a page starts."""
VARIES = re.compile(r"pthread-[^,\n]*|\b[0-9A-HJKMNP-TV-Z]{26}\b|\d[\d.,e+-]*")
"""Names of CPUs, ids and numbers, which differ from machine to machine."""


class Command(NamedTuple):
    """A command of a page, and what the page says that it prints."""

    line: str
    prints: str


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in one language, in order; `page` is its path in the repository."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.S | re.M)


def python_blocks(page: str) -> list[str]:
    """The Python blocks of a page, in order."""
    return blocks(page, "python")


def files(page: str) -> dict[str, str]:
    """The blocks under a sentence that ends with a file's name, as in "the kernel, `a.cl`:", by that name."""
    named = re.findall(r"`([\w.-]+)`:\n\n```\w+\n(.*?)^```$", (ROOT / page).read_text(), re.S | re.M)
    return dict(named)


def commands(page: str) -> list[Command]:
    """The commands of the `console` blocks of a page, in order; a backslash continues one."""
    text = "".join(blocks(page, "console"))
    found = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", text, re.M)
    return [Command(line, prints.rstrip("\n")) for line, prints in found]


def as_printed(page: str, printed: str) -> bool:
    """True if a program printed what the page shows, but for numbers, ids and CPUs; `...` is any lines."""
    parts = re.split(r"^\.\.\.$\n?", VARIES.sub("#", f"{page}\n"), flags=re.M)
    wanted = "(?:.*\n)*?".join(map(re.escape, parts))
    return re.fullmatch(wanted, VARIES.sub("#", f"{printed.rstrip()}\n")) is not None


def run_printed(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a folder, without this project's settings; a `RuntimeWarning` ends it."""
    script = folder / "printed.py"
    script.write_text(text)
    return run([sys.executable, "-W", "error::RuntimeWarning", str(script)], folder)


def run_command(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in a folder, in which `warpsmith` is this checkout's; errors go to the output."""
    return run(["bash", "-o", "pipefail", "-c", f"exec 2>&1\n{line}"], folder)


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with no way out of this machine and without this project's settings."""
    tools = folder.parent / f"{folder.name}-tools"
    tools.mkdir(exist_ok=True)
    (tools / "sitecustomize.py").write_text(OFFLINE)
    (tools / "warpsmith").write_text(f'#!/bin/sh\nexec {sys.executable} -m warpsmith "$@"\n')
    (tools / "warpsmith").chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    environment |= {"PATH": f"{tools}:{environment['PATH']}", "PYTHONPATH": f"{tools}:{ROOT}"}
    # Port 9 discards: programs that are not Python find no proxy there.
    environment |= {"ALL_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost", "NO_COLOR": "1"}
    return subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        cwd=folder,
        env=environment | {"COLUMNS": "150"},
    )
