"""Start-up code of every child."""

import contextlib
import ctypes
import os
from pathlib import Path

from warpsmith.processes.parent_death import die_with_parent
from warpsmith.sandbox.transport.frames import Channel

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8
"""Parameters of `mallopt`."""
_PAD_BYTES = 64 << 20


def keep_freed_memory() -> None:
    """Use freed memory again instead of giving it back, until this process ends.

    glibc gives a large array back as soon as it is freed, and the next one begins with fresh pages. Their
    first touch takes longer than the arithmetic of most references. Nothing happens with another C library.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in (
            (_ARENA_MAX, 1),
            (_MMAP_MAX, 0),
            (_TOP_PAD, _PAD_BYTES),
            (_TRIM_THRESHOLD, -1),
        ):
            mallopt(parameter, value)


def take_channel() -> Channel:
    """The channel to the parent. Afterwards, output printed by libraries cannot reach it."""
    die_with_parent()
    # If memory runs out, the kernel ends a child and never the worker.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    read_fd, write_fd = os.dup(0), os.dup(1)
    for fd in (read_fd, write_fd):
        os.set_inheritable(fd, False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return Channel(read_fd, write_fd)
