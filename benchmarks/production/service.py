"""One embedded service for a whole run, and what its database says of a job's stages."""

import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from warpsmith.errors import Unavailable
from warpsmith.extensions.clients.client import Client

READY_S = 60.0
STOP_S = 30.0
STAGES = {
    "baseline": "baseline",
    "check_cases": "baseline",
    "slice": "search",
    "tool": "tools",
    "verify": "verification",
}
"""Stage of a job by kind of task; what agents and profilers do counts as `other`."""


@contextmanager
def embedded_service(data: Path, settings: Mapping[str, str] | None = None) -> Iterator[Client]:
    """A service with a worker of its own on this machine.

    Args:
        data: its folder; the log is `service.log` there.
        settings: further variables of its environment.

    Raises:
        Unavailable: it did not start.
    """
    data.mkdir(parents=True, exist_ok=True)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    with (data / "service.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "warpsmith", "serve", "--embedded", "--port", str(port)],
            env=os.environ | {"WARPSMITH_DATA_DIR": str(data)} | dict(settings or {}),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        with Client(f"http://127.0.0.1:{port}") as client:
            deadline = time.monotonic() + READY_S
            while lacking := client.ready():
                if time.monotonic() > deadline or process.poll() is not None:
                    raise Unavailable(f"the service did not start: {lacking}; see {data / 'service.log'}")
                time.sleep(0.1)
            yield client
    finally:
        process.terminate()
        process.wait(STOP_S)


def stage_seconds(data: Path, job: str) -> dict[str, float]:
    """Seconds of a job's tasks by stage."""
    found = dict.fromkeys((*STAGES.values(), "other"), 0.0)
    for file in data.rglob("warpsmith.db"):
        with closing(sqlite3.connect(file)) as database:
            rows = database.execute(
                "SELECT kind, started_at, finished_at FROM task WHERE job_id = ? AND finished_at IS NOT NULL",
                (job,),
            ).fetchall()
        for kind, began, ended in rows:
            if began is not None:
                took = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
                found[STAGES.get(kind, "other")] += took.total_seconds()
    return {stage: round(seconds, 1) for stage, seconds in found.items()}
