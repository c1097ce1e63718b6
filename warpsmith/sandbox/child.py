"""Start-up code of every child."""

import contextlib
import os
from pathlib import Path

from warpsmith.parent_death import die_with_parent
from warpsmith.sandbox.frames import Channel


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
