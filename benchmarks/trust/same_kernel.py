"""A kernel against itself: how often noise would be called faster or slower.

    python -m benchmarks.trust.same_kernel [--backend opencl|cuda] [--comparisons 200] [--resume RECORD]

Each comparison is what a winner gets (`verify_winners`: fresh processes, interleaved blocks, interval,
margin of the device's own noise), with the user's kernel in the place of the winner.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, in_words, share, where
from testbed.adversarial.corpus import WORKLOADS, task_job
from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Measured, Verdict
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import CompilePool
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners

CLAIMS = (Verdict.FASTER, Verdict.SLOWER)


def compare(
    harness: Harness, backend: Backend, comparisons: int, seconds: float, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """`rows` and more, until there are `comparisons`, over all tasks in turn; fewer where time is up."""
    until = time.monotonic() + seconds
    while len(rows) < comparisons and time.monotonic() < until:
        for task in WORKLOADS:
            began = time.monotonic()
            rows += [{"task": task} | row for row in one(harness, task_job(task, backend))]
            print(f"{task}: {len(rows)} done, {time.monotonic() - began:.1f} s", flush=True)
            if len(rows) >= comparisons or time.monotonic() > until:
                break
    return rows


def one(harness: Harness, job: Job) -> list[dict[str, Any]]:
    """The kernel of a job against itself, on every workload."""
    bench, baseline = harness.baseline(job)
    template = Template(kernel=job.kernel, space=job.space)
    timings = tuple(t.model_copy(update={"max_error": 0.0}) for t in baseline.timings)
    finalist = Finalist("itself", template, job.space.defaults, Measured(timings=timings, objective=1.0))
    bench.renew()
    result = verify_winners(
        job,
        harness.ports,
        [finalist],
        ComparisonPlan(harness.pairs, baseline.aa_widths, least_gain=None),
        lambda: True,
        baseline,
    )
    if result.withdrawn:
        raise SystemExit(f"{job.name}: the kernel itself was refused: {[*map(str, result.withdrawn)]}")
    return [
        {
            "workload": c.workload,
            "verdict": c.verdict.value,
            "speedup": c.speedup.model_dump(),
            "aa_width": c.aa_width,
        }
        for c in result.comparisons
    ]


def _of_before(path: Path, commit: str) -> list[dict[str, Any]]:
    record = json.loads(path.read_text())
    if record["commit"] != commit:
        raise SystemExit(f"--resume: that record is of commit {record['commit']}, and this is {commit}")
    return list(record["comparisons"])


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="opencl", choices=["opencl", "cuda"])
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=36_000)
    parser.add_argument("--resume", type=Path, help="a record of the same commit, to which more is added")
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    arguments = parser.parse_args()
    backend = Backend(arguments.backend)
    device = first_device(backend)
    command = "python -m benchmarks.trust.same_kernel " + " ".join(sys.argv[1:])
    record = where(device, command)
    before = [] if arguments.resume is None else _of_before(arguments.resume, record["commit"])
    pool = CompilePool()
    harness = Harness(device, pool, pairs=arguments.pairs)
    try:
        rows = compare(harness, backend, arguments.comparisons, arguments.seconds, before)
    finally:
        harness.close()
        pool.close()
    claims = share(sum(r["verdict"] in CLAIMS for r in rows), len(rows))
    counts = {v.value: sum(r["verdict"] == v for r in rows) for v in Verdict}
    record |= {"pairs": arguments.pairs, "false_claims": claims, "verdicts": counts, "comparisons": rows}
    name = "same-kernel-pocl" if device.shares_host else f"same-kernel-{backend.value}"
    (arguments.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    words = in_words(claims)
    print(f"false claims: {words}; verdicts {counts}")
    (arguments.out / f"{name}.md").write_text(
        f"# A kernel against itself on {device.name}\n\n"
        f"{device.driver}. Commit {record['commit']}, {record['when']}. `{record['command']}`\n\n"
        f"Called faster or slower: {words}. "
        + ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        + f"; {arguments.pairs} pairs of blocks each.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
