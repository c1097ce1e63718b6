"""Requests that schemathesis makes up from the API's own description, against a real service.

Run: python -m benchmarks.service.fuzz [--seconds 300] [--cases 5000] [--seed 1] [--out FILE]

All checks and phases of schemathesis but one: `positive_data_acceptance` wants every request accepted
that fits the schema, and a JSON schema cannot say that the names in an expression exist. Streams of events
are left out: each is read until its time-out, and `tests/api` has tests of their own. A tenant's jobs in
every stage, an open agent request and a living worker are there from the start.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from api.live.news import LONGEST_WAIT_S
from db.admin.program_version import VERSION
from db.engine import utc_now
from db.repositories.agent_requests import AgentRequestRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from db.tables import WorkerRow
from testbed.api_service import Service, service_settings, serving
from testbed.postgres_process import PostgresProcess
from testbed.stages import ended, searched
from warpsmith import __version__
from warpsmith.domain.state import TaskKind
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import StepPayload

NOT_ASKED = "positive_data_acceptance"
STREAMS = "/stream$"
PATIENCE_S = 10
"""Seconds beyond the longest poll after which a reply is late."""
PHASES = "examples,coverage,fuzzing,stateful"


def run(database_url: str, folder: Path, *, seconds: int, seed: int, examples: int = 20) -> dict[str, Any]:
    """What became of the requests of so many seconds. The database must be empty."""
    with serving(service_settings(folder, database_url), migrated=True) as service:
        _fill(service)
        report = folder / "report.json"
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{service.http.base_url}/openapi.json"]
        command += ["--header", f"Authorization: Bearer {service.key}", "--seed", str(seed), "--no-color"]
        patience = str(round(LONGEST_WAIT_S + PATIENCE_S))
        command += ["--exclude-path-regex", STREAMS]
        command += ["--request-timeout", patience, "--max-response-time", patience]
        command += ["--checks", "all", "--exclude-checks", NOT_ASKED, "--phases", PHASES]
        command += ["--max-examples", str(examples), "--max-time", str(seconds), "--continue-on-failure"]
        command += ["--no-shrink", "--generation-database", "none", "--warnings", "off"]
        command += ["--report", "json", "--report-json-path", str(report)]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if not report.exists():
            raise RuntimeError(f"schemathesis ended with {ran.returncode}: {ran.stdout}{ran.stderr}")
        return _record(json.loads(report.read_text()), ran.stdout)


def _record(report: dict[str, Any], text: str) -> dict[str, Any]:
    failed = report["failures"] or report["errors"]
    return {
        "cases": report["test_cases"]["generated"],
        "seconds": round(report["running_time"], 1),
        "operations": report["operations"]["tested"],
        "phases": {name: phase["status"] for name, phase in report["phases"].items()},
        "failures": [
            {"check": f["title"], "operations": f["operations"], "count": f["count"]}
            for f in report["failures"]
        ],
        "errors": report["errors"],
        "seed": report["seed"],
        "schemathesis": report["schemathesis_version"],
        "not_asked": NOT_ASKED,
        **({"details": text.splitlines()[-120:]} if failed else {}),
    }


def _fill(service: Service) -> None:
    with service.database.write() as session:
        jobs = [JobRepository(session).create(scale_job())[0].id for _ in range(3)]
        searched(session, jobs[1])
        ended(session, jobs[2])
        payload = StepPayload(role="templater", round=1)
        task = TaskRepository(session).enqueue(jobs[0], TaskKind.AGENT_STEP, "agents", payload)
        until = utc_now() + timedelta(hours=1)
        AgentRequestRepository(session).add(task, "templater", 1, "make a template", {}, {}, until)
        WorkerRepository(session).register("w", "host", 1, VERSION, ["gpu"], [DEVICE], {})
        # Nobody sends its heartbeats, and it lives all the same.
        session.get_one(WorkerRow, "w").last_seen = until


def main() -> int:
    """Command line; 1 where anything failed, or where there were too few cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--cases", type=int, default=5000, help="fewer than this is a failure")
    parser.add_argument("--examples", type=int, default=50, help="of an operation, before it is repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warpsmith-fuzz-") as folder, PostgresProcess() as postgres:
        record = {
            "what": "requests made up from the OpenAPI description, all checks of schemathesis but one",
            "warpsmith": __version__,
            "load_average_before": round(os.getloadavg()[0], 1),
            **run(
                postgres.url,
                Path(folder),
                seconds=options.seconds,
                seed=options.seed,
                examples=options.examples,
            ),
        }
    print(json.dumps(record, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if record["failures"] or record["errors"] or record["cases"] < options.cases else 0


if __name__ == "__main__":
    sys.exit(main())
