"""Starting and ending children: an empty environment, a process group of their own, two pipes."""

import contextlib
import fcntl
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from warpsmith.errors import ChildDied
from warpsmith.processes.forked_process import BOOTSTRAP, ChildStart, ForkedProcess, NoServer, start_forked
from warpsmith.processes.stop_children import register, require_wanted
from warpsmith.sandbox.transport.frames import MAX_BLOB_BYTES, Channel

_STDERR_BYTES = 4096
END_S = 30.0
"""Seconds that a killed child may take to end; it is left to itself then."""
PIPE_BYTES = 1 << 20
"""Room of a pipe, as much as Linux grants anybody: with the usual 64 KiB, the two ends of a large array take
turns far more often."""


log = logging.getLogger(__name__)


def note_confinement(reply: Mapping[str, object]) -> None:
    """Log once that children on this machine may read files, because Landlock is missing."""
    if reply.get("confined") is False:
        _warn_unconfined()


@cache
def _warn_unconfined() -> None:
    log.warning("this kernel has no Landlock (Linux 5.13): children may read what this user may read")


class ChildProcess:
    """A child that talks over `channel` and writes only below `private`.

    Args:
        module: its `main(argument)` is called with the pipes on descriptors 0 and 1.
        argument: passed to `main`.
        environment: its whole environment; nothing is inherited.
        under: a program that runs the child and its arguments; `{private}` in them is the private folder.
        preload: modules that its fork server has imported; empty: it starts as an interpreter of its own.

    Raises:
        LeaseLost: the work for which it is started was recalled.
    """

    def __init__(
        self,
        module: str,
        argument: Mapping[str, object],
        environment: Mapping[str, str],
        max_reply_bytes: int = MAX_BLOB_BYTES,
        under: Sequence[str] = (),
        preload: Sequence[str] = (),
    ) -> None:
        require_wanted()
        self.private = Path(tempfile.mkdtemp(prefix="warpsmith-"))
        self._stderr = (self.private / "stderr").open("w+b")
        own = {"TMPDIR": str(self.private), "HOME": str(self.private)}
        start = ChildStart(
            module, {**argument, "private": str(self.private)}, {**environment, **own}, str(self.private)
        )
        their_input, write_fd = os.pipe()
        read_fd, their_output = os.pipe()
        for fd in (write_fd, read_fd):
            with contextlib.suppress(OSError):  # this user's share of pipes is taken
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            streams = (their_input, their_output, self._stderr.fileno())
            self._process = _start(start, streams, under, preload)
        finally:
            os.close(their_input)
            os.close(their_output)
        self.channel = Channel(read_fd, write_fd, max_reply_bytes)
        self._closed = False
        self._ending = threading.Lock()
        register(self)

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    def explain(self, died: ChildDied) -> ChildDied:
        """`died` extended by how the process ended and the end of its output; the child is killed.

        Raises:
            LeaseLost: the child was recalled and did not die by itself.
        """
        cause, detail = died.cause, died.detail
        if cause == "exit":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            code = self._process.returncode
            if code is not None and code < 0:
                cause, detail = "signal", f"ended by {signal.Signals(-code).name}"
            elif code is not None:
                detail = f"ended with exit code {code}"
        tail = self.tail()
        self.kill()
        require_wanted()
        return ChildDied(cause, f"{detail}; it printed: {tail}" if tail else detail)

    def wait(self, timeout_s: float) -> bool:
        """True if the child ends by itself within the time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL to the whole group; removes the private folder. May be called twice."""
        with self._ending:
            if self._closed:
                return
            self._closed = True
            self._kill_group()
            self._wait_for_end()
            self.channel.close()
            self._stderr.close()
        shutil.rmtree(self.private, ignore_errors=True)

    def _wait_for_end(self) -> None:
        # A killed process ends when the driver lets it, and whoever tells of its end may stand still itself.
        if not self.wait(END_S):
            log.error("process %d was killed and has not ended within %g s", self._process.pid, END_S)

    def interrupt(self) -> None:
        """SIGKILL to the whole group. The thread that talks to the child finds it dead and cleans up."""
        self._signal_group(signal.SIGKILL)

    def suspend(self) -> None:
        """Make the whole group stand still until `wake`; it can be killed all the same."""
        self._signal_group(signal.SIGSTOP)

    def wake(self) -> None:
        """Let the group go on."""
        self._signal_group(signal.SIGCONT)

    def _signal_group(self, number: signal.Signals) -> None:
        with self._ending:
            if not self._closed:
                self._kill_group(number)

    def _kill_group(self, number: signal.Signals = signal.SIGKILL) -> None:
        # Until the process is closed, the group keeps this id, even if its leader was waited for.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def tail(self) -> str:
        """The end of the child's output."""
        self._stderr.flush()
        size = os.fstat(self._stderr.fileno()).st_size
        data = os.pread(self._stderr.fileno(), _STDERR_BYTES, max(0, size - _STDERR_BYTES))
        return data.decode(errors="replace").strip()[-500:]


def _start(
    start: ChildStart, streams: Sequence[int], under: Sequence[str], preload: Sequence[str]
) -> "subprocess.Popen[bytes] | ForkedProcess":
    if preload and not under:
        with contextlib.suppress(NoServer):
            return start_forked(start, streams, preload)
    told = {"path": [p for p in sys.path if p], "module": start.module, "argument": start.argument}
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        [
            *(word.replace("{private}", start.private) for word in under),
            *(sys.executable, "-I", "-c", BOOTSTRAP, json.dumps(told)),
        ],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=start.private,
        env=start.environment,
        start_new_session=True,
    )


def system_paths() -> tuple[Path, ...]:
    """Paths that every Python child must be able to read: libraries, the interpreter, its packages."""
    fixed = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/OpenCL", "/etc/alternatives"]
    fixed += ["/sys", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/dev/null", "/dev/urandom"]
    package = Path(__file__).resolve().parents[2]
    # Other folders of the path are checkouts or working folders, which may contain settings.
    packages = [p for p in sys.path if p and any(Path(p).glob("*.dist-info"))]
    return (
        *(Path(p) for p in fixed),
        Path(sys.prefix),
        Path(sys.base_prefix),
        package,
        *(Path(p) for p in packages),
    )
