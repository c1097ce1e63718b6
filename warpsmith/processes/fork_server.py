"""Forks children from a process that has already imported what they need. Runs in that process.

An interpreter with NumPy and a driver's bindings takes half a second of a core to start; a fork of it takes
milliseconds. The server never sees a request of its children, a source or a kernel: it imports, then waits.
"""

import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from warpsmith.processes.quick_imports import without_collector

MESSAGE_BYTES = 1 << 17
PID = struct.Struct("=q")
STATUS = struct.Struct("=i")
_PR_SET_NAME = 15
_FILES = 4
"""File descriptors of a request: the child's standard input, output and error, and its status pipe."""


def main(argument: dict[str, Any]) -> None:
    """Fork a child for each message on descriptor 0 until the other end is closed."""
    _name_process("fork_server")
    # Another module's error becomes the child's own, where somebody reads it.
    with without_collector():
        for name in argument["modules"]:
            with suppress(ImportError):
                import_module(name)
    _ChildStarter(socket.socket(fileno=0)).serve()


class _ChildStarter:
    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._statuses: dict[int, int] = {}
        """The status pipe of each running child, by process id."""
        self._woken, self._wake = os.pipe()
        for fd in (self._woken, self._wake):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._requests, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._woken in ready:
                os.read(self._woken, MESSAGE_BYTES)
                self._reap()
            if self._requests.fileno() in ready:
                text, files, *_ = socket.recv_fds(self._requests, MESSAGE_BYTES, _FILES)
                if not text:
                    return
                self._fork(json.loads(text), files)

    def _fork(self, request: dict[str, Any], files: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            self._become(request, files)
        *streams, status = files
        self._statuses[pid] = status
        for fd in streams:
            os.close(fd)

    def _reap(self) -> None:
        """Tell of each child that has ended how it did."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                pid, status = found
                pipe = self._statuses.pop(pid)
                with suppress(BrokenPipeError):
                    os.write(pipe, STATUS.pack(os.waitstatus_to_exitcode(status)))
                os.close(pipe)

    def _become(self, request: dict[str, Any], files: list[int]) -> NoReturn:
        """Turn this fork into the child."""
        code = 1
        try:
            # Its group must exist before anybody knows its number and may want to end it.
            os.setsid()
            *streams, status = files
            os.write(status, PID.pack(os.getpid()))
            self._forget()
            for target, fd in enumerate(streams):
                os.dup2(fd, target)
            for fd in files:
                os.close(fd)
            os.chdir(request["private"])
            os.environ.update(request["environment"])  # the rest is the server's
            tempfile.tempdir = None
            _name_process(request["module"].rpartition(".")[2])
            _seed_again()
            import_module(request["module"]).main(request["argument"])
            code = 0
        except SystemExit as asked:
            code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
        finally:
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _forget(self) -> None:
        """Close what belongs to the server alone."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._requests.detach()  # descriptor 0, which is about to be replaced
        for fd in (self._woken, self._wake, *self._statuses.values()):
            os.close(fd)


def _seed_again() -> None:
    """Have NumPy's global generator differ from child to child, as after a start; `random` does so itself."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _name_process(name: str) -> None:
    """Show `name` for this process in `ps` and `top`: its first 15 bytes."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)
