"""Jobs on an embedded service (one command, SQLite, no broker) whose processes are killed at random.

Run: python -m benchmarks.service.chaos_embedded [--jobs 300] [--every-s 5] [--out FILE]

The API's process, everything at once, or one process below it gets SIGKILL, and what a user started is
started again. Default settings, but for the limits of a client. A recovery ends when each task that ran at
the kill runs again or has ended.
"""

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from benchmarks.provenance import plain_command
from benchmarks.service.chaos import TERMINAL
from benchmarks.service.faults import descendants
from benchmarks.service.fleet import Program
from benchmarks.service.verdict import verdict
from db.engine import Database
from db.tables import JobRow, TaskRow
from testbed.plain_http import NO_TLS
from testbed.recordings import replay_job, write_recording
from testbed.servers import free_port
from warpsmith.commit import commit_name
from warpsmith.domain.state import TaskState

READY_S = 60.0
LIMITS = {
    "WARPSMITH_KEY_REQUESTS_PER_S": "1000000",
    "WARPSMITH_KEY_SUBMITS_PER_MINUTE": "1000000",
    "WARPSMITH_KEY_OPEN_JOBS": "1000000",
}


class Embedded:
    """`warpsmith serve`, and what kills it."""

    def __init__(self, folder: Path, trial_s: float, seed: int) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
        environment = {
            **kept,
            **LIMITS,
            "WARPSMITH_DATA_DIR": str(folder),
            "WARPSMITH_REPLAY_DIR": str(write_recording(folder / "recordings")),
            "WARPSMITH_REPLAY_TRIAL_S": str(trial_s),
            "WARPSMITH_REUSE_TRIALS_S": "0",
            "WARPSMITH_REMEMBERS": "false",
        }
        command = [sys.executable, "-m", "warpsmith", "serve", "--port", str(port)]
        self.program = Program("serve", command, environment, folder / "serve.log")
        self.database = Database(f"sqlite:///{folder.absolute() / 'warpsmith.db'}")
        self.faults: Counter[str] = Counter()
        self.recoveries_s: list[float] = []
        self._random = random.Random(seed)

    def start(self) -> None:
        """Start it, and wait until it says that it is ready.

        Raises:
            TimeoutError: it does not.
        """
        self.program.start()
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            with suppress(httpx2.HTTPError):
                if httpx2.get(f"{self.url}/readyz", timeout=2, verify=NO_TLS).status_code == 200:
                    return
            time.sleep(0.1)
        raise TimeoutError(f"the service does not come up\n{self.program.log.read_text()[-3000:]}")

    def submit(self, job: dict[str, Any], key: str) -> str:
        """Post a job until it is accepted."""
        while True:
            with suppress(httpx2.HTTPError):
                headers = {"Idempotency-Key": key}
                reply = httpx2.post(
                    f"{self.url}/v1/jobs", json=job, headers=headers, timeout=15, verify=NO_TLS
                )
                if reply.status_code == 202:
                    return str(reply.json()["id"])
                assert reply.status_code >= 500, reply.text
            time.sleep(0.1)

    def disturb(self) -> None:
        """One fault; returns when work goes on."""
        kinds: list[Callable[[], None]] = [self._kill_serve, self._kill_everything, self._kill_one_process]
        kind = self._random.choice(kinds)
        running = {task: token for task, token in self._open().items() if token}
        killed_at = time.monotonic()
        kind()
        self.faults[kind.__name__.removeprefix("_")] += 1
        if self.program.pid == 0:
            time.sleep(self._random.uniform(0, 1))
            self.start()
        while running and time.monotonic() < killed_at + READY_S:
            now = self._open()
            running = {task: token for task, token in running.items() if now.get(task) in ("", token)}
            time.sleep(0.05)
        self.recoveries_s.append(time.monotonic() - killed_at)

    def ended(self) -> int:
        """Jobs that have ended."""
        with self.database.read() as session:
            return session.scalar(select(func.count()).where(JobRow.state.in_(TERMINAL))) or 0

    def _open(self) -> dict[str, str]:
        """Tokens of tasks that have begun and not ended; "" where a task waits to be run again."""
        while True:
            with suppress(DBAPIError), self.database.read() as session:
                query = select(TaskRow.id, TaskRow.lease_token).where(
                    TaskRow.state.in_((TaskState.RUNNING, TaskState.QUEUED)), TaskRow.attempt > 0
                )
                return {row[0]: row[1] or "" for row in session.execute(query)}

    def _kill_serve(self) -> None:
        self.program.kill()

    def _kill_everything(self) -> None:
        for pid in [self.program.pid, *descendants(self.program.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.program.kill()

    def _kill_one_process(self) -> None:
        found = descendants(self.program.pid)
        if found:
            with suppress(ProcessLookupError):
                os.kill(self._random.choice(found), signal.SIGKILL)


def run(
    folder: Path, *, jobs: int, every_s: float, seed: int, limit_s: float, trials: int, trial_s: float
) -> dict[str, Any]:
    """The record of one run."""
    service = Embedded(folder, trial_s, seed)
    service.start()
    accepted: list[str] = []

    def submit_all() -> None:
        budget = {"trials": trials, "seconds": 3600}
        for n in range(jobs):
            job = replay_job(f"job {n}", budget=budget, seed=n, strategy="search")
            accepted.append(service.submit(job, f"key-{n}"))
            if n % 10 == 0:
                assert service.submit(job, f"key-{n}") == accepted[-1], "a key brought another job"

    submitting = threading.Thread(target=submit_all)
    began = time.monotonic()
    submitting.start()
    try:
        while service.ended() < jobs and time.monotonic() < began + limit_s:
            time.sleep(every_s)
            service.disturb()
            print(f"{service.ended()} of {jobs} jobs have ended, {dict(service.faults)}", flush=True)
        submitting.join()
        seconds = time.monotonic() - began
        while service.ended() < jobs and time.monotonic() < began + seconds + 60:
            time.sleep(0.2)
        found = verdict(service.database, accepted)
    finally:
        service.program.stop()
        service.database.dispose()
    recoveries = sorted(service.recoveries_s)
    return {
        "seconds": round(seconds, 1),
        "trial_s": trial_s,
        "seed": seed,
        "faults": dict(service.faults),
        "recovery_median_s": round(statistics.median(recoveries), 1),
        "recovery_max_s": round(recoveries[-1], 1),
        **found,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--every-s", type=float, default=5.0)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--trial-s", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=3000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warpsmith-chaos-") as folder:
        found = run(
            Path(folder),
            jobs=options.jobs,
            every_s=options.every_s,
            seed=options.seed,
            limit_s=options.limit_s,
            trials=options.trials,
            trial_s=options.trial_s,
        )
    command = plain_command("python -m benchmarks.service.chaos_embedded " + " ".join(sys.argv[1:]))
    what = "jobs on an embedded service under SIGKILL, replay back end"
    record = {"what": what, "commit": commit_name(), "command": command, "cores": os.cpu_count(), **found}
    print(json.dumps(record, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    if found["failures"]:
        raise SystemExit("; ".join(found["failures"]))


if __name__ == "__main__":
    main()
