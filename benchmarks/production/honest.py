"""Are templates of production kernels accepted, in whatever configuration? Each is honest, so each must be.

    python -m benchmarks.production.honest --jobs-dir DIR [--drawn 2] [--rounds 1] [--processes 4]

Every job file of DIR (see `benchmarks.production.jobs`) is cut to its smallest workload. Its template by
the rules goes through the whole acceptance procedure, as a first-time trial and as a winner, with its
defaults and with configurations drawn from the whole space. A refusal is a fault
of ours: a rule is wrong, or a check. Configurations with fast arithmetic are counted apart: they are less
exact than the kernel, and whether they are exact enough is for the checks to say. Writes `honest.json` and
`honest.md`.
"""

import argparse
import json
import math
import multiprocessing
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, in_words, share, where
from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.job_files.jobfile import load_job
from warpsmith.sandbox import CompilePool
from warpsmith.search import enumerate_space

Row = dict[str, Any]
PAIRS = 4
"""Paired processes of a winner's comparison: enough for its checks, and no figure is reported."""
NO_ROOM = "too many resources requested"
"""The driver's words for a block that needs more registers than there are: known only once it is compiled."""
FAST_MATH = "WS_FAST_MATH"
"""The parameter of arithmetic that is less exact."""
RUN_TIMEOUT_S = 20.0
"""Deadline of one launch or timing, on a device that several processes share."""


def smallest(job: Job) -> Job:
    """The job with the one workload whose dimensions are the smallest."""

    def size(workload: Workload) -> int:
        return math.prod(workload.dimensions.values())

    return job.model_copy(update={"workloads": (min(job.workloads, key=size),)})


def fixed(template: Template, configuration: Configuration) -> Template:
    """The template whose defaults are this configuration."""
    parameters = tuple(
        p.model_copy(update={"default": configuration[p.name]}) for p in template.space.parameters
    )
    return template.model_copy(update={"space": template.space.model_copy(update={"parameters": parameters})})


def tried(path: Path, backend: Backend, drawn: int, until: float) -> list[Row]:
    """What became of one job's configurations; begun after `until` (seconds since 1970), none are tried."""
    if time.time() > until:
        return []
    job = smallest(load_job(path))
    template = make_template(job).template
    harness = Harness(first_device(backend), pool := CompilePool(2), PAIRS, RUN_TIMEOUT_S)
    try:
        scope = harness.device.scope() | job.workloads[0].scope()
        feasible = enumerate_space(template.space, [scope])
        rows = random.Random(job.name).sample(range(feasible.count), min(drawn, feasible.count))
        found: list[Row] = []
        for configuration in (template.space.defaults, *(feasible.configuration(r) for r in rows)):
            began = time.monotonic()
            verdict = harness.try_candidate(job, fixed(template, configuration))
            found.append(
                {
                    "job": job.name,
                    "configuration": dict(configuration),
                    "accepted": verdict.accepted,
                    "layer": verdict.layer,
                    "reason": verdict.reason[:500],
                    "seconds": round(time.monotonic() - began, 1),
                }
            )
        return found
    finally:
        harness.close()
        pool.close()


def page(record: Row) -> str:
    """The record as a page."""
    rows = record["rows"]
    lines = [
        "# Honest production kernels through every check",
        "",
        f"{record['device']}, {record['driver']}, commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        f"- Kernels: {len({r['job'] for r in rows})}, rounds: {record['rounds']}; tries that did not begin: "
        f"{len(record['not_begun'])}.",
        f"- Exact configurations that are refused: {in_words(record['refused'])}.",
        f"- Configurations with fast arithmetic that are refused: {in_words(record['refused_fast'])}.",
        f"- Configurations that the device has no room for, out of these: {record['no_room']}.",
        "",
        "| kernel | tried | refused | the first refusal |",
        "|---|---|---|---|",
    ]
    for name in sorted({r["job"] for r in rows}):
        of = [r for r in rows if r["job"] == name]
        refused = [r for r in of if not r["accepted"]]
        why = f"{refused[0]['layer']}: {refused[0]['reason'][:200]}".replace("|", "/") if refused else ""
        lines.append(f"| {name} | {len(of)} | {len(refused)} | {' '.join(why.split())} |")
    lines += [f"| {name} | not begun | | |" for name in sorted(set(record["not_begun"]))]
    return "\n".join(lines) + "\n"


def run(paths: Sequence[Path], drawn: int, processes: int, seconds: float) -> tuple[list[Row], list[str]]:
    """Rows of every job that could begin, and names of the others."""
    until = time.time() + seconds
    rows: list[Row] = []
    left: list[str] = []
    # Not forked: what one process has open is not for the children of the others.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        parts = {pool.submit(tried, p, load_job(p).kernel.backend, drawn, until): p for p in paths}
        for part in as_completed(parts):
            found = part.result()
            rows += found
            left += [] if found else [parts[part].stem]
            for row in found:
                print(json.dumps(row), flush=True)
    return rows, left


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs-dir", type=Path, required=True)
    parser.add_argument("--drawn", type=int, default=2, help="configurations beside the defaults")
    parser.add_argument("--rounds", type=int, default=1, help="times that each job is tried")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=36_000, help="no job begins after that")
    parser.add_argument("--out", type=record_folder, default=RESULTS / "production")
    arguments = parser.parse_args()
    paths = sorted(p for p in arguments.jobs_dir.iterdir() if p.suffix in (".json", ".yaml"))
    rows, left = run(paths * arguments.rounds, arguments.drawn, arguments.processes, arguments.seconds)
    device = first_device(load_job(paths[0]).kernel.backend)
    refused, refused_fast = (refusals([r for r in rows if is_fast(r) is fast]) for fast in (False, True))
    record = where(device, "python -m benchmarks.production.honest " + " ".join(sys.argv[1:]))
    no_room = sum(NO_ROOM in r["reason"] for r in rows)
    record |= {"rounds": arguments.rounds, "refused": refused, "refused_fast": refused_fast}
    record |= {"no_room": no_room, "not_begun": sorted(left), "rows": rows}
    (arguments.out / "honest.json").write_text(json.dumps(record, indent=1) + "\n")
    (arguments.out / "honest.md").write_text(page(record))
    print(page(record))
    return 1 if refused["hits"] > no_room else 0


def is_fast(row: Row) -> bool:
    """Whether a configuration has fast arithmetic."""
    return bool(row["configuration"].get(FAST_MATH))


def refusals(rows: Sequence[Row]) -> Row:
    """The share of the rows that is refused."""
    return share(sum(not r["accepted"] for r in rows), len(rows))


if __name__ == "__main__":
    sys.exit(main())
