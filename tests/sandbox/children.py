"""Children that tests start through `ChildProcess`: honest ones that tell what they see, and liars."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from warpsmith.sandbox.child import take_channel
from warpsmith.sandbox.confine import Confinement, confine
from warpsmith.sandbox.process import system_paths


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
            forks, filter_calls = argument["forks"], argument["filter_calls"]
            limits = Confinement(
                read=(*system_paths(), *read),
                write=write,
                data_bytes=argument.get("data_bytes"),
                forks=forks,
                filter_calls=filter_calls,
            )
            held = confine(limits)
            channel.send({"confined": held, "came": {n: _try(n, argument) for n in argument["attempts"]}})
        case unknown:
            raise ValueError(unknown)


def _try(name: str, argument: dict[str, Any]) -> str:
    """What came of one attempt: the name of the error, or `done` with what it gave."""
    try:
        return f"done {ATTEMPTS[name](argument)}"
    except OSError as exc:
        return type(exc).__name__ if exc.errno is None else os.strerror(exc.errno)


def _syscall(number: int, *values: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(number, *values))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


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
_TGKILL = {"x86_64": 234, "aarch64": 131}
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
    "oom-score": lambda a: Path("/proc/self/oom_score_adj").read_text().strip(),
}
