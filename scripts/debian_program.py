"""A program that some tests need: taken if it is there, installed from Debian by root, or asked for."""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def provided(
    name: str, find: Callable[[], str | Path | None], packages: Sequence[str], advice: str, description: str
) -> int:
    """The exit code of a command that provides a program: 1 if there is none; with `--or-skip` 0.

    Args:
        name: what the program is called in the command's one line.
        find: says where it is.
        packages: Debian's packages with it.
        advice: for whoever has to install it.
        description: of the command.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--or-skip", action="store_true", help="accept that there is none: its tests skip")
    may_lack = parser.parse_args().or_skip
    try:
        if find() is None and installed_by_root():
            install(packages)
        path = find()
        reason = advice if path is None else None
    except (OSError, subprocess.CalledProcessError) as exc:
        reason = f"{exc}; {advice}"
    if reason is None:
        print(f"{name}: {path}")
        return 0
    print(reason, file=sys.stderr)
    return int(not may_lack)


def installed_by_root() -> bool:
    """Whether this process may install packages, and knows their names."""
    return os.geteuid() == 0 and platform.freedesktop_os_release().get("ID") == "debian"


def install(packages: Sequence[str]) -> None:
    """Install Debian's packages.

    Raises:
        subprocess.CalledProcessError: the package manager failed; it has said why.
    """
    here = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages)
    for command in (("apt-get", "update", "--quiet"), install):
        subprocess.run(command, env=here, check=True)
