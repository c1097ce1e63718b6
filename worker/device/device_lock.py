"""Exclusive use of a device among the workers of one machine, in order of arrival."""

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from warpsmith.domain.device import DeviceInfo
from warpsmith.system.own_locks import lock_folder, opened_lock

POLL_S = 0.05

Waiting = Callable[[str], None]
"""Called repeatedly with the text of what is waited for; an exception that it raises ends the wait."""


def _in_silence(_words: str) -> None: ...


@contextmanager
def device_lock(device: DeviceInfo, waiting: Waiting = _in_silence) -> Iterator[None]:
    """Context with exclusive use of the device among all workers of this machine; the lock ends with the
    process.

    The longest-waiting worker is next, so that one that needs the device repeatedly cannot starve the others.

    Raises:
        Unavailable: this user has no folder for locks.
    """
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{device.backend.value}-{device.uid}")[:100]
    path = lock_folder() / f"device-{name}.lock"
    with opened_lock(path) as held:
        with opened_lock(path.with_suffix(".turn")) as turn:
            _take(turn, path, waiting)
            _take(held, path, waiting)
        os.ftruncate(held, 0)
        os.pwrite(held, str(os.getpid()).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(held, 0)


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
