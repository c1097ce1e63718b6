"""One job in full mode on a GPU: Postgres, Redis, API and worker as processes, killed on the way.

    python -m benchmarks.gpu.full_mode --out OUT [--commit SHA] [--job examples/silu_and_mul/cuda.yaml]

Starts private servers (programs on PATH, or wheels), posts the job over HTTP, sends SIGKILL to the API
and the worker after a third of its trials, empties Redis, starts both again, and checks that no finished
trial was lost or repeated. Writes `OUT/full-mode.json`.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import redis

from benchmarks.gpu.smaller import fields_of
from benchmarks.provenance import plain_command, record_folder
from benchmarks.trust.record import first_device
from testbed.servers import fresh_database, postgres_server, redis_server
from testbed.service import Service, ended, finished, trials_of
from warpsmith.jobfile import load_job

ROOT = Path(__file__).resolve().parents[2]


def run(service: Service, redis_url: str, job_file: Path, workloads: int) -> dict[str, Any]:
    """The figures of one job that is killed once."""
    # A searcher without an opinion on when enough was searched: there must be work left after the kill.
    fields = fields_of(job_file, workloads) | {"searcher": "random"}
    trials = fields["budget"]["trials"]
    started = time.monotonic()
    job = service.submit(fields)
    status = service.wait(job, lambda s: s["trials_done"] >= trials // 3 or ended(s), seconds=400)
    print(f"{status['trials_done']} trials after {time.monotonic() - started:.0f} s", flush=True)
    if ended(status):
        raise SystemExit(f"the job ended before it could be killed: {status['detail']}")
    before = finished(trials_of(service, job))
    service.kill()
    killed = time.monotonic()
    redis.Redis.from_url(redis_url).flushall()
    service.start()
    status = service.wait(job, lambda s: s["trials_done"] > len(before) or ended(s), seconds=120)
    assert status["trials_done"] > len(before), "nothing was left to run after the kill"
    recovery_s = time.monotonic() - killed
    status = service.wait(job, ended, seconds=500)
    after = finished(trials_of(service, job))
    lost = [k for k in before if after.get(k) != before[k]]
    result = service.get(f"/v1/jobs/{job}/result")
    return {
        "job": fields["name"],
        "state": status["state"],
        "trials": len(after),
        "finished_before_kill": len(before),
        "lost_or_changed": len(lost),
        "recovery_s": round(recovery_s, 2),
        "wall_s": round(time.monotonic() - started, 1),
        "speedup": result["speedup"],
        "device": result["device"],
        "driver": result["driver"],
        "trials_per_second": result["trials_per_second"],
        "comparisons": result["comparisons"],
    }


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--job", type=Path, default=ROOT / "examples" / "silu_and_mul" / "cuda.yaml")
    parser.add_argument("--workloads", type=int, default=0, help="only so many, the smallest; 0: all")
    options = parser.parse_args()
    first_device(load_job(options.job).kernel.backend)
    with postgres_server() as server, fresh_database(server) as database, redis_server() as broker:
        settings = {"WARPSMITH_DATABASE_URL": database, "WARPSMITH_BROKER_URL": broker}
        service = Service(options.out / "data", settings).start()
        try:
            record = run(service, broker, options.job, options.workloads)
        except BaseException:
            print(service.logs(), file=sys.stderr)
            raise
        finally:
            service.stop()
    version = subprocess.run(["postgres", "--version"], capture_output=True, text=True, check=False)
    record |= {
        "commit": options.commit,
        "postgres": version.stdout.strip(),
        "command": plain_command("python " + " ".join(sys.argv)),
    }
    (options.out / "full-mode.json").write_text(json.dumps(record, indent=1))
    print(json.dumps({k: v for k, v in record.items() if k != "comparisons"}, indent=1))
    return 0 if record["state"] == "done" and not record["lost_or_changed"] else 1


if __name__ == "__main__":
    sys.exit(main())
