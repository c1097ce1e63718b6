"""Waits for a process and keeps watch over how many its process group has.

The kernel's own limit (`RLIMIT_NPROC`) counts all processes of a user, other workers included, and none of
root's. So whoever started the group counts, and ends the group when there are too many.
"""

import os
import select
from collections.abc import Callable
from contextlib import suppress

MOST_PROCESSES = 64
"""Limit on the processes of a group. A compiler, its linker and their helpers are a handful."""
WATCH_S = 0.1
"""Seconds between two counts; one takes a microsecond for each process of the machine."""


def wait_for(pid: int, too_many: Callable[[], None], most: int = MOST_PROCESSES) -> int:
    """Wait for a child of this process, and return its status as `os.waitpid` gives it.

    Args:
        too_many: called whenever the group of this process has more than `most` processes.
    """
    try:
        ended = os.pidfd_open(pid)
    except OSError:  # before Linux 5.3, or a container that refuses the call: nobody counts
        return os.waitpid(pid, 0)[1]
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        while not poll.poll(WATCH_S * 1000):
            if members(os.getpgrp()) > most:
                too_many()
    finally:
        os.close(ended)
    return os.waitpid(pid, 0)[1]


def members(group: int) -> int:
    """Number of processes of a group; their threads do not count."""
    count = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(ProcessLookupError):
                count += os.getpgid(int(entry.name)) == group
    return count
