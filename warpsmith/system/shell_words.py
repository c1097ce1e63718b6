"""Paths as a user types them into a shell."""

import os
import shlex
from pathlib import Path


def shell_path(path: Path) -> str:
    """A path, quoted for a shell, as a command that is run in the current folder takes it.

    It is relative to that folder, or absolute if that is shorter.
    """
    whole = os.path.abspath(path)  # noqa: PTH100  links are kept, as the user named them
    text = min(os.path.relpath(whole), whole, key=len)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def shell_folder(path: Path) -> str:
    """Folder as a word of a shell, with its links followed: a link's parent is not that of its target."""
    return shell_path(path.resolve())
