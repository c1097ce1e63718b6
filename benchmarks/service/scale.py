"""How the service scales on the replay back end: workers, overhead of a trial, clients that poll.

Run: python -m benchmarks.service.scale [--workers 1,2,4,8] [--trials 100] [--long 10000] [--queued 1000]
[--out FILE]

- One job (one study) on n workers at 100 ms a trial, with a share of trials for each worker. Overhead is
  all that the n workers together spent beside trials, per trial: database, queue, search, waiting.
- One job of many trials that take no time, on one worker: seconds of a trial, early and late.
- One job with nothing behind it, and with a thousand jobs behind it.
- A hundred clients that ask for the status of a job as fast as they are answered.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import select

from benchmarks.service.fleet import Fleet
from benchmarks.service.replay_jobs import replay_job, write_recording
from benchmarks.service.servers import PostgresProcess, private_redis
from db.tables import TaskRow, TrialRow
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
            replay_job(
                f"scale {n}",
                searcher=searcher,
                strategy="search",
                budget={"trials": trials, "seconds": 3600},
                seed=n,
            ),
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


def long_study(fleet: Fleet, trials: int) -> dict[str, Any]:
    """Milliseconds a trial over the first and the last fifth of a study."""
    (job,) = run_jobs(fleet, 1, trials, "random")
    with fleet.database.read() as session:
        query = select(TrialRow.finished_at).where(TrialRow.job_id == job, TrialRow.finished_at.is_not(None))
        times = sorted(t for t in session.scalars(query) if t is not None)
    part = len(times) // 5

    def ms(first: int, last: int) -> float:
        return (times[last] - times[first]).total_seconds() / (last - first) * 1000

    early, late = ms(0, part), ms(len(times) - 1 - part, len(times) - 1)
    return {
        "trials": len(times),
        "ms_per_trial": round(ms(0, len(times) - 1), 2),
        "ms_per_trial_first_fifth": round(early, 2),
        "ms_per_trial_last_fifth": round(late, 2),
        "growth": round(late / early - 1, 3),
    }


def behind_one(fleet: Fleet, queued: int) -> dict[str, Any]:
    """Seconds that a job takes alone, and with so many submitted after it."""
    budget = {"trials": 50, "seconds": 3600}

    def timed(behind: int) -> float:
        key = time.monotonic_ns()
        began = time.monotonic()
        first = fleet.submit(replay_job("first", budget=budget, strategy="search"), f"{key}")

        def submit(n: int) -> str:
            return fleet.submit(replay_job(f"behind {n}", budget=budget, strategy="search"), f"{key}-{n}")

        with ThreadPoolExecutor(4) as pool:
            accepted = pool.map(submit, range(behind))
            while _status(fleet, first)["state"] not in ("done", "failed", "cancelled"):
                time.sleep(0.1)
            seconds = round(time.monotonic() - began, 1)
            assert len(set(accepted)) == behind
        return seconds

    alone = [timed(0), timed(0)]
    return {"queued_behind": queued, "alone_s": alone, "with_queue_s": timed(queued)}


def run(folder: Path, workers: list[int], trials: int, long: int, queued: int) -> dict[str, Any]:
    """All figures. Postgres syncs to disk, as a service's does."""
    recordings = write_recording(folder / "recordings")
    found: dict[str, Any] = {"rows": []}
    with PostgresProcess(durable=True) as postgres, private_redis() as redis:
        for count in workers:
            place = folder / f"fleet{count}"
            with Fleet(place, recordings, postgres, redis, devices=count, trial_s=TRIAL_S) as fleet:
                for searcher in ("random", "default"):
                    done, seconds = searching(fleet, run_jobs(fleet, 1, trials * count, searcher))
                    found["rows"].append(_row(count, searcher, done, seconds))
                    print(found["rows"][-1], flush=True)
                if count == workers[0]:
                    found["polls"] = asyncio.run(poll(fleet, run_jobs(fleet, 1, 5, "random")[0]))
                    print(found["polls"], flush=True)
        if long:
            with Fleet(folder / "long", recordings, postgres, redis, devices=1, trial_s=0) as fleet:
                found["long_study"] = long_study(fleet, long)
                print(found["long_study"], flush=True)
        if queued:
            with Fleet(folder / "queue", recordings, postgres, redis, devices=1, trial_s=TRIAL_S) as fleet:
                found["queue"] = behind_one(fleet, queued)
                print(found["queue"], flush=True)
    return found


def _row(workers: int, searcher: str, trials: int, seconds: float) -> dict[str, Any]:
    return {
        "workers": workers,
        "searcher": searcher,
        "trials": trials,
        "seconds": round(seconds, 2),
        "efficiency": round(trials * TRIAL_S / workers / seconds, 3),
        "overhead_ms_per_trial": round((seconds * workers - trials * TRIAL_S) / trials * 1000, 2),
        "load_average": round(os.getloadavg()[0], 1),
    }


def _status(fleet: Fleet, job: str) -> dict[str, Any]:
    found: dict[str, Any] = fleet.get(f"/v1/jobs/{job}").json()
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--trials", type=int, default=100, help="for each worker")
    parser.add_argument("--long", type=int, default=10_000)
    parser.add_argument("--queued", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="warpsmith-scale-") as folder:
        counts = [int(n) for n in options.workers.split(",") if n]
        figures = run(Path(folder), counts, options.trials, options.long, options.queued)
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
