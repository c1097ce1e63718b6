"""The commit of this program, as `--version`, results and records name it.

The build hook runs this file before any dependency is installed: it imports the standard library alone.
"""

import os
import subprocess
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
FILE = "_commit.txt"
"""The file beside this one in which a build names its commit; a checkout has none."""
UNKNOWN = "unknown"
DIRTY = "-dirty"
_PATIENCE_S = 10.0


def commit_name(package: Path = PACKAGE) -> str:
    """Short hash of a commit, such as `352b15e`; with `-dirty` if tracked files differ from it.

    `WARPSMITH_COMMIT` names it for a tree that was carried elsewhere. Otherwise the build's file does, or
    git. Without any of them it is `unknown`.
    """
    return os.environ.get("WARPSMITH_COMMIT") or _found(package)


def version_text(version: str, commit: str) -> str:
    """Version and commit for a reader, such as `0.1.0 (352b15e, clean)`."""
    if commit == UNKNOWN:
        return f"{version} (commit unknown)"
    state = "dirty" if commit.endswith(DIRTY) else "clean"
    return f"{version} ({commit.removesuffix(DIRTY)}, {state})"


@cache
def _found(package: Path) -> str:
    """Found once a process: later commits are not what it runs."""
    built = package / FILE
    if built.is_file():
        return built.read_text().strip()
    # A repository further up is somebody else's, such as one that holds an environment with this package.
    return _described(package.parent) if (package.parent / ".git").exists() else UNKNOWN


def _described(checkout: Path) -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    try:
        described = subprocess.run(
            command, cwd=checkout, capture_output=True, text=True, check=False, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return described.stdout.strip() or UNKNOWN
