"""`warpsmith tune` as a process, the processes it leads to, and what it prints."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from testbed.deadlines import Deadline, comes_true

ROOT = Path(__file__).resolve().parents[2]


class Tuning:
    """One `warpsmith tune` of a job, in a folder of its own.

    Args:
        under: a program that runs it, with its arguments.
    """

    def __init__(
        self, folder: Path, job: dict[str, Any], under: tuple[str, ...] = (), **settings: str
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        (folder / "job.yaml").write_text(yaml.safe_dump(job))
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
        data = {"WARPSMITH_DATA_DIR": str(folder / "data"), "PYTHONPATH": str(ROOT)}
        self._said = folder / "said"
        with self._said.open("ab") as said:
            self.process = subprocess.Popen(
                [*under, sys.executable, "-m", "warpsmith", "tune", "job.yaml", "--out", "out"],
                cwd=folder,
                env=kept | data | settings,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What it has printed."""
        return self._said.read_text(errors="replace")

    def log(self) -> str:
        """The end of the service's log."""
        log = self.folder / "data" / "service.log"
        return log.read_text(errors="replace")[-3000:] if log.exists() else ""

    def wait_until(self, holds: Callable[[str], bool], seconds: float = 90) -> None:
        """Until what it printed is so."""
        deadline = Deadline(seconds)
        while not holds(self.said):
            assert self.process.poll() is None and not deadline.passed(), self.said + self.log()
            time.sleep(0.05)

    def family(self) -> list[int]:
        """Every process that it has led to."""
        return descendants(self.process.pid)

    def stopped_family(self) -> list[int]:
        """It and every process that it has led to, stopped: whoever ends or begins meanwhile is seen."""
        stopped: list[int] = []
        while fresh := {self.process.pid, *self.family()} - set(stopped):
            for pid in fresh:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
        return stopped

    def close(self) -> None:
        """SIGKILL to whatever is left."""
        left = [*self.family(), self.process.pid]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def descendants(pid: int) -> list[int]:
    """All descendants of a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(entry.parent.name))
    found, asked = [], [pid]
    while asked:
        children = parents.get(asked.pop(), [])
        found += children
        asked += children
    return found


def still_there(pids: Iterable[int]) -> list[str]:
    """Command lines of those that run."""
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if state != "Z":
            found.append(f"{pid} {words}")
    return found


def left_after(pids: Iterable[int], seconds: float) -> list[str]:
    """Of these processes, those that have not ended after so long."""
    comes_true(lambda: not still_there(pids), seconds, 0.1)
    return still_there(pids)
