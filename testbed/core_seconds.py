"""Record the core-seconds of each test: the CPU time of its process and of all that the process started.

A pytest plugin: `-p testbed.core_seconds --core-seconds FILE` appends a line `seconds<TAB>test` for each
test. The cost of a session fixture counts for the first test that asks for it. Children that were killed
together with the parent that would have waited for them are missing; `scripts/suite.py` has them in its sum.
"""

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--core-seconds", type=Path, help="file that gets the core-seconds of each test, one a line"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    path: Path | None = item.config.getoption("--core-seconds")
    if path is None:
        return (yield)
    before = spent_s()
    result = yield
    # One write of one line: several processes append to the file.
    with path.open("a") as file:
        file.write(f"{max(0.0, spent_s() - before):.3f}\t{item.nodeid}\n")
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
