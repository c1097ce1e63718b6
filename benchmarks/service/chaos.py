"""Jobs on the replay back end while everything around them is killed at random.

Run: python -m benchmarks.service.chaos [--jobs 300] [--workers 8] [--every-s 4] [--out FILE]

Servers and workers are the bench's own, on private ports and folders. Default settings of the
service, so the figures are those of a fleet as installed.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from benchmarks.service.faults import Chaos
from benchmarks.service.fleet import Fleet
from benchmarks.service.verdict import verdict
from db.tables import JobRow
from testbed.postgres_process import PostgresProcess, private_redis
from testbed.recordings import replay_job, write_recording
from warpsmith import __version__
from warpsmith.domain.state import JobState

TERMINAL = [s for s in JobState if s.is_terminal]


@dataclass(frozen=True)
class Load:
    """The jobs of a run, and who works on them."""

    jobs: int
    workers: int
    """Worker processes, of which `light` serve decisions and agents."""
    light: int = 2
    trials: int = 20
    """Of each job."""
    trial_s: float = 0.1


def run(
    folder: Path,
    load: Load,
    *,
    every_s: float,
    seed: int,
    limit_s: float,
    only: tuple[str, ...] = (),
    settings: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The record of one run.

    Args:
        every_s: time between two faults.
        limit_s: the run ends after this, whatever has ended.
        only: names of faults; all where empty.
        settings: of the service, beyond its defaults.
    """
    recordings = write_recording(folder / "recordings")
    with PostgresProcess() as postgres, private_redis() as redis:
        fleet = Fleet(
            folder / "fleet",
            recordings,
            postgres,
            redis,
            devices=load.workers - load.light,
            light=load.light,
            trial_s=load.trial_s,
            settings=settings or {},
        )
        with fleet:
            chaos = Chaos(fleet, seed, every_s)
            if only:
                chaos.actions = [a for a in chaos.actions if a[1].__name__ in only]
            began = time.monotonic()
            chaos.start()
            try:
                accepted = [
                    fleet.submit(replay_job(f"job {n}", budget=_budget(load.trials), seed=n), f"key-{n}")
                    for n in range(load.jobs)
                ]
                # Once more, as clients do that did not hear the answer.
                again = [
                    fleet.submit(replay_job(f"job {n}", budget=_budget(load.trials), seed=n), f"key-{n}")
                    for n in range(0, load.jobs, 10)
                ]
                _wait(fleet, load.jobs, began + limit_s)
            finally:
                chaos.end()
            quiet = time.monotonic()
            _wait(fleet, load.jobs, quiet + 120)
            found = verdict(fleet.database, accepted)
            if again != accepted[::10]:
                found["failures"].append("an idempotency key brought another job")
            recoveries = sorted(chaos.recoveries_s)
            return {
                "seconds": round(quiet - began, 1),
                "workers": load.workers,
                "trial_s": load.trial_s,
                "seed": seed,
                "faults": dict(chaos.faults),
                "recoveries": len(recoveries),
                "recovery_median_s": round(statistics.median(recoveries), 1) if recoveries else None,
                "recovery_max_s": round(recoveries[-1], 1) if recoveries else None,
                "cores": os.cpu_count(),
                "load_average_at_the_end": round(os.getloadavg()[1], 1),
                "errors_of_the_bench": chaos.errors,
                **found,
            }


def _budget(trials: int) -> dict[str, float]:
    return {"trials": trials, "seconds": 3600}


def _wait(fleet: Fleet, jobs: int, deadline: float) -> None:
    shown = 0.0
    while time.monotonic() < deadline:
        try:
            with fleet.database.read() as session:
                ended = session.scalar(select(func.count()).where(JobRow.state.in_(TERMINAL)))
        except DBAPIError:
            ended = None
        if ended is not None and ended >= jobs:
            return
        if time.monotonic() - shown > 15:
            shown = time.monotonic()
            print(f"{ended} of {jobs} jobs have ended", flush=True)
        time.sleep(0.25)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--every-s", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=3000)
    parser.add_argument("--only", default="", help="names of faults, with commas")
    parser.add_argument("--keep", type=Path, help="folder for logs, kept")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warpsmith-chaos-") as temporary:
        record = run(
            options.keep or Path(temporary),
            Load(options.jobs, options.workers),
            every_s=options.every_s,
            seed=options.seed,
            limit_s=options.limit_s,
            only=tuple(n for n in options.only.split(",") if n),
        )
    record = {"what": "jobs under random faults, replay back end", "warpsmith": __version__, **record}
    print(json.dumps(record, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
