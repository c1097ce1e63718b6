"""Children are forked from a process that has imported what they need, and are as separate as ever."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.child_processes import leaders
from testbed.deadlines import HANGS_S, stretched
from tests.sandbox.kernels import wait_until
from warpsmith.errors import ChildDied
from warpsmith.processes import forked_process
from warpsmith.processes.forked_process import ForkedProcess, ForkServer, NoServer, start_server
from warpsmith.sandbox.transport.process import ChildProcess

MODULE = "tests.sandbox.children"
CHILD_NAME = "children"


@pytest.fixture
def started() -> Iterator[list[ChildProcess]]:
    """Children to end after the test."""
    made: list[ChildProcess] = []
    yield made
    for child in made:
        child.kill()


def start(started: list[ChildProcess], argument: Mapping[str, object]) -> ChildProcess:
    child = ChildProcess(MODULE, argument, {"COLOUR": "red"}, preload=(MODULE,))
    started.append(child)
    return child


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_child_has_its_own_folder_group_and_environment(started: list[ChildProcess]) -> None:
    one, two = (start(started, {"do": "environment"}) for _ in range(2))
    assert one.private != two.private
    told, _ = one.channel.receive(time.monotonic() + HANGS_S)
    assert told == {"COLOUR": "red", "TMPDIR": str(one.private), "HOME": str(one.private)} | {
        name: told[name] for name in ("LC_CTYPE",) if name in told
    }
    waiting = [start(started, {"do": "lie", "reply": {}}) for _ in range(2)]
    pids = [child._process.pid for child in waiting]
    wait_until(lambda: leaders(CHILD_NAME) >= set(pids))
    assert [os.getpgid(pid) for pid in pids] == pids
    assert parent_of(pids[0]) == parent_of(pids[1]) != os.getpid()


def test_generators_differ_from_child_to_child(started: list[ChildProcess]) -> None:
    drawn = [
        tuple(start(started, {"do": "draw"}).channel.receive(time.monotonic() + HANGS_S)[0].values())
        for _ in range(3)
    ]
    assert len({numpy for numpy, _ in drawn}) == len({plain for _, plain in drawn}) == 3


def test_how_a_child_ended_is_known(started: list[ChildProcess]) -> None:
    killed = start(started, {"do": "lie", "reply": {}})
    os.kill(killed._process.pid, signal.SIGKILL)
    with pytest.raises(ChildDied) as died:
        killed.channel.receive(time.monotonic() + HANGS_S)
    assert "SIGKILL" in str(killed.explain(died.value))
    failed = start(started, {"do": "what nobody can"})
    with pytest.raises(ChildDied) as died:
        failed.channel.receive(time.monotonic() + HANGS_S)
    explained = str(failed.explain(died.value))
    assert "exit code 1" in explained and "what nobody can" in explained


def test_a_server_that_is_killed_takes_its_children_along_and_is_replaced(
    started: list[ChildProcess],
) -> None:
    child = start(started, {"do": "lie", "reply": {}})
    wait_until(lambda: child._process.pid in leaders(CHILD_NAME))
    os.kill(parent_of(child._process.pid), signal.SIGKILL)
    assert child.wait(HANGS_S)
    assert not child.alive
    again = start(started, {"do": "environment"})
    assert again.channel.receive(time.monotonic() + HANGS_S)[0]["COLOUR"] == "red"


def test_nothing_outlives_the_process_that_started_it() -> None:
    program = f"""
import os
from warpsmith.processes import forked_process
from warpsmith.processes.forked_process import ForkedProcess, ForkServer, NoServer, start_server
from warpsmith.sandbox.transport.process import ChildProcess
child = ChildProcess({MODULE!r}, {{"do": "lie", "reply": {{}}}}, {{}}, preload=({MODULE!r},))
pid = child._process.pid
print(pid, open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run(
        [sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, timeout=HANGS_S, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    pids = [int(word) for word in ended.stdout.split()]
    assert len(pids) == 2
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_a_server_that_was_started_early_forks_the_first_child(started: list[ChildProcess]) -> None:
    environment = {"COLOUR": "blue"}
    start_server(environment, (MODULE,))
    (server,) = (s for key, s in forked_process._servers.items() if "'COLOUR', 'blue'" in str(key))
    child = ChildProcess(MODULE, {"do": "lie", "reply": {}}, environment, preload=(MODULE,))
    started.append(child)
    assert parent_of(child._process.pid) == server._process.pid


def own_server(colour: str) -> forked_process.ForkServer:
    """The fork server of the children with that colour."""
    (server,) = (s for key, s in forked_process._servers.items() if f"'COLOUR', '{colour}'" in str(key))
    return server


def test_a_killed_child_whose_end_nobody_tells_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("warpsmith.sandbox.transport.process.END_S", 0.3)
    child = ChildProcess(MODULE, {"do": "lie", "reply": {}}, {"COLOUR": "grey"}, preload=(MODULE,))
    server = own_server("grey")
    os.kill(server.pid, signal.SIGSTOP)
    try:
        ending = threading.Thread(target=child.kill, daemon=True)
        ending.start()
        ending.join(stretched(20))
        assert not ending.is_alive()
        assert f"process {child._process.pid} was killed and has not ended within 0.3 s" in caplog.text
    finally:
        os.kill(server.pid, signal.SIGCONT)
        server.close()
        ending.join(HANGS_S)


def test_a_server_that_another_thread_has_just_replaced_is_kept(
    started: list[ChildProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads find the same server dead; the slower one does not end what the other has started."""

    def begin() -> ChildProcess:
        child = ChildProcess(MODULE, {"do": "lie", "reply": {}}, {"COLOUR": "pink"}, preload=(MODULE,))
        started.append(child)
        return child

    begin()
    dead = own_server("pink")
    dead.close()
    start_of, of_the_quicker = ForkServer.start, list[ChildProcess]()

    def start(server: ForkServer, *given: Any) -> ForkedProcess:
        try:
            return start_of(server, *given)
        except NoServer:
            if len(started) == 1:
                monkeypatch.setattr(ForkServer, "start", start_of)
                of_the_quicker.append(begin())
            raise

    monkeypatch.setattr(ForkServer, "start", start)
    assert begin().alive
    assert not of_the_quicker[0].wait(0.5), "it was ended with a server that was not dead"
