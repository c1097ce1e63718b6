"""Folders and files that only this user may read."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def own_folder(path: Path) -> None:
    """Create a folder, and those above it, for this user alone. One that exists is left as it is."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)


def own_file(path: Path) -> None:
    """Make a file, which may exist, readable for this user alone. One of somebody else is left as it is.

    One that exists is not opened: to close it would end every lock that this process has on it, such as those
    of SQLite.

    Raises:
        OSError: it cannot be made, or something else has its name.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EEXIST, "is there, and is no file", str(path))
    if found.st_uid == os.getuid():
        path.chmod(0o600)


def is_own(path: Path) -> bool:
    """True for a folder, not a link to one, that belongs to this user and that nobody else may enter."""
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
