"""Record the core-seconds of each test: the CPU time of its process and of all that the process started.

A pytest plugin: `-p testbed.core_seconds --core-seconds FILE` appends a line `seconds<TAB>test` for each
test. The cost of a session fixture counts for the first test that asks for it. Children that were killed
together with the parent that would have waited for them are missing; `scripts/suite.py` has them in its sum.
"""

import os
import time
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
BRIEF_S = 0.05
"""Wall seconds below which the children of a test are charged to the next longer one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--core-seconds", type=Path, help="file that gets the core-seconds of each test, one a line"
    )


class _Meter:
    """Charges what was spent to the test that ended; a look at all processes costs more than most tests."""

    def __init__(self) -> None:
        self._seen_s = spent_s()
        self._charged_s = 0.0

    def charge(self, wall_s: float, own_s: float) -> float:
        """Core-seconds of a test that took so long, and so much of this process and its ended children."""
        if wall_s < BRIEF_S:
            self._charged_s += own_s
            return own_s
        now_s = spent_s()
        cost_s = max(0.0, now_s - self._seen_s - self._charged_s)
        self._seen_s, self._charged_s = now_s, 0.0
        return cost_s


_meter = cache(_Meter)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    path: Path | None = item.config.getoption("--core-seconds")
    if path is None:
        return (yield)
    meter, began, own_s = _meter(), time.monotonic(), sum(os.times()[:4])
    result = yield
    cost_s = meter.charge(time.monotonic() - began, sum(os.times()[:4]) - own_s)
    # One write of one line: several processes append to the file.
    with path.open("a") as file:
        file.write(f"{cost_s:.3f}\t{item.nodeid}\n")
    return result


def spent_s() -> float:
    """CPU seconds of this process, of the children it waited for, and of its living descendants."""
    own = os.times()
    return sum(own[:4]) + sum(_of_process_s(pid) for pid in _descendants(os.getpid()))


def _descendants(root: int) -> Iterator[int]:
    """Process numbers of all that live below this process; none where the system has no `/proc`."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # no child: most tests, which so pay for no look at all processes
        return
    parents = {int(path.name): _fields(path)[1:2] for path in Path("/proc").glob("[0-9]*")}
    below = {root}
    while grown := {pid for pid, parent in parents.items() if parent and int(parent[0]) in below} - below:
        below |= grown
        yield from grown


def _of_process_s(pid: int) -> float:
    """CPU seconds of a process and of the children it waited for; 0 once it has ended."""
    return sum(int(field) for field in _fields(Path(f"/proc/{pid}"))[11:15]) / TICKS


def _fields(process: Path) -> list[str]:
    """The fields of its `stat` from the state on; none once it has ended."""
    try:
        # The name of the program, in parentheses, may hold anything.
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
