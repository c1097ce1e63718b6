"""One study on one GPU and on two: trials a second of the same job, in full mode.

    python benchmarks/gpu/two_gpus.py --out OUT [--trials 600] [--repeats 3] [--workloads 5]

Starts private servers (programs on PATH, or wheels), an API and a worker. For each searcher the job is
run with one device visible and with two, in turns; reuse of trials is off. Counted are the trials that
were finished from the start of the first slice to the end of the last. With one small workload the host's
compilers are the limit, and a second device brings little. Writes `OUT/two-gpus.json`.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
from sqlalchemy import select

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.gpu.smaller import fields_of  # noqa: E402
from benchmarks.provenance import commit_name, plain_command  # noqa: E402
from db.engine import Database  # noqa: E402
from db.tables import TaskRow, TrialRow  # noqa: E402
from tests.e2e.service import Service, ended  # noqa: E402
from tests.servers import fresh_database, postgres_server, redis_server  # noqa: E402
from warpsmith.domain.state import TaskKind, TrialState  # noqa: E402


def searched(database: Database, job: str) -> dict[str, Any]:
    """Trials of a job, the seconds that its slices took, and how many each device ran."""
    with database.read() as session:
        query = select(TaskRow).where(TaskRow.job_id == job, TaskRow.kind == TaskKind.SLICE)
        slices = session.scalars(query.order_by(TaskRow.number)).all()
        rows = select(TrialRow.task_id, TrialRow.key).where(TrialRow.job_id == job)
        finished = session.execute(rows.where(TrialRow.state == TrialState.FINISHED)).all()
    assert len({r.key for r in finished}) == len(finished), "a configuration was run twice"
    began = min(s.started_at for s in slices if s.started_at is not None)
    seconds = max(s.finished_at for s in slices if s.finished_at is not None) - began
    of_slice = [sum(r.task_id == s.id for r in finished) for s in slices]
    return {"trials": len(finished), "seconds": seconds.total_seconds(), "of_slices": of_slice}


def run(
    service: Service, database: Database, job_file: Path, workloads: int, searcher: str, trials: int
) -> dict[str, Any]:
    """One job, from HTTP to the end of its search."""
    fields = fields_of(job_file, workloads) | {"searcher": searcher}
    fields["budget"] = {"rounds": 1, "trials": trials, "seconds": 400, "stop_early": False}
    began = time.monotonic()
    job = service.submit(fields)
    status = service.wait(job, lambda s: s["state"] == "verifying" or ended(s), seconds=400)
    assert status["state"] == "verifying", status
    print(f"{job} was searched after {time.monotonic() - began:.0f} s", flush=True)
    found = searched(database, job)
    # Verification runs on one device, and would be waited for.
    httpx2.post(f"{service.url}/v1/jobs/{job}/cancel", headers=service.headers, timeout=30).raise_for_status()
    return found


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--job", type=Path, default=ROOT / "examples" / "silu_and_mul" / "cuda.yaml")
    parser.add_argument("--workloads", type=int, default=5, help="only so many, the smallest; 0: all")
    parser.add_argument("--searchers", nargs="+", default=["random", "default"])
    parser.add_argument("--devices", nargs="+", default=["0", "0,1"], help="visible devices, in turns")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with postgres_server() as server, redis_server() as broker:
        for repeat in range(options.repeats):
            for devices in options.devices:
                with fresh_database(server) as url:
                    settings = {
                        "WARPSMITH_DATABASE_URL": url,
                        "WARPSMITH_BROKER_URL": broker,
                        "WARPSMITH_REUSE_TRIALS_S": "0",
                        "CUDA_VISIBLE_DEVICES": devices,
                    }
                    service = Service(options.out / f"data-{repeat}-{len(devices)}", settings).start()
                    database = Database(url)
                    try:
                        for searcher in options.searchers:
                            figures = run(
                                service, database, options.job, options.workloads, searcher, options.trials
                            )
                            rate = round(figures["trials"] / figures["seconds"], 1)
                            row = {"devices": devices.count(",") + 1, "searcher": searcher, "rate": rate}
                            found.append({**row, **figures})
                            print(found[-1], flush=True)
                    except BaseException:
                        print(service.logs(), file=sys.stderr)
                        raise
                    finally:
                        database.dispose()
                        service.stop()
    record: dict[str, Any] = {
        "commit": commit_name(),
        "command": plain_command("python " + " ".join(sys.argv)),
    }
    for searcher in options.searchers:
        rates = {
            n: [r["rate"] for r in found if (r["searcher"], r["devices"]) == (searcher, n)] for n in (1, 2)
        }
        record[searcher] = {n: statistics.median(r) for n, r in rates.items() if r}
    (options.out / "two-gpus.json").write_text(json.dumps(record | {"runs": found}, indent=1))
    print(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
