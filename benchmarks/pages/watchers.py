"""Memory of an API process, and statements of its database, while many watch one job.

Run: python -m benchmarks.pages.watchers --minutes 60 --out benchmarks/results/pages
"""

import argparse
import json
import statistics
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import text

from benchmarks.pages.filled import add_running_job, more_trials, service_without_worker
from benchmarks.provenance import plain_command, record_folder
from db.engine import Database
from db.repositories.jobs import JobRepository
from testbed.service import Service
from warpsmith.commit import commit_name

WATCHERS = 100
EVERY_S = 60.0
TRIALS = 500


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--watchers", type=int, default=WATCHERS)
    parser.add_argument("--out", type=record_folder, required=True)
    asked = parser.parse_args()
    with service_without_worker() as (service, database):
        record = watch(service, database, asked.minutes, asked.watchers)
    assert record["fewest_messages"] > record["writes"] / 2, "a watcher has stopped listening"
    path = asked.out / "watchers.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({k: v for k, v in record.items() if k != "samples"}, indent=1))
    return 0


def watch(service: Service, database: Database, minutes: float, watchers: int) -> dict[str, Any]:
    """Let many watch a job whose search goes on, for some minutes; what it cost."""
    with database.write() as session:
        job_id, candidate_id = add_running_job(session, TRIALS)
    api = service.processes[0].pid
    stop = threading.Event()
    heard = [0] * watchers
    threads = [
        threading.Thread(target=listen, args=(service, job_id, stop, heard, n)) for n in range(watchers)
    ]
    before_mb = memory_mb(api)
    for thread in threads:
        thread.start()
    samples = []
    writes = 0
    until_s, number, since, sampled_s = (
        time.monotonic() + 60 * minutes,
        TRIALS,
        transactions(database),
        time.monotonic(),
    )
    while time.monotonic() < until_s:
        time.sleep(1)
        with database.write() as session:
            more_trials(session, job_id, candidate_id, number, 3)
        number += 3
        writes += 1
        passed_s = time.monotonic() - sampled_s
        if passed_s >= EVERY_S:
            now = transactions(database)
            rate = (now - since) / passed_s
            samples.append({"memory_mb": memory_mb(api), "transactions_per_s": round(rate, 2)})
            since, sampled_s = now, time.monotonic()
    with database.write() as session:
        JobRepository(session).cancel(job_id)
    stop.set()
    for thread in threads:
        thread.join(timeout=60)
    memories = [s["memory_mb"] for s in samples]
    return {
        "commit": commit_name(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": plain_command("python -m " + "benchmarks.pages.watchers " + " ".join(sys.argv[1:])),
        "minutes": minutes,
        "watchers": watchers,
        "memory_before_mb": before_mb,
        "memory_first_mb": memories[0] if memories else None,
        "memory_last_mb": memories[-1] if memories else None,
        "memory_most_mb": max(memories, default=None),
        "writes": writes,
        "messages_per_watcher": statistics.median(heard),
        "fewest_messages": min(heard),
        "transactions_per_s": statistics.median([s["transactions_per_s"] for s in samples] or [0.0]),
        "says": "transactions of the whole database: one a second is the search's",
        "samples": samples,
    }


def listen(service: Service, job_id: str, stop: threading.Event, heard: list[int], number: int) -> None:
    """Watch a job, over all reconnections."""
    last: str | None = None
    with httpx2.Client(base_url=service.url, headers=service.headers, timeout=60) as http:
        while not stop.is_set():
            headers = {} if last is None else {"Last-Event-ID": last}
            try:
                with http.stream("GET", f"/v1/jobs/{job_id}/stream", headers=headers) as response:
                    if response.status_code == 204:
                        return
                    for line in response.iter_lines():
                        heard[number] += line.startswith("data:")
                        last = line.removeprefix("id: ") if line.startswith("id:") else last
            except httpx2.HTTPError:
                time.sleep(1)


def memory_mb(pid: int) -> float:
    """Resident memory of a process, MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return round(int(line.split()[1]) / 1024, 1)


def transactions(database: Database) -> int:
    """Transactions of the database so far."""
    query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    with database.single() as connection:
        return int(connection.execute(text(query)).scalar_one())


if __name__ == "__main__":
    sys.exit(main())
