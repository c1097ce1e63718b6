"""What a job with production shapes costs before and after its search, stage by stage.

    python -m benchmarks.service.fixed_cost --out FILE [--smoke] [--job FILE] [--seconds S] [--keep DIR]

Runs one job through the embedded service's own code in this process, without a broker: submitted to a
database, decided about, and worked on by real children. On PoCL the job is an RMS norm in half precision on
16 x 4096, 256 x 8192 and 4096 x 4096; `--job` names another one, for instance one that
`benchmarks.production.jobs` wrote for a GPU. Stages, their parts and the way there are in
`benchmarks.service.stage_clock`.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import func, select

from benchmarks.provenance import head
from benchmarks.service.stage_clock import StageClock
from db import migrate
from db.engine import Database
from db.message_names import AGENT_QUEUE, CONTROL_QUEUE, device_queue
from db.queue.broker import Notifier
from db.repositories.jobs import JobRepository
from db.repositories.workers import WorkerRepository
from db.tables import TrialRow
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import TaskKind
from warpsmith.job_files.jobfile import load_job, parse_job
from warpsmith.sandbox import probe_devices
from warpsmith.settings import Settings
from worker import brokerless, task_runner
from worker.advance import advance
from worker.device.device_setup import RealDeviceSetup, open_setup
from worker.device.process_context import Context

STAGES = {
    TaskKind.BASELINE: "baseline",
    TaskKind.CHECK_CASES: "baseline",
    TaskKind.TOOL: "search",
    TaskKind.SLICE: "search",
    TaskKind.VERIFY: "verification",
}
SHAPES = ((16, 4096), (256, 8192), (4096, 4096))
SMOKE_SHAPES = ((4, 512), (16, 1024))
BEYOND_S = 300.0
UP_S = 2.0
SOURCE = """
#define BLOCK 64
__kernel void rmsnorm(__global half* y, __global const half* x, __global const half* weight,
                      const int hidden) {
  __local float partial[BLOCK];
  const int lid = get_local_id(0);
  const size_t row = get_group_id(0) * (size_t)hidden;
  float sum = 0.0f;
  for (int i = lid; i < hidden; i += BLOCK) {
    const float v = vload_half(row + i, x);
    sum += v * v;
  }
  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = BLOCK / 2; width > 0; width /= 2) {
    if (lid < width) partial[lid] += partial[lid + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float scale = rsqrt(partial[0] / hidden + 1e-5f);
  for (int i = lid; i < hidden; i += BLOCK)
    vstore_half(vload_half(row + i, x) * scale * vload_half(i, weight), row + i, y);
}
"""
REFERENCE = """
import numpy as np

def reference(inputs, dims):
    x = inputs["x"]
    return {"y": x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * inputs["weight"]}
"""


def own_job(shapes: Sequence[tuple[int, int]], seconds: float) -> Job:
    """The RMS norm for OpenCL, with the rows and columns of each workload."""
    rows = ["rows", "hidden"]
    kernel = {
        "backend": "opencl",
        "source": SOURCE,
        "entry": "rmsnorm",
        "arguments": [
            {"name": "y", "dtype": "float16", "role": "output", "shape": rows},
            {"name": "x", "dtype": "float16", "role": "input", "shape": rows},
            {"name": "weight", "dtype": "float16", "role": "input", "shape": ["hidden"]},
            {"name": "hidden", "dtype": "int32", "role": "scalar", "value": "hidden"},
        ],
        "launch": {"grid": ["rows"], "block": [64]},
    }
    return parse_job(
        {
            "name": "rmsnorm in half",
            "kernel": kernel,
            "workloads": [{"dimensions": {"rows": r, "hidden": h}} for r, h in shapes],
            "reference": {"kind": "numpy", "source": REFERENCE},
            "budget": {"rounds": 1, "trials": 200, "seconds": seconds},
        }
    )


def measured(job: Job, device: DeviceInfo, folder: Path) -> dict[str, Any]:
    """Run a job to its end; its stages, and when its first trial was finished."""
    settings = Settings(_env_file=None, data_dir=folder)
    migrate.upgrade(settings.sqlalchemy_url)
    database, notifier = Database(settings.sqlalchemy_url), Notifier(settings)
    queues = (CONTROL_QUEUE, AGENT_QUEUE, device_queue(device.device_class))
    clock = StageClock()
    work = {kind: _staged(clock, kind, do) for kind, do in task_runner.WORK.items()}
    with ExitStack() as open_:
        open_.callback(database.dispose)
        open_.callback(notifier.close)
        open_.enter_context(patch.object(task_runner, "WORK", work))
        open_.enter_context(clock.installed())
        setup = open_setup(settings, device)
        if isinstance(setup, RealDeviceSetup):
            open_.callback(setup.close)
            if setup.compiling_ahead is not None:
                setup.compiling_ahead.join()
        time.sleep(UP_S)  # a worker has been up when a job comes
        made = Context(settings, database, notifier, "bench", setup)
        with database.write() as session:
            WorkerRepository(session).register("bench", os.uname().nodename, 1, "0", queues, (device,), {})
            job_id = JobRepository(session).create(job)[0].id
        began = time.monotonic()
        advance(database, job_id, 0.0)
        ended = _worked_off(made, queues, job_id, began + job.budget.seconds + BEYOND_S)
        seconds = time.monotonic() - began
        with database.read() as session:
            row = JobRepository(session).get(job_id)
            first = session.scalar(select(func.min(TrialRow.finished_at)).where(TrialRow.job_id == job_id))
            trials = session.scalar(
                select(func.count()).select_from(TrialRow).where(TrialRow.job_id == job_id)
            )
            first_s = None if first is None else round((first - row.created_at).total_seconds(), 1)
            return {
                "job": job.name,
                "workloads": [w.key for w in job.workloads],
                "budget_s": job.budget.seconds,
                "ended": ended,
                "detail": row.detail,
                "seconds": round(seconds, 1),
                "first_trial_s": first_s,
                "trials": trials,
                "stages": clock.record(),
                "timeline": clock.timeline(began),
            }


def _staged(clock: StageClock, kind: TaskKind, do: task_runner.Worker) -> task_runner.Worker:
    def run(*args: Any) -> Any:
        with clock.stage(STAGES.get(kind, "other")):
            return do(*args)

    return run


def _worked_off(made: Context, queues: Sequence[str], job_id: str, deadline: float) -> str:
    """Work until the job has ended; its state."""
    while True:
        busy = brokerless.step(made, queues)
        with made.database.read() as session:
            state = JobRepository(session).get(job_id).state
        if state.is_terminal or time.monotonic() > deadline:
            return state.value
        if not busy:
            time.sleep(0.01)


def page(record: Mapping[str, Any]) -> str:
    """The record as Markdown."""
    lines = [
        "# Fixed cost of a job",
        "",
        f"{record['device']}, {record['driver']}, {record['cores']} cores with a load average of "
        f"{record['load_average']} at the end, commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        f"{record['job']} on {'; '.join(record['workloads'])}; budget {record['budget_s']:g} s. It ended as "
        f"{record['ended']} after {record['seconds']} s: {record['detail']}. First trial finished after "
        f"{record['first_trial_s']} s; {record['trials']} trials.",
        "",
        "| stage | seconds | of these | rest | in other threads | in children, waits included |",
        "|---|---|---|---|---|---|",
    ]
    for stage, row in record["stages"].items():
        cells = [", ".join(f"{part} {s:g}" for part, s in row[key].items()) or "-" for key in _PARTS]
        lines.append(
            f"| {stage} | {row['seconds']:g} | {cells[0]} | {row['rest']:g} | {cells[1]} | {cells[2]} |"
        )
    return "\n".join(lines) + "\n"


_PARTS = ("parts", "in_other_threads", "in_children")


def main() -> int:
    """See the module's text; exits with 1 if the job did not end as done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON file; the table goes beside it as .md")
    parser.add_argument("--smoke", action="store_true", help="small shapes and a budget of 8 seconds")
    parser.add_argument("--job", type=Path, help="a job file instead of the RMS norm")
    parser.add_argument(
        "--keep", type=Path, help="a worker's folder that other runs used, without their jobs"
    )
    parser.add_argument("--seconds", type=float, help="budget; 60, with --smoke 8")
    options = parser.parse_args()
    seconds = options.seconds or (8.0 if options.smoke else 60.0)
    if options.job is None:
        job = own_job(SMOKE_SHAPES if options.smoke else SHAPES, seconds)
    else:
        job = load_job(options.job)
        job = job.model_copy(update={"budget": job.budget.model_copy(update={"seconds": seconds})})
    devices = [d for d in probe_devices().devices if d.backend is job.kernel.backend]
    if not devices:
        print(f"no {job.kernel.backend.value} device", file=sys.stderr)
        return 2
    command = "python -m benchmarks.service.fixed_cost " + " ".join(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="warpsmith-fixed-cost-") as folder:
        for database in () if options.keep is None else options.keep.glob("warpsmith.db*"):
            database.unlink()
        found = measured(job, devices[0], options.keep or Path(folder))
    load = {"cores": len(os.sched_getaffinity(0)), "load_average": round(os.getloadavg()[0], 1)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".timeline").write_text(found.pop("timeline", ""))
    record = head(devices[0], command) | load | found
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(page(record))
    print(page(record))
    return int(found["ended"] != "done")


if __name__ == "__main__":
    sys.exit(main())
