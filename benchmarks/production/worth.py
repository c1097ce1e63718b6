"""What is one parameter of the rules worth? The same configurations with each of its values.

    python -m benchmarks.production.worth --jobs-dir DIR --parameter WS_FIXED [--count 24] [--jobs NAMES]
        [--seconds 20] [--within 400] [--out DIR]

For every job whose template has the parameter, configurations are drawn from the space and measured once
with each value of it, by a slice like a job's own. The page gives, for each workload, the best time with each
value and the geometric mean of the pairs (the first value's time over another's; above 1: it is faster).
Writes `worth-PARAMETER.json` and `.md`.
"""

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.production.jobs import is_wanted
from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, where
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.job import Job, SearcherName
from warpsmith.domain.outcome import Measured, Outcome
from warpsmith.domain.space import Configuration, ParameterValue
from warpsmith.domain.template import Template
from warpsmith.jobfile import load_job
from warpsmith.rewrite.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.search import enumerate_space, make_searcher
from warpsmith.testing.fakes import ListSink
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice

Row = dict[str, Any]


def families(
    job: Job, template: Template, device: DeviceInfo, parameter: str, count: int
) -> list[list[Configuration]]:
    """Drawn configurations, each once for every value of the parameter; only those that may exist."""
    values = next(p.values for p in template.space.parameters if p.name == parameter)
    scopes = [device.scope() | w.scope() for w in job.workloads]
    feasible = enumerate_space(template.space, scopes)
    known = {_key(feasible.configuration(n)) for n in range(feasible.count)}
    drawn = [template.space.defaults]
    rows = random.Random(job.name).sample(range(feasible.count), feasible.count)
    drawn += [feasible.configuration(n) for n in rows]
    found: dict[tuple[Any, ...], list[Configuration]] = {}
    for configuration in drawn:
        family = [{**configuration, parameter: value} for value in values]
        if all(_key(c) in known for c in family):
            found.setdefault(_key(family[0]), family)
        if len(found) == count:
            break
    return list(found.values())


def _key(configuration: Mapping[str, ParameterValue]) -> tuple[Any, ...]:
    return tuple(sorted(configuration.items()))


def row_of(
    job: Job, parameter: str, made: Sequence[Sequence[Configuration]], outcomes: Mapping[Any, Outcome]
) -> Row:
    """Best times and paired ratios of a job, by workload and value."""
    workloads = []
    for workload in job.workloads:
        best: dict[str, float] = {}
        ratios: dict[str, list[float]] = {}
        for family in made:
            times = [_time(job, outcomes.get(_key(c)), workload.key) for c in family]
            for configuration, us in zip(family, times, strict=True):
                value = str(configuration[parameter])
                if us is not None:
                    best[value] = min(us, best.get(value, math.inf))
                    if times[0] is not None:
                        ratios.setdefault(value, []).append(times[0] / us)
        means = {v: math.exp(sum(map(math.log, r)) / len(r)) for v, r in ratios.items()}
        workloads.append({"workload": workload.key, "best_us": best, "paired": means})
    failed = sum(not isinstance(o, Measured) for o in outcomes.values())
    return {"job": job.name, "families": len(made), "failed": failed, "workloads": workloads}


def _time(job: Job, outcome: Outcome | None, workload: str) -> float | None:
    if not isinstance(outcome, Measured):
        return None
    return next((time_us(job, t) for t in outcome.timings if t.workload == workload), None)


def measured(
    job: Job, device: DeviceInfo, pool: CompilePool, parameter: str, count: int, seconds: float
) -> Row | None:
    """One job's row; None if its template lacks the parameter."""
    template = make_template(job).template
    if all(p.name != parameter for p in template.space.parameters):
        return None
    session = DeviceSession(job, SessionPorts(ChildOpener(device), pool, ReferenceRunner()))
    sink = ListSink()
    try:
        baseline = measure_baseline(session)
        if baseline.refused:
            return {"job": job.name, "refused": baseline.refused}
        made = families(job, template, device, parameter, count)
        flat = [c for family in made for c in family]
        scopes = [device.scope() | w.scope() for w in job.workloads]
        searcher = make_searcher(SearcherName.RANDOM, enumerate_space(template.space, scopes), seed=0)
        limits = SliceLimits(seconds, len(flat), compile_ahead=2 * (os.cpu_count() or 1))
        run_slice(session, template, baseline, searcher, sink, limits, SliceStart(gate=False, leftover=flat))
    finally:
        session.close()
    return row_of(job, parameter, made, {_key(c): o for c, o in sink.trials})


def page(record: Row) -> str:
    """The record as a page."""
    lines = [
        f"# What {record['parameter']} is worth on production kernels",
        "",
        f"{record['device']}, {record['driver']}, commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        "Best: the lowest time with each value, in µs. Paired: geometric mean of the first value's time over",
        "this value's, over configurations that differ in this parameter only.",
        "",
        "| kernel | workload | pairs | best | paired |",
        "|---|---|---|---|---|",
    ]
    for row in record["rows"]:
        if "refused" in row:
            lines.append(f"| {row['job']} | refused: {row['refused'][:100]} | | | |")
            continue
        for w in row["workloads"]:
            best = ", ".join(f"{v}: {us:.2f}" for v, us in w["best_us"].items())
            paired = ", ".join(f"{v}: {r:.2f}" for v, r in w["paired"].items())
            lines.append(f"| {row['job']} | {w['workload']} | {row['families']} | {best} | {paired} |")
    return "\n".join(lines) + "\n"


def _whole(job: Job) -> Job:
    """The job without early ends, which would leave pairs half measured."""
    return job.model_copy(update={"budget": job.budget.model_copy(update={"stop_early": False})})


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs-dir", type=Path, required=True)
    parser.add_argument("--parameter", required=True)
    parser.add_argument("--count", type=int, default=24, help="configurations of each job, for each value")
    parser.add_argument("--jobs", default="", help="names or patterns (fi_*), separated by commas")
    parser.add_argument("--seconds", type=float, default=20, help="for the trials of each job")
    parser.add_argument("--within", type=float, default=400, help="no job begins after so many seconds")
    parser.add_argument("--out", type=record_folder, default=RESULTS / "production")
    options = parser.parse_args()
    paths = sorted(p for p in options.jobs_dir.iterdir() if p.suffix in (".json", ".yaml"))
    jobs = [_whole(load_job(p)) for p in paths if is_wanted(p.stem, options.jobs)]
    device = first_device(jobs[0].kernel.backend)
    pool, rows, began = CompilePool(os.cpu_count() or 1), [], time.monotonic()
    for job in jobs:
        if time.monotonic() - began > options.within:
            break
        row = measured(job, device, pool, options.parameter, options.count, options.seconds)
        if row is not None:
            rows.append(row)
            print(json.dumps(row), flush=True)
    pool.close()
    record = where(device, "python -m benchmarks.production.worth " + " ".join(sys.argv[1:]))
    record |= {"parameter": options.parameter, "rows": rows}
    name = f"worth-{options.parameter.removeprefix('WS_').lower()}"
    (options.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (options.out / f"{name}.md").write_text(page(record))
    print(page(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
