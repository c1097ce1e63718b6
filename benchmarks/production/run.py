"""Production kernels tuned by the offline rules, one after another on one embedded service.

    python -m benchmarks.production.run --jobs-dir DIR --out DIR [--jobs NAMES] [--within S]
    python -m benchmarks.production.run --mirrors FOLDER --out DIR [--seconds S] [--jobs NAMES]

`--jobs-dir` holds job files of `benchmarks.production.jobs`, so that a machine without the projects can run
them; `--seconds` then replaces their budgets. `production.json` and `production.md` are written after every
job, so a run that is ended loses only the job under way.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.production.jobs import Made, checkout_options, is_wanted, made_jobs, sources_of_record
from benchmarks.production.service import embedded_service, stage_seconds
from benchmarks.production.sources import fetch_all
from benchmarks.provenance import head, record_folder
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import WarpsmithError
from warpsmith.extensions.clients.client import Client
from warpsmith.http_models import CandidateView, JobResult
from warpsmith.job_files.jobfile import load_job
from warpsmith.sandbox import probe_devices

COLUMNS = (
    *("job", "parameters", "cfg", "t", "workload", "base → best, µs"),
    *("speed-up [95 %]", "share", "stages, s", "end"),
)
BEYOND_S = 120.0
"""That a job may take beyond its budget before it is cancelled."""


def tuned(client: Client, job: Job, data: Path) -> dict[str, Any]:
    """One row of the record."""
    began = time.monotonic()
    row: dict[str, Any] = {"job": job.name, "budget_s": job.budget.seconds}
    try:
        name = client.submit(job).id
        limit = job.budget.seconds + BEYOND_S
        while not (status := client.status(name)).state.is_terminal:
            if time.monotonic() - began > limit:
                client.cancel(name)
                return row | {"failed": f"no end after {limit:.0f} s", "stages_s": stage_seconds(data, name)}
            time.sleep(0.2)
        result = client.result(name)
        candidates = client.candidates(name).items
    except WarpsmithError as exc:
        return row | {"failed": f"{type(exc).__name__}: {exc}"}
    row |= {"seconds": round(time.monotonic() - began, 1), "stages_s": stage_seconds(data, name)}
    row |= {"state": status.state.value, "detail": result.detail, "speedup": result.speedup}
    return row | _search(result, candidates) | {"workloads": list(_workloads(result))}


def _search(result: JobResult, candidates: tuple[CandidateView, ...]) -> dict[str, Any]:
    """What the rules found and how far the search came."""
    reason = result.reason
    return {
        "parameters": [p.name for p in candidates[0].space.parameters] if candidates else [],
        "rules": [a.rule for a in candidates[0].applied] if candidates else [],
        "declined": list(candidates[0].declined) if candidates else [],
        "configurations": candidates[0].feasible if candidates else None,
        "trials": result.trials_measured + result.trials_rejected + result.trials_cut_short,
        "rejected": result.trials_rejected,
        "rejections": [f"{r.stage}: {r.reason} ({r.count})" for r in result.rejections],
        "end": None if reason is None else reason.code.value,
        "why": "" if reason is None else reason.sentence,
        "searched": "" if reason is None else reason.search,
        "trials_per_second": result.trials_per_second,
    }


def _workloads(result: JobResult) -> Iterator[dict[str, Any]]:
    """Every workload of the job, with its verified figures if there are any."""
    compared = {c.workload: c for c in result.comparisons}
    kept = {n.workload: n.best_us for n in result.no_gain}
    served = {d.workload: d.configuration for d in result.dispatch}
    baselines = {t.workload: t for t in result.baseline}
    for workload in result.job.workloads:
        row: dict[str, Any] = {"workload": workload.key}
        found = compared.get(workload.key)
        if found is not None:
            row |= {
                "baseline_us": found.baseline_us,
                "best_us": found.best_us,
                "speedup": found.speedup.model_dump(),
                "verdict": found.verdict.value,
                "share": found.floor_share,
            }
        elif workload.key in baselines:
            cold = baselines[workload.key].model_dump()
            row |= {"baseline": cold, "best_in_search_us": kept.get(workload.key)}
        yield row | {"configuration": served.get(workload.key)}


def mean_speedup(rows: list[dict[str, Any]]) -> float | None:
    """Geometric mean over all jobs that ran; one without a result counts as 1."""
    logs = [math.log(row.get("speedup") or 1.0) for row in rows if "not_made" not in row]
    return math.exp(sum(logs) / len(logs)) if logs else None


def page(record: dict[str, Any]) -> str:
    """The record as Markdown."""
    rows = record["jobs"]
    mean = mean_speedup(rows)
    ran = [r for r in rows if "not_made" not in r]
    gains = sum((r.get("speedup") or 1.0) > 1.0 for r in ran)
    lines = [
        "# Production kernels, tuned by the offline rules",
        "",
        f"{record['device']}, {record['driver']}, commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        f"Geometric mean over {len(ran)} jobs: {mean:.2f}x; {gains} gain." if mean else "No job ran.",
        "Stages: seconds of the baseline, of the search and of the verification.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    for row in rows:
        lines += _lines(row)
    return "\n".join(lines) + "\n"


def _lines(row: dict[str, Any]) -> Iterator[str]:
    lost = row.get("not_made") or row.get("failed")
    if lost:
        yield f"| {row['job']} | - | - | - | - | - | - | - | - | {_cell(lost)} |"
        return
    stages = " / ".join(f"{row['stages_s'][s]:g}" for s in ("baseline", "search", "verification"))
    names = " ".join(p.removeprefix("WS_") for p in row["parameters"]) or "none"
    first = (row["job"], names, row["configurations"], row["trials"])
    last = (stages, f"{row['end']}: {row['searched'] or row['why'] or row['detail']}")
    for n, workload in enumerate(row["workloads"]):
        cells = first if n == 0 else ("", "", "", "")
        end = last if n == 0 else ("", "")
        yield f"| {' | '.join(_cell(str(c)) for c in (*cells, *_measured(workload), *end))} |"


def _measured(workload: dict[str, Any]) -> tuple[str, str, str, str]:
    """Cells of a workload: its dimensions, times, speed-up and share of the floor."""
    name = workload["workload"]
    if "speedup" not in workload:
        before = (workload.get("baseline") or {}).get("cold") or {}
        shown = f"{before['median_us']:.2f}" if "median_us" in before else "-"
        return name, shown, "1.00, kept", "-"
    gain, share = workload["speedup"], workload["share"]
    words = f"{gain['estimate']:.2f} [{gain['low']:.2f}, {gain['high']:.2f}] {workload['verdict']}"
    times = f"{workload['baseline_us']:.2f} → {workload['best_us']:.2f}"
    return name, times, words, "-" if share is None else f"{share:.2f}"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:200]


def jobs_of(options: argparse.Namespace) -> Iterator[Made]:
    """The jobs that the command line asks for."""
    if options.jobs_dir is None:
        roots = fetch_all(options.checkouts, options.mirrors)
        yield from made_jobs(roots, options.seconds or 40.0, options.jobs)
        return
    for path in sorted(options.jobs_dir.glob("*.json")):
        if not is_wanted(path.stem, options.jobs):
            continue
        job = load_job(path)
        if options.seconds is not None:
            budget = job.budget.model_copy(update={"seconds": options.seconds})
            job = job.model_copy(update={"budget": budget})
        yield Made(path.stem, job)


def until(seconds: float, made: Iterator[Made]) -> Iterator[Made]:
    """Jobs that begin before so many seconds have passed."""
    end = time.monotonic() + seconds
    for one in made:
        if time.monotonic() > end:
            return
        yield one


def run_all(made: Iterator[Made], device: DeviceInfo, command: str, out: Path) -> dict[str, Any]:
    """Run jobs one after another and write the record after each."""
    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    record = head(device, command) | {"sources": sources_of_record(), "jobs": rows}
    with tempfile.TemporaryDirectory(prefix="warpsmith-production-") as folder:
        data = Path(folder)
        with embedded_service(data) as client:
            for one in made:
                row = {"job": one.name, "not_made": one.why_not}
                rows.append(row if one.job is None else tuned(client, one.job, data))
                shown = ("job", "seconds", "stages_s", "speedup", "trials", "end", "failed", "not_made")
                print(json.dumps({k: rows[-1][k] for k in shown if k in rows[-1]}), flush=True)
                record["mean_speedup"] = mean_speedup(rows)
                (out / "production.json").write_text(json.dumps(record, indent=1) + "\n")
                (out / "production.md").write_text(page(record))
    return record


def main() -> int:
    """See the module's text. Exits with 1 if a job failed or could not be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    checkout_options(parser)
    parser.add_argument("--jobs-dir", type=Path, help="job files made before, instead of checkouts")
    parser.add_argument("--seconds", type=float, help="budget of each job; 40 if the files do not say")
    parser.add_argument("--jobs", default="", help="names or patterns (fi_*), separated by commas")
    parser.add_argument("--within", type=float, default=math.inf, help="seconds after which no job begins")
    parser.add_argument("--out", type=record_folder, required=True)
    options = parser.parse_args()
    found = [d for d in probe_devices().devices if d.backend is Backend.CUDA]
    if not found:
        print("no CUDA device", file=sys.stderr)
        return 2
    command = "python -m benchmarks.production.run " + " ".join(sys.argv[1:])
    record = run_all(until(options.within, jobs_of(options)), found[0], command, options.out)
    return int(any("failed" in r or "not_made" in r or r["state"] != "done" for r in record["jobs"]))


if __name__ == "__main__":
    sys.exit(main())
