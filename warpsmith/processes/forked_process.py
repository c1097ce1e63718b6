"""Children that a fork server starts, from the worker's side."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from warpsmith.processes.fork_server import MESSAGE_BYTES, PID, STATUS

START_TIMEOUT_S = 60
BOOTSTRAP = (
    "import sys, json; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from importlib import import_module; import_module(a['module']).main(a['argument'])"
)
"""Program of every Python child; its argument holds `path`, `module` and the module's `argument`."""


class NoServer(Exception):
    """A fork server cannot be started, or has ended."""


@dataclass(frozen=True)
class ChildStart:
    """Start of a child: its module, argument, environment and folder."""

    module: str
    argument: Mapping[str, object] | Sequence[str]
    """Argument of the module's `main`."""
    environment: Mapping[str, str]
    private: str
    """Its working folder."""


class ForkedProcess:
    """A child of a fork server; has the part of `subprocess.Popen` that its users need.

    Args:
        pid: its process id, and that of its process group.
        status_fd: pipe on which the server tells how it ended; closed with the child's end.
    """

    def __init__(self, pid: int, status_fd: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status_fd = status_fd
        self._reading = threading.Lock()

    def poll(self) -> int | None:
        """The exit code if the child has ended, negative for a signal; else None."""
        with self._reading:
            self._read(0)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; returns the exit code.

        Raises:
            subprocess.TimeoutExpired: it still runs after `timeout` seconds.
        """
        with self._reading:
            self._read(timeout)
            if self.returncode is None:
                raise subprocess.TimeoutExpired("a forked child", timeout or 0)
            return self.returncode

    def terminate(self) -> None:
        """Ask the child to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End the child."""
        self._send(signal.SIGKILL)

    def _send(self, signum: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signum)

    def _read(self, timeout_s: float | None) -> None:
        if self.returncode is not None or not _readable(self._status_fd, timeout_s):
            return
        told = os.read(self._status_fd, STATUS.size)
        os.close(self._status_fd)
        # Without a word the server is gone, and its children are killed with it.
        self.returncode = STATUS.unpack(told)[0] if len(told) == STATUS.size else -signal.SIGKILL


class ForkServer:
    """A running fork server of this process.

    Args:
        environment: its whole environment, and that of its children.
        modules: modules that it imports before it forks.
        folder: its working folder.
    """

    def __init__(self, environment: Mapping[str, str], modules: Sequence[str], folder: str = "/") -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told = {
            "path": [p for p in sys.path if p],
            "module": "warpsmith.processes.fork_server",
            "argument": {"modules": list(modules)},
        }
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", BOOTSTRAP, json.dumps(told)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id, which is the parent of its children."""
        return self._process.pid

    def start(self, child: ChildStart, streams: Sequence[int]) -> ForkedProcess:
        """Fork a child.

        Args:
            streams: file descriptors that become its standard input, output and error.

        Raises:
            NoServer: the server has ended, or the request is too long for it.
        """
        text = json.dumps(vars(child)).encode()
        if len(text) > MESSAGE_BYTES:
            raise NoServer(f"a request of {len(text)} bytes")
        status_read, status_write = os.pipe()
        try:
            socket.send_fds(self._requests, [text], [*streams, status_write])
        except OSError as exc:
            os.close(status_read)
            raise NoServer(str(exc)) from exc
        finally:
            os.close(status_write)
        told = os.read(status_read, PID.size) if _readable(status_read, START_TIMEOUT_S) else b""
        if len(told) != PID.size:
            os.close(status_read)
            raise NoServer("the fork server has ended")
        return ForkedProcess(PID.unpack(told)[0], status_read)

    def close(self) -> None:
        """End the server, and with it every child that it has."""
        self._requests.close()
        self._process.kill()
        self._process.wait()


_lock = threading.Lock()
_servers: dict[tuple[object, ...], ForkServer] = {}
"""Fork servers by process id (a fork must not use its parent's), environment and modules."""


def start_forked(child: ChildStart, streams: Sequence[int], modules: Sequence[str]) -> ForkedProcess:
    """Fork a child from this process's server for that environment, which is started if there is none.

    Raises:
        NoServer: two servers in turn could not do it.
    """
    environment = {k: v for k, v in child.environment.items() if k not in _OWN_FOLDERS}
    key = _key(environment, modules)
    server = _server(key, environment, modules)
    with suppress(NoServer):
        return server.start(child, streams)
    with _lock:
        # Another thread may have replaced it already, and has children of the new one.
        if _servers.get(key) is server:
            del _servers[key]
    server.close()
    return _server(key, environment, modules).start(child, streams)


def start_server(environment: Mapping[str, str], modules: Sequence[str]) -> None:
    """Start this process's server for that environment, if there is none; returns before it can fork.

    Args:
        environment: that of its children.
    """
    with suppress(OSError):  # the first child says what is wrong
        _server(_key(environment, modules), environment, modules)


def _key(environment: Mapping[str, str], modules: Sequence[str]) -> tuple[object, ...]:
    return os.getpid(), tuple(sorted(environment.items())), tuple(modules), tuple(sys.path)


_OWN_FOLDERS = ("TMPDIR", "HOME")
"""Variables that differ from child to child."""


def _server(key: tuple[object, ...], environment: Mapping[str, str], modules: Sequence[str]) -> ForkServer:
    with _lock:
        if key not in _servers:
            _servers[key] = ForkServer(environment, modules)
        return _servers[key]


def _readable(fd: int, timeout_s: float | None) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))
