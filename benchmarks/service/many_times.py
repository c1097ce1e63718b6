"""The same small job many times on one embedded service: how many end, how, and what stands still.

    python -m benchmarks.service.many_times --out FILE [--job FILE] [--times N] [--seconds S]

The job scales a vector of 4096 numbers with OpenCL, in four trials; `--job` names another one.
Nothing is reused from one time to the next. A job that has not ended `BEYOND_S` after its budget is recorded
with where its work stood, and cancelled. The record is written after every job.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.production.service import embedded_service, stage_seconds
from benchmarks.provenance import head
from warpsmith.client import Client
from warpsmith.domain.job import Job
from warpsmith.errors import WarpsmithError
from warpsmith.jobfile import load_job, parse_job
from warpsmith.sandbox import probe_devices

TRIALS = 4
SOURCE = """
__kernel void scale(__global float* y, __global const float* x, const int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = 2.0f * x[i];
}
"""
REFERENCE = "def reference(inputs, dims):\n    return {'y': 2 * inputs['x']}\n"
BEYOND_S = 120.0
LOOK_S = 0.1
FRESH = {"WARPSMITH_REUSE_TRIALS_S": "0", "WARPSMITH_REMEMBERS": "false"}
"""Settings with which no job has trials or lessons of the one before."""
Row = dict[str, Any]


def own_job(seconds: float) -> Job:
    """The scaled vector, with a budget of so many seconds."""
    kernel = {
        "backend": "opencl",
        "source": SOURCE,
        "entry": "scale",
        "arguments": [
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
        ],
        "launch": {"grid": ["n / 64"], "block": [64]},
    }
    return parse_job(
        {
            "name": "scaled vector",
            "kernel": kernel,
            "workloads": [{"dimensions": {"n": 4096}}],
            "reference": {"kind": "numpy", "source": REFERENCE},
            "budget": {"rounds": 1, "trials": TRIALS, "seconds": seconds},
        }
    )


def once(client: Client, job: Job, data: Path, beyond_s: float = BEYOND_S) -> Row:
    """One row: how the job ended and after how many seconds, or where it stood at its deadline."""
    began = time.monotonic()
    try:
        name = client.submit(job).id
        status = client.status(name)
        while not status.state.is_terminal:
            if time.monotonic() - began > job.budget.seconds + beyond_s:
                client.cancel(name)
                row: Row = {"ended": "no end", "state": status.state.value, "stood_at": status.detail}
                return row | {"stages_s": stage_seconds(data, name)}
            time.sleep(LOOK_S)
            status = client.status(name)
    except WarpsmithError as exc:
        return {"ended": "error", "detail": f"{type(exc).__name__}: {exc}"}
    row = {"ended": status.state.value, "seconds": round(time.monotonic() - began, 1)}
    return row if row["ended"] == "done" else row | {"detail": status.detail}


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts by end, seconds of those that ended, and every job that did not end as done."""
    took = [row["seconds"] for row in rows if "seconds" in row]
    return {
        "times": len(rows),
        "ended": dict(Counter(row["ended"] for row in rows)),
        "median_s": round(statistics.median(took), 1) if took else None,
        "max_s": max(took, default=None),
        "others": [{"time": n, **row} for n, row in enumerate(rows, 1) if row["ended"] != "done"],
    }


def run(job: Job, times: int, folder: Path, note: Callable[[Sequence[Row]], None]) -> Sequence[Row]:
    """Run the job so many times in turn; `note` gets all rows after each."""
    rows: list[Row] = []
    with embedded_service(folder, FRESH) as client:
        for _ in range(times):
            rows.append(once(client, job, folder))
            note(rows)
    return rows


def main() -> int:
    """See the module's text; exits with 1 if a job did not end as done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON file")
    parser.add_argument("--job", type=Path, help="a job file instead of the RMS norm")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3.0, help="budget of the job; 3")
    options = parser.parse_args()
    job = own_job(options.seconds) if options.job is None else load_job(options.job)
    budget = job.budget.model_copy(update={"seconds": options.seconds})
    job = job.model_copy(update={"budget": budget})
    devices = [d for d in probe_devices().devices if d.backend is job.kernel.backend]
    if not devices:
        print(f"no {job.kernel.backend.value} device", file=sys.stderr)
        return 2
    record = head(devices[0], "python -m benchmarks.service.many_times " + " ".join(sys.argv[1:]))
    record |= {"cores": len(os.sched_getaffinity(0)), "job": job.name, "budget_s": job.budget.seconds}
    record |= {"asked_for": options.times}
    options.out.parent.mkdir(parents=True, exist_ok=True)

    def note(rows: Sequence[Row]) -> None:
        load = {"load_average": round(os.getloadavg()[0], 1)}
        options.out.write_text(json.dumps(record | load | summary(rows), indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="warpsmith-many-times-") as folder:
        rows = run(job, options.times, Path(folder), note)
    print(options.out.read_text())
    return int(any(row["ended"] != "done" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
