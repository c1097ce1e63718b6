"""Processes that never outlive who started them."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(signum: int = signal.SIGKILL) -> None:
    """Have the kernel send `signum` to this process when its parent ends (Linux; else nothing)."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signum), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")


def end_if_orphan(parent_pid: int) -> None:
    """End this process where the parent is gone already, before the kernel could be asked."""
    if os.getppid() != parent_pid:
        sys.exit("the parent process is gone")
