"""What `confine` claims, tried in a child: files, the network, other processes, limits."""

import os
import platform
import secrets
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.deadlines import HANGS_S
from warpsmith.child_environment import child_environment
from warpsmith.sandbox.confinement import system_calls
from warpsmith.sandbox.confinement.confine import landlock_abi, memory_limit
from warpsmith.sandbox.confinement.system_calls import MACHINES
from warpsmith.sandbox.transport.process import ChildProcess

SECRET = secrets.token_hex(16)
DENIED = ("Permission denied", "Operation not permitted")
FILES = ("read", "list", "write", "create", "remove", "rename", "link", "parent-environ", "parent-memory")
SOCKETS = ("tcp", "udp", "unix", "netlink")
CALLS = (*SOCKETS, "io_uring", "kill-parent", "signal-thread-of-parent", "setsid", "setpgid")


def _attempts(names: Sequence[str], **options: object) -> dict[str, str]:
    """What a confined child could do; the environment of this process stands for its secrets."""
    came: dict[str, str] = _told(names, **options)["came"]
    return came


def _told(names: Sequence[str], **options: object) -> dict[str, Any]:
    argument: dict[str, object] = {"do": "confined", "attempts": list(names), "read": [], "write": []}
    argument |= {"forks": True, "calls": "native", "target": "/", "port": 0, **options}
    child = ChildProcess("tests.sandbox.children", argument, child_environment(None))
    try:
        reply, _ = child.channel.receive(time.monotonic() + HANGS_S)
    finally:
        child.kill()
    assert reply["confined"] is (landlock_abi() > 0)
    return reply


def test_this_kernel_has_landlock() -> None:
    """The file tests below mean nothing without it."""
    assert landlock_abi() >= 1


@pytest.mark.parametrize("attempt", FILES)
def test_files_outside_cannot_be_touched(attempt: str, tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    secret = other / "secret"
    secret.write_text(SECRET)
    target = str(other if attempt in ("list", "create") else secret)
    # A child that may list folders has more rights than another one, and none to their files.
    came = _attempts([attempt], target=target, write=[str(own)], list_root=attempt != "list")
    assert came[attempt] in DENIED
    assert secret.read_text() == SECRET
    assert list(other.iterdir()) == [secret]


def test_files_inside_can_be_used(tmp_path: Path) -> None:
    inside = tmp_path / "data"
    inside.write_text("words")
    came = _attempts(["read", "write"], target=str(inside), write=[str(tmp_path)])
    assert came == {"read": "done words", "write": "done 11"}
    came = _attempts(["read", "write", "remove"], target=str(inside), read=[str(tmp_path)])
    assert came["read"] == "done overwritten"
    # Writing begins with a truncation, which is a right of its own; removal is one of those of a folder.
    assert {came["write"], came["remove"]} <= set(DENIED)


def test_neither_the_network_nor_another_process_is_reached() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with server, datagrams:
        datagrams.bind(("127.0.0.1", server.getsockname()[1]))
        datagrams.setblocking(False)
        came = _attempts(CALLS, port=server.getsockname()[1])
        assert {name: words for name, words in came.items() if words not in DENIED} == {}
        with pytest.raises(BlockingIOError):
            datagrams.recv(16)


def test_the_same_attempts_succeed_without_the_filter() -> None:
    """Otherwise the test above could pass on a machine that allows none of this anyway."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        datagrams.settimeout(5)
        tried = ["udp", "unix", "setsid"]
        came = _attempts(tried, port=datagrams.getsockname()[1], calls="any")
        assert datagrams.recv(16) == b"secret"
    assert [came[name].split()[0] for name in tried] == ["done"] * 3


OF_OTHERS = (
    *("limits-of-parent", "cores-of-parent", "priority-of-parent", "signal-by-file"),
    *("outlive-parent", "mode", "times", "clone-sibling"),
)
OWN = (
    *("limit-self", "limit-self-by-id", "lower-self", "lower-self-by-id", "name-self", "open-file-flags"),
    "clone",
)


def test_every_refused_call_is_refused_by_its_number() -> None:
    """The kernel has another answer to most of these arguments."""
    machine = MACHINES[platform.machine()]
    numbers = machine.numbers(*system_calls.REFUSED)
    others = machine.numbers(system_calls.FOR_OTHERS, system_calls.FOR_OTHERS_BY_KIND)
    called = {name: [number, -1, -1, -1, -1, -1] for name, number in (numbers | others).items()}
    for forks in (True, False):
        came = _told([], numbers=called, forks=forks)["called"]
        assert {name: words for name, words in came.items() if words != "Operation not permitted"} == {}
        assert len(came) > 100


def test_other_processes_and_files_stay_as_they_are(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("words")
    before = own.stat()
    for forks in (True, False):
        came = _attempts(OF_OTHERS, target=str(own), write=[str(tmp_path)], forks=forks)
        assert {name: words for name, words in came.items() if words not in DENIED} == {}
    assert own.stat() == before


def test_what_is_refused_would_be_possible(tmp_path: Path) -> None:
    """Without the filter the same attempts succeed, and the same calls reach the kernel."""
    own = tmp_path / "own"
    own.write_text("words")
    machine = MACHINES[platform.machine()]
    reached = machine.numbers(
        system_calls.SHARED_OBJECTS, system_calls.PROCESS_FILES, system_calls.FILE_OWNERS
    )
    called = {name: [number, -2, -1, 0, 0, 0] for name, number in reached.items()}
    told = _told(OF_OTHERS, target=str(own), write=[str(tmp_path)], calls="any", numbers=called)
    assert {name: words for name, words in told["came"].items() if not words.startswith("done")} == {}
    assert "Operation not permitted" not in told["called"].values()


@pytest.mark.parametrize("forks", [True, False])
def test_what_concerns_the_child_itself_is_allowed(forks: bool) -> None:
    came = _attempts(OWN[:-1], forks=forks)
    assert {name: words for name, words in came.items() if not words.startswith("done")} == {}
    assert _attempts(["clone"], forks=forks)["clone"].startswith("done") is forks


@pytest.mark.parametrize("calls", ["native", "driver"])
def test_no_child_makes_a_namespace(calls: str) -> None:
    came = _attempts(["clone-user-namespace", "clone-mounts", "clone"], calls=calls)
    assert came["clone-user-namespace"] in DENIED
    assert came["clone-mounts"] in DENIED
    assert came["clone"] == "done cloned"


def test_a_driver_is_refused_only_what_none_needs(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("words")
    machine = MACHINES[platform.machine()]
    numbers = machine.numbers(*system_calls.FOR_NO_DRIVER)
    called = {name: [number, -1, -1, -1, -1, -1] for name, number in numbers.items()}
    tried = ["unix", "netlink", "setsid", "thread", "run", *OF_OTHERS, *OWN]
    told = _told(tried, calls="driver", numbers=called, target=str(own), write=[str(tmp_path)])
    assert set(told["called"].values()) == {"Operation not permitted"}
    refused = {name: words for name, words in told["came"].items() if not words.startswith("done")}
    assert refused == {"clone-sibling": "Operation not permitted"}


def test_a_child_that_may_not_fork_still_has_threads() -> None:
    came = _attempts(["fork", "run", "thread", "signal-self"], forks=False)
    assert came["fork"] in DENIED
    assert came["run"] in DENIED
    assert came["thread"] == "done ran"
    assert came["signal-self"].startswith("done")


def test_a_child_that_may_fork_can_run_programs() -> None:
    came = _attempts(["fork", "run"])
    assert came == {"fork": "done forked", "run": "done 0"}


def test_memory_is_limited_to_what_the_machine_has() -> None:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory_limit(1 << 20) == 1 << 20
    assert memory_limit(1 << 60) < whole
