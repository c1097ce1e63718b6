"""Folder of this user's locks on this machine, and the opening of their files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warpsmith.errors import Unavailable
from warpsmith.system.own_files import is_own, own_folder
from warpsmith.system.temporary_folder import shared_temporary_folder


def lock_folder() -> Path:
    """The folder of this user's locks on this machine, which nobody else may enter.

    Raises:
        Unavailable: there is no home folder, and somebody else has made the folder in the temporary one.
    """
    home = Path("~").expanduser() / ".cache" / "warpsmith" / f"locks-{os.uname().nodename}"
    # The home folder is the same for workers with different temporary folders, such as those of Slurm. Where
    # there is none, all workers of this user find that out, and meet in the second place.
    for folder in (home, shared_temporary_folder() / f"warpsmith-{os.getuid()}"):
        with suppress(OSError):
            own_folder(folder)
            if is_own(folder):
                return folder
    raise Unavailable("no place for locks: set TMPDIR to a folder of this user")


@contextmanager
def opened_lock(path: Path) -> Iterator[int]:
    """A descriptor of its own for the file, which is made if there is none; its locks end when it is closed.

    Raises:
        OSError: the file cannot be opened, or is a link.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
