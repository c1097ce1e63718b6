"""How the service scales on the replay back end: workers, overhead of a trial, clients that poll.

Run: python -m benchmarks.service.scale [--workers 1,2,4,8] [--trials 200] [--out FILE]

Two ways to use n workers are measured: one job (one study), and n jobs at once.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import select

from benchmarks.service.fleet import Fleet
from benchmarks.service.replay_jobs import replay_job, write_recording
from benchmarks.service.servers import PostgresProcess, private_redis
from db.tables import TaskRow
from warpsmith import __version__
from warpsmith.domain.state import TaskKind

TRIAL_S = 0.1
POLL_CLIENTS = 100
POLL_S = 10.0


def searching(fleet: Fleet, jobs: list[str]) -> tuple[int, float]:
    """Trials of these jobs, and seconds from the first slice's start to the last one's end."""
    with fleet.database.read() as session:
        query = select(TaskRow).where(TaskRow.job_id.in_(jobs), TaskRow.kind == TaskKind.SLICE)
        slices = session.scalars(query).all()
    began = min(t.started_at for t in slices if t.started_at is not None)
    ended = max(t.finished_at for t in slices if t.finished_at is not None)
    return sum(int((t.result or {})["trials"]) for t in slices), (ended - began).total_seconds()


def run_jobs(fleet: Fleet, count: int, trials: int, searcher: str, limit_s: float = 600) -> list[str]:
    """Submit and wait until all are done."""
    key = time.monotonic_ns()
    jobs = [
        fleet.submit(
            replay_job(f"scale {n}", searcher=searcher, budget={"trials": trials, "seconds": 3600}, seed=n),
            f"{key}-{n}",
        )
        for n in range(count)
    ]
    deadline = time.monotonic() + limit_s
    for job in jobs:
        while (state := _status(fleet, job)["state"]) != "done":
            if state in ("failed", "cancelled") or time.monotonic() > deadline:
                raise RuntimeError(f"job {job} is {state}: {_status(fleet, job)['detail']}")
            time.sleep(0.2)
    return jobs


async def poll(fleet: Fleet, job: str) -> dict[str, float]:
    """Clients that ask for the status again and again."""
    latencies: list[float] = []
    end = time.monotonic() + POLL_S

    async def client(http: httpx2.AsyncClient) -> None:
        while time.monotonic() < end:
            began = time.monotonic()
            (await http.get(f"/v1/jobs/{job}")).raise_for_status()
            latencies.append(time.monotonic() - began)

    limits = httpx2.Limits(max_connections=POLL_CLIENTS)
    async with httpx2.AsyncClient(
        base_url=fleet.url, headers=fleet.headers, limits=limits, timeout=30
    ) as http:
        await asyncio.gather(*(client(http) for _ in range(POLL_CLIENTS)))
    latencies.sort()
    return {
        "clients": POLL_CLIENTS,
        "polls_per_s": round(len(latencies) / POLL_S, 1),
        "median_ms": round(statistics.median(latencies) * 1000, 1),
        "p99_ms": round(latencies[int(len(latencies) * 0.99)] * 1000, 1),
    }


def run(folder: Path, workers: list[int], trials: int) -> dict[str, Any]:
    """All figures. Postgres syncs to disk, as a service's does."""
    recordings = write_recording(folder / "recordings")
    rows: list[dict[str, Any]] = []
    with PostgresProcess(durable=True) as postgres, private_redis() as redis:
        for count in workers:
            with Fleet(
                folder / f"fleet{count}", recordings, postgres, redis, devices=count, trial_s=TRIAL_S
            ) as fleet:
                for searcher in ("random", "default"):
                    for jobs in sorted({1, count}):
                        done, seconds = searching(fleet, run_jobs(fleet, jobs, trials, searcher))
                        rows.append(_row(count, jobs, searcher, done, seconds))
                        print(rows[-1], flush=True)
                if count == workers[0]:
                    polls = asyncio.run(poll(fleet, run_jobs(fleet, 1, 5, "random")[0]))
                    print(polls, flush=True)
    return {"rows": rows, "polls": polls}


def _row(workers: int, jobs: int, searcher: str, trials: int, seconds: float) -> dict[str, Any]:
    ideal = trials * TRIAL_S / workers
    used = min(workers, jobs)
    return {
        "workers": workers,
        "jobs at once": jobs,
        "searcher": searcher,
        "trials": trials,
        "seconds": round(seconds, 2),
        "efficiency": round(ideal / seconds, 3),
        "overhead_ms_per_trial": round((seconds * used - trials * TRIAL_S) / trials * 1000, 2),
    }


def _status(fleet: Fleet, job: str) -> dict[str, Any]:
    found: dict[str, Any] = fleet.get(f"/v1/jobs/{job}").json()
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="warpsmith-scale-") as folder:
        figures = run(Path(folder), [int(n) for n in options.workers.split(",")], options.trials)
    record = {
        "what": "workers and overhead at 100 ms a trial, replay back end; 100 clients polling",
        "warpsmith": __version__,
        "cores": os.cpu_count(),
        "load_average_before": round(load, 1),
        **figures,
    }
    print(json.dumps(record, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
