"""Programs that tests need: found, installed by root on Debian, or a reason why there is none."""

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Needed:
    """A program."""

    name: str
    packages: Sequence[str]
    """What Debian calls it."""
    advice: str
    """What somebody else should do."""
    find: Callable[[], str | None]
    """Its path; None if there is none. An `OSError` says why it is useless to install one."""


def installed_by_root() -> bool:
    """Whether this process may install packages, and knows their names."""
    return os.geteuid() == 0 and platform.freedesktop_os_release().get("ID") == "debian"


def install(packages: Sequence[str]) -> None:
    """Install packages of Debian.

    Raises:
        subprocess.CalledProcessError: the package manager failed; it has said why.
    """
    here = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages)
    for command in (("apt-get", "update", "--quiet"), install):
        subprocess.run(command, env=here, check=True)


def make_sure(needed: Needed, description: str | None) -> int:
    """Find or install a program, and say which.

    Returns:
        The exit code: 1 if there is none; with `--or-skip` on the command line it is 0 nevertheless.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--or-skip", action="store_true", help="accept that there is none: its tests skip")
    may_lack = parser.parse_args().or_skip
    try:
        if needed.find() is None and installed_by_root():
            install(needed.packages)
        reason = needed.advice if (path := needed.find()) is None else None
    except (OSError, subprocess.CalledProcessError) as exc:
        reason = f"{exc}; {needed.advice}"
    if reason is None:
        print(f"{needed.name}: {path}")
        return 0
    print(reason, file=sys.stderr)
    return int(not may_lack)
