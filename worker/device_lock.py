"""Exclusive use of a device among the workers of one machine, in order of arrival."""

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warpsmith.domain.device import DeviceInfo
from warpsmith.errors import Unavailable
from warpsmith.own_files import is_own, own_folder
from warpsmith.temporary_folder import shared_temporary_folder

POLL_S = 0.05

Waiting = Callable[[str], None]
"""Called repeatedly with the text of what is waited for; an exception that it raises ends the wait."""


def _in_silence(_words: str) -> None: ...


@contextmanager
def device_lock(device: DeviceInfo, waiting: Waiting = _in_silence) -> Iterator[None]:
    """Context with exclusive use of the device among all workers of this machine; the lock ends with the
    process.

    The longest-waiting worker is next, so that one that needs the device repeatedly cannot starve the others.
    """
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{device.backend.value}-{device.uid}")[:100]
    path = lock_folder() / f"device-{name}.lock"
    with _opened(path) as held:
        with _opened(path.with_suffix(".turn")) as turn:
            _take(turn, path, waiting)
            _take(held, path, waiting)
        os.ftruncate(held, 0)
        os.pwrite(held, str(os.getpid()).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(held, 0)


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
    raise Unavailable("no place for the lock of a device: set TMPDIR to a folder of this user")


def _take(descriptor: int, path: Path, waiting: Waiting) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting(f"the device is held by {_holder(path)}")
            time.sleep(POLL_S)
        else:
            return


def _holder(path: Path) -> str:
    try:
        pid = path.read_text().strip()
    except OSError:
        pid = ""
    return f"process {pid}" if pid.isdigit() and Path(f"/proc/{pid}").exists() else "another process"


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A descriptor of its own for the file; its locks end when it is closed."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
