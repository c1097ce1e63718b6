"""Children that tests start through `ChildProcess`: honest ones that tell what they see, and liars."""

import ctypes
import fcntl
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from warpsmith.sandbox.confinement.confine import Confinement, SyscallFilter, confine
from warpsmith.sandbox.transport.child import take_channel
from warpsmith.sandbox.transport.process import system_paths


def main(argument: dict[str, Any]) -> None:
    """Do what `argument["do"]` names."""
    channel = take_channel()
    match argument["do"]:
        case "environment":
            channel.send(dict(os.environ))
        case "draw":
            channel.send({"drawn": float(np.random.random()), "plain": random.random()})
        case "lie":
            while True:
                channel.receive()
                channel.send(argument["reply"], [b"\0" * n for n in argument.get("blobs", ())])
        case "raw":
            os.write(channel._write_fd, bytes.fromhex(argument["bytes"]))
            channel.receive()
        case "confined":
            read, write = (tuple(Path(p) for p in argument[k]) for k in ("read", "write"))
            limits = Confinement(
                read=(*system_paths(), *read),
                write=write,
                list_root=argument.get("list_root", False),
                data_bytes=argument.get("data_bytes"),
                forks=argument["forks"],
                calls=SyscallFilter(argument["calls"]),
            )
            held = confine(limits)
            came = {n: _try(n, argument) for n in argument["attempts"]}
            called = {n: _call(*numbers) for n, numbers in argument.get("numbers", {}).items()}
            channel.send({"confined": held, "came": came, "called": called})
        case unknown:
            raise ValueError(unknown)


def _try(name: str, argument: dict[str, Any]) -> str:
    """What came of one attempt: the name of the error, or `done` with what it gave."""
    try:
        return f"done {ATTEMPTS[name](argument)}"
    except OSError as exc:
        return type(exc).__name__ if exc.errno is None else os.strerror(exc.errno)


def _call(number: int, *values: int) -> str:
    """What a system call gave: the name of the error, or `done`."""
    try:
        _syscall(number, *values)
    except OSError as exc:
        return os.strerror(exc.errno or 0)
    return "done"


def _syscall(number: int, *values: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(number, *values))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _prctl(option: int, value: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return 0


def _clone(flags: int) -> str:
    """A process that ends at once, made as `flags` say."""
    pid = _syscall(_CLONE[os.uname().machine], flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if not flags:
        os.waitpid(pid, 0)
    return "cloned"


def _lower(pid: int) -> str:
    """Set priorities and cores of a process to what they are."""
    os.sched_setaffinity(pid, os.sched_getaffinity(pid))
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
    return "lowered"


def _signal_by_file() -> int:
    """Have the parent signalled when a pipe can be read, which it never can."""
    reading, _ = os.pipe()
    return fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid())


def _thread() -> str:
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append("ran"))
    thread.start()
    thread.join()
    return said[0]


def _send_udp(argument: dict[str, Any]) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"secret", ("127.0.0.1", argument["port"]))


def _connect(argument: dict[str, Any]) -> str:
    with socket.create_connection(("127.0.0.1", argument["port"]), timeout=2):
        return "connected"


def _read_through_link(argument: dict[str, Any]) -> str:
    link = Path(argument["write"][0], "link")
    link.symlink_to(argument["target"])
    return link.read_text()


def _fork() -> str:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "forked"


def _leave_group() -> str:
    """As a daemon would: a group leader may not, its children may."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os._exit(0)
        except OSError as exc:
            os._exit(exc.errno or 1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))
    return "left"


def _allocate(size_bytes: int) -> str:
    """Memory that is never written to costs nothing."""
    try:
        return f"{len(bytearray(size_bytes))} bytes"
    except MemoryError:
        return "too much"


_IO_URING_SETUP = 425
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE_PARENT, _CLONE_NEWUSER, _CLONE_NEWNS = 0x8000, 0x10000000, 0x20000
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_TGKILL = {"x86_64": 234, "aarch64": 131}
_NAME = ctypes.create_string_buffer(b"renamed")
ATTEMPTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "read": lambda a: Path(a["target"]).read_text(),
    "list": lambda a: [p.name for p in Path(a["target"]).iterdir()],
    "write": lambda a: Path(a["target"]).write_text("overwritten"),
    "create": lambda a: Path(a["target"], "new").write_text("new"),
    "remove": lambda a: Path(a["target"]).unlink(),
    "rename": lambda a: Path(a["target"]).rename(a["target"] + ".moved"),
    "link": _read_through_link,
    "parent-environ": lambda a: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "parent-memory": lambda a: os.close(os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY)),
    "tcp": _connect,
    "udp": _send_udp,
    "unix": lambda a: socket.socket(socket.AF_UNIX).fileno(),
    "netlink": lambda a: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).fileno(),
    "io_uring": lambda a: _syscall(_IO_URING_SETUP, 8, 0),
    "kill-parent": lambda a: os.kill(os.getppid(), 0),
    "signal-thread-of-parent": lambda a: _syscall(_TGKILL[os.uname().machine], os.getppid(), os.getppid(), 0),
    "signal-self": lambda a: signal.raise_signal(signal.SIGCHLD),
    "setsid": lambda a: _leave_group(),
    "setpgid": lambda a: os.setpgid(0, 0),
    "fork": lambda a: _fork(),
    "run": lambda a: subprocess.run([sys.executable, "-I", "-c", ""], check=True).returncode,
    "thread": lambda a: _thread(),
    "allocate": lambda a: _allocate(2 << 30),
    "clone": lambda a: _clone(0),
    "clone-user-namespace": lambda a: _clone(_CLONE_NEWUSER),
    "clone-mounts": lambda a: _clone(_CLONE_NEWUSER | _CLONE_NEWNS),
    "clone-sibling": lambda a: _clone(_CLONE_PARENT),
    "outlive-parent": lambda a: _prctl(_PR_SET_PDEATHSIG, 0),
    "name-self": lambda a: _prctl(_PR_SET_NAME, ctypes.addressof(_NAME)),
    "mode": lambda a: Path(a["target"]).chmod(0o777),
    "times": lambda a: os.utime(a["target"], (1, 1)),
    "limit-self": lambda a: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512)),
    "limit-self-by-id": lambda a: resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (256, 256)),
    "limits-of-parent": lambda a: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE),
    "lower-self": lambda a: _lower(0),
    "lower-self-by-id": lambda a: _lower(os.getpid()),
    "cores-of-parent": lambda a: os.sched_setaffinity(os.getppid(), os.sched_getaffinity(os.getppid())),
    "priority-of-parent": lambda a: os.setpriority(
        os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid())
    ),
    "signal-by-file": lambda a: _signal_by_file(),
    "open-file-flags": lambda a: fcntl.fcntl(0, fcntl.F_GETFL),
    "oom-score": lambda a: Path("/proc/self/oom_score_adj").read_text().strip(),
}
