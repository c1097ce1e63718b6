"""Ends processes together with the process that started them."""

import ctypes
import os
import signal
import sys

PARENT = "WARPSMITH_PARENT_PID"
"""Environment variable with the process id of the parent."""
_PR_SET_PDEATHSIG = 1


def die_with_parent(signum: int = signal.SIGKILL) -> None:
    """Have the kernel send `signum` to this process when the thread that started it ends; Linux only.

    Raises:
        OSError: the kernel refused.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")


def end_with_parent(signum: int = signal.SIGKILL) -> None:
    """Call `die_with_parent` if `PARENT` is set, and end this process if that parent has already ended.

    Processes started by this process do not inherit `PARENT`.
    """
    parent = os.environ.pop(PARENT, None)
    if parent is None:
        return
    die_with_parent(signum)
    if os.getppid() != int(parent):
        sys.exit("the parent process is gone")
