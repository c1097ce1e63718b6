"""The user's editor."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from warpsmith.errors import InvalidInput, Unavailable

_PLUS = ("vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "kak", "micro", "joe", "gedit")
"""Editors that take a line as `+7 FILE`."""
_COLON = ("hx", "helix", "subl", "zed")
"""Editors that take it as `FILE:7`."""


def editor() -> list[str]:
    """The words of the command in `VISUAL` or `EDITOR`.

    Raises:
        InvalidInput: neither is set, or the program is missing.
    """
    text = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(text)
    except ValueError as exc:
        raise InvalidInput("--edit", f"VISUAL or EDITOR cannot be read: {exc}") from exc
    if not words:
        raise InvalidInput("--edit", "there is no editor: set VISUAL or EDITOR, such as EDITOR=nano")
    if shutil.which(words[0]) is None:
        raise InvalidInput("--edit", f"the editor {words[0]} is not found; set VISUAL or EDITOR")
    return words


def edit(words: list[str], path: Path, line: int) -> None:
    """Open a file at a line, from 1, and wait for the editor's end.

    Args:
        words: as `editor` returns them.

    Raises:
        Unavailable: the editor cannot be started, or fails.
    """
    name, file = Path(words[0]).stem, str(path.absolute())
    if name in _PLUS:
        place = [f"+{line}", file]
    elif name in _COLON:
        place = [f"{file}:{line}"]
    elif name in ("code", "codium"):
        place = ["--goto", f"{file}:{line}"]
    else:
        place = [file]
    try:
        code = subprocess.run([*words, *place], check=False).returncode
    except OSError as exc:
        raise Unavailable(f"{path} is written, but {words[0]} cannot be started: {exc}") from exc
    if code:
        raise Unavailable(f"{path} is written, but {words[0]} ended with exit code {code}")


def first_mark(text: str, mark: str) -> int:
    """The first line, from 1, that has a mark to be looked at; 0 without one."""
    rows = enumerate(text.splitlines(), 1)
    return next((n for n, row in rows if mark in row and not row.startswith("# Look at every")), 0)
