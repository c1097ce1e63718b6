"""The temporary folder of a command and of all that it starts; it goes with the last of them.

Temporary files come from many hands: children, fork servers, `multiprocessing`, drivers. All of them follow
`TMPDIR`, so one folder holds them all, and nobody has to clear up after each.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from warpsmith.system.own_files import is_own

PREFIX = "warpsmith-of-"
_OWNER = ".owner-"
"""Name of an owner's mark: process id, its start in ticks since boot, and the name space of the id."""
NEW_S = 60.0
"""Seconds in which a folder without a mark counts as one that is being made."""
REMOVE_S = 5.0
"""Seconds for which a process that is ending may still write while its folder is removed."""


@contextmanager
def temporary_folder() -> Iterator[None]:
    """Context in which this process, and what it starts, has its temporary files in a folder of its own.

    A process that was started within such a context shares that folder and may outlive who made it. What
    killed processes of this user left is removed first; folders of living ones, or of another container, are
    left alone. Where nothing can be written, nothing is done: an API needs no temporary file.
    """
    try:
        folder = _made_or_shared()
    except OSError:
        yield
        return
    mark = folder / _mark(os.getpid())
    if mark.exists():
        yield
        return
    mark.touch()
    variable, cached = os.environ.get("TMPDIR"), tempfile.tempdir
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        with _unwound_by_sigterm():
            yield
    finally:
        tempfile.tempdir = cached
        os.environ.pop("TMPDIR", None)
        if variable is not None:
            os.environ["TMPDIR"] = variable
        mark.unlink(missing_ok=True)
        if not _in_use(folder, new=False):
            _remove(folder)


@contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """Context that SIGTERM ends like an exception, unless somebody handles it; servers send it again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(_signum: int, _frame: FrameType | None) -> None:
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _made_or_shared() -> Path:
    root, found = shared_temporary_folder(), Path(tempfile.gettempdir())
    _clear(root)
    return found if found != root else Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))


def shared_temporary_folder() -> Path:
    """The temporary folder outside of every such context, where unrelated processes can meet."""
    found = Path(tempfile.gettempdir())
    return found.parent if found.name.startswith(PREFIX) else found


def _clear(root: Path) -> None:
    for folder in root.glob(f"{PREFIX}*"):
        with suppress(OSError):
            new = time.time() - folder.lstat().st_mtime < NEW_S
            if is_own(folder) and not _in_use(folder, new):
                _remove(folder)


def _in_use(folder: Path, new: bool) -> bool:
    """True if an owner may live; a folder without owners is in use if it is `new`."""
    marks = [path.name for path in folder.glob(f"{_OWNER}*")]
    if not marks:
        return new
    return any(_may_live(mark) for mark in marks)


def _may_live(mark: str) -> bool:
    """False if the owner has ended; of a process in another container nothing is known."""
    pid, _, space = mark.removeprefix(_OWNER).split("-")
    return space != _name_space() or mark == _mark(int(pid))


def _mark(pid: int) -> str:
    try:
        # The name of the program, in brackets, may contain anything.
        state, *others = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        state, others = "X", []
    started = "ended" if state in "ZX" else others[18]
    return f"{_OWNER}{pid}-{started}-{_name_space()}"


def _name_space() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + REMOVE_S
    shutil.rmtree(folder, ignore_errors=True)
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
        shutil.rmtree(folder, ignore_errors=True)
