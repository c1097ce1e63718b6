"""A group with too many processes is noticed while its first one runs, and a quiet one is left alone."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from testbed.deadlines import stretched
from tests.sandbox.kernels import wait_until
from warpsmith.sandbox.children.process_count import members, wait_for


def _grouped(processes: int, seconds: float) -> int:
    """A process in a group of its own that watches a child, which starts others; all are killed if there are
    more than five."""
    watching = os.fork()
    if watching:
        return watching
    try:
        os.setpgid(0, 0)
        first = os.fork()
        if first == 0:
            for _ in range(processes):
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
            time.sleep(seconds)
            os._exit(3)
        code = os.waitstatus_to_exitcode(wait_for(first, lambda: os.killpg(0, signal.SIGKILL), most=5))
        os._exit(code)
    finally:
        os._exit(1)


def _ended(pid: int) -> int:
    """How it ended; what it started ends too."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        for left in _group(pid):
            os.kill(left, signal.SIGKILL)
        wait_until(lambda: not _group(pid))


def _group(group: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(ProcessLookupError):
                found += [int(entry.name)] if os.getpgid(int(entry.name)) == group else []
    return found


def test_too_many_processes_are_noticed_before_their_parent_ends() -> None:
    started = time.monotonic()
    assert _ended(_grouped(8, 60.0)) == -signal.SIGKILL
    assert time.monotonic() - started < stretched(10)


def test_a_few_processes_are_left_alone() -> None:
    assert _ended(_grouped(2, 0.5)) == 3


def test_the_members_of_a_group_are_counted() -> None:
    watching = _grouped(3, 60.0)
    wait_until(lambda: members(watching) == 5)
    os.killpg(watching, signal.SIGKILL)
    assert _ended(watching) == -signal.SIGKILL
    assert members(watching) == 0
