"""How the service scales on the replay back end: workers, overhead of a trial, clients that poll.

Run: python -m benchmarks.service.scale [--workers 1,2,4,8] [--trials 300] [--long 10000] [--queued 1000]
[--polls 30] [--out FILE]

With nothing else on two cores it takes about a quarter of an hour. A part is left out by giving 0, or
no workers.

- One job (one study) on n workers at 100 ms a trial, with a share of trials for each worker, by the random
  and the default searcher. Overhead is all that the n workers together spent beside trials, per trial:
  database, queue, search, waiting. Only trials that took their time count.
- A hundred clients that submit a job each and ask for its status at a fixed pace; latency counts from when
  a poll was due. Then the same clients as fast as they are answered.
- One job of many trials that take no time, on one worker: seconds of a trial, early and late.
- One job with nothing behind it, and with a thousand jobs behind it.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import func, select

from benchmarks.provenance import plain_command
from benchmarks.service.fleet import Fleet
from benchmarks.service.poller import Poller
from db.tables import TaskRow, TrialRow
from testbed.postgres_process import PostgresProcess, private_redis
from testbed.recordings import replay_job, write_recording
from warpsmith import __version__
from warpsmith.commit import commit_name
from warpsmith.domain.state import TaskKind

TRIAL_S = 0.1
POLL_CLIENTS = 100
POLL_EVERY_S = 0.4
"""250 polls a second from all clients together."""
FLAT_OUT_S = 10.0


def searching(fleet: Fleet, job: str) -> tuple[int, float]:
    """Trials of a job that took their time, and seconds from the first slice's start to the last's end."""
    with fleet.database.read() as session:
        query = select(TaskRow).where(TaskRow.job_id == job, TaskRow.kind == TaskKind.SLICE)
        slices = session.scalars(query).all()
        timed = select(func.count()).select_from(TrialRow).where(TrialRow.job_id == job)
        trials = session.scalar(timed.where(TrialRow.objective.is_not(None))) or 0
    began = min(t.started_at for t in slices if t.started_at is not None)
    ended = max(t.finished_at for t in slices if t.finished_at is not None)
    return trials, (ended - began).total_seconds()


def run_jobs(fleet: Fleet, count: int, trials: int, searcher: str, limit_s: float = 600) -> list[str]:
    """Submit and wait until all are done."""
    key = time.monotonic_ns()
    jobs = [
        fleet.submit(
            replay_job(
                f"scale {n}",
                searcher=searcher,
                strategy="search",
                budget={"trials": trials, "seconds": 3600, "stop_early": False},
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


async def poll(fleet: Fleet, seconds: float) -> dict[str, Any]:
    """Clients that submit a job each, and ask for its status again and again."""
    key = time.monotonic_ns()
    limits = httpx2.Limits(max_connections=POLL_CLIENTS)
    async with httpx2.AsyncClient(
        base_url=fleet.url, headers=fleet.headers, limits=limits, timeout=30
    ) as http:
        submits: list[float] = []
        paced: list[float] = []
        full = time.monotonic() + seconds / 2
        flat_out: list[float] = []

        async def ask(poller: Poller, job: str, due: float, latencies: list[float]) -> None:
            await poller.get(f"/v1/jobs/{job}")
            latencies.append(time.monotonic() - due)

        async def client(number: int) -> None:
            due = time.monotonic() + POLL_EVERY_S * number / POLL_CLIENTS
            end = due + seconds
            await asyncio.sleep(due + seconds / 2 * number / POLL_CLIENTS - time.monotonic())
            due = time.monotonic()
            job = replay_job(f"client {number}", budget={"trials": 5, "seconds": 3600}, strategy="search")
            again = {"Idempotency-Key": f"{key}-{number}"}
            reply = (await http.post("/v1/jobs", json=job, headers=again)).raise_for_status()
            submits.append(time.monotonic() - due)
            mine = str(reply.json()["id"])
            async with Poller(fleet.url, fleet.headers["Authorization"].split()[1]) as poller:
                while due < end:
                    due += POLL_EVERY_S
                    await asyncio.sleep(due - time.monotonic())
                    await ask(poller, mine, due, paced if due > full else [])
                began = time.monotonic()
                while time.monotonic() < began + FLAT_OUT_S:
                    await ask(poller, mine, time.monotonic(), flat_out)
            # What comes next is measured alone.
            (await http.post(f"/v1/jobs/{mine}/cancel")).raise_for_status()

        await asyncio.gather(*(client(n) for n in range(POLL_CLIENTS)))
    # All have submitted when the second half begins, and what they submitted is worked on.
    return {
        "clients": POLL_CLIENTS,
        "polls_per_s": round(len(paced) / (seconds / 2), 1),
        **_latencies(paced),
        "submits": _latencies(submits),
        "flat_out_polls_per_s": round(len(flat_out) / FLAT_OUT_S, 1),
        "flat_out": _latencies(flat_out),
        "load_average": round(os.getloadavg()[0], 1),
    }


def _latencies(seconds: list[float]) -> dict[str, float]:
    seconds.sort()
    return {
        "count": len(seconds),
        "median_ms": round(statistics.median(seconds) * 1000, 1),
        "p99_ms": round(seconds[int(len(seconds) * 0.99)] * 1000, 1),
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
    """Seconds that a job takes alone, and with so many queued after it, from the start of the workers."""
    budget = {"trials": 50, "seconds": 3600}

    def timed(behind: int) -> float:
        for worker in fleet.workers:
            worker.stop()
        key = time.monotonic_ns()

        def submit(n: int) -> str:
            return fleet.submit(replay_job(f"behind {n}", budget=budget, strategy="search"), f"{key}-{n}")

        first = submit(0)
        with ThreadPoolExecutor(4) as pool:
            rest = list(pool.map(submit, range(1, 1 + behind)))
        assert len({first, *rest}) == 1 + behind
        began = time.monotonic()
        for worker in fleet.workers:
            worker.start()
        while _status(fleet, first)["state"] not in ("done", "failed", "cancelled"):
            time.sleep(0.1)
        seconds = round(time.monotonic() - began, 1)
        assert _status(fleet, first)["state"] == "done"
        for job in rest:
            fleet.cancel(job)
        return seconds

    alone = [timed(0), timed(0), timed(0)]
    return {"queued_behind": queued, "alone_s": alone, "with_queue_s": [timed(queued), timed(queued)]}


def run(
    folder: Path,
    workers: list[int],
    trials: int,
    long: int,
    queued: int,
    polls_s: float,
    keep: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """All figures, kept one by one. Postgres syncs to disk, as a service's does."""
    recordings = write_recording(folder / "recordings")
    found: dict[str, Any] = {"rows": []}
    with PostgresProcess(durable=True) as postgres, private_redis() as redis:

        def fleet(name: str, devices: int, trial_s: float) -> Fleet:
            return Fleet(folder / name, recordings, postgres, redis, devices=devices, trial_s=trial_s)

        def note(name: str, figures: Any) -> None:
            found[name] = figures
            print(name, figures, flush=True)
            keep(found)

        if polls_s:
            with fleet("polls", 1, TRIAL_S) as one:
                run_jobs(one, 1, 5, "random")
                note("polls", asyncio.run(poll(one, polls_s)))
        for count in workers:
            with fleet(f"workers{count}", count, TRIAL_S) as several:
                # Every pool has been imported and started before anything is timed.
                run_jobs(several, 1, 20 * count, "random")
                for searcher in ("random", "default"):
                    done, seconds = searching(several, run_jobs(several, 1, trials * count, searcher)[0])
                    note("rows", [*found["rows"], _row(count, searcher, done, seconds)])
        if long:
            with fleet("long", 1, 0) as one:
                note("long_study", long_study(one, long))
        if queued:
            with fleet("queue", 1, TRIAL_S) as one:
                note("queue", behind_one(one, queued))
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
    parser.add_argument("--trials", type=int, default=300, help="for each worker")
    parser.add_argument("--long", type=int, default=10_000)
    parser.add_argument("--queued", type=int, default=1000)
    parser.add_argument("--polls", type=float, default=30, help="seconds of polling at a fixed pace")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load, began = os.getloadavg()[0], time.monotonic()

    def keep(figures: dict[str, Any]) -> None:
        record = {
            "seconds": round(time.monotonic() - began),
            "what": "workers and overhead at 100 ms a trial, replay back end; 100 clients polling",
            "warpsmith": __version__,
            "commit": commit_name(),
            "command": plain_command("python -m benchmarks.service.scale " + " ".join(sys.argv[1:])),
            "cores": os.cpu_count(),
            "load_average_before": round(load, 1),
            **figures,
        }
        if options.out is not None:
            options.out.write_text(json.dumps(record, indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="warpsmith-scale-") as folder:
        counts = [int(n) for n in options.workers.split(",") if n]
        run(Path(folder), counts, options.trials, options.long, options.queued, options.polls, keep)


if __name__ == "__main__":
    main()
