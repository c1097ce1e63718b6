"""What `confine` claims, tried in a child: files, the network, other processes, limits."""

import os
import secrets
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from warpsmith.child_environment import child_environment
from warpsmith.sandbox.confine import landlock_abi, memory_limit
from warpsmith.sandbox.process import ChildProcess

SECRET = secrets.token_hex(16)
DENIED = ("Permission denied", "Operation not permitted")
FILES = ("read", "list", "write", "create", "remove", "rename", "link", "parent-environ", "parent-memory")
SOCKETS = ("tcp", "udp", "unix", "netlink")
CALLS = (*SOCKETS, "io_uring", "kill-parent", "signal-thread-of-parent", "setsid", "setpgid")


def _attempts(names: Sequence[str], **options: object) -> dict[str, str]:
    """What a confined child could do; the environment of this process stands for its secrets."""
    argument: dict[str, object] = {"do": "confined", "attempts": list(names), "read": [], "write": []}
    argument |= {"forks": True, "filter_calls": True, "target": "/", "port": 0, **options}
    child = ChildProcess("tests.sandbox.children", argument, child_environment(None))
    try:
        reply, _ = child.channel.receive(time.monotonic() + 20)
    finally:
        child.kill()
    assert reply["confined"] is (landlock_abi() > 0)
    came: dict[str, str] = reply["came"]
    return came


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
    came = _attempts([attempt], target=target, write=[str(own)])
    assert came[attempt] in DENIED
    assert secret.read_text() == SECRET
    assert list(other.iterdir()) == [secret]


def test_files_inside_can_be_used(tmp_path: Path) -> None:
    inside = tmp_path / "data"
    inside.write_text("words")
    came = _attempts(["read", "write"], target=str(inside), write=[str(tmp_path)])
    assert came == {"read": "done words", "write": "done 11"}
    came = _attempts(["read", "write"], target=str(inside), read=[str(tmp_path)])
    assert came["read"] == "done overwritten"
    assert came["write"] in DENIED


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
        came = _attempts(tried, port=datagrams.getsockname()[1], filter_calls=False)
        assert datagrams.recv(16) == b"secret"
    assert [came[name].split()[0] for name in tried] == ["done"] * 3


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
