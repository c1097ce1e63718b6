"""Kernels that round floats to integers: how often right candidates are refused, and wrong ones accepted.

    python -m benchmarks.trust.rounded_integers [--jobs 40] [--seconds 3600]

Each job of each kernel of `testbed.rounded_integers` has a baseline and inputs of its own. One right
candidate and one wrong one, in turn, go through all checks of a first trial and of a winner.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, in_words, share, where
from testbed.adversarial.harness import Harness
from testbed.rounded_integers import ROUNDINGS, Rounding
from warpsmith.domain.device import Backend
from warpsmith.domain.template import Template
from warpsmith.sandbox import CompilePool

NAME = "trust-rounded-integers"


def one(harness: Harness, rounding: Rounding, number: int) -> dict[str, Any]:
    """What becomes of the candidates of one job."""
    job = rounding.job()
    found: dict[str, Any] = {"kernel": rounding.name}
    for kind, elements in (("right", rounding.right), ("wrong", rounding.wrong)):
        element = elements[number % len(elements)]
        kernel = job.kernel.model_copy(update={"source": rounding.source(element)})
        verdict = harness.try_candidate(job, Template(kernel=kernel))
        found[kind] = {"element": element, "accepted": verdict.accepted, "reason": verdict.reason}
    harness.close()
    return found


def run(harness: Harness, jobs: int, seconds: float) -> list[dict[str, Any]]:
    """So many jobs of each kernel, in turn, or fewer where time is up."""
    rows: list[dict[str, Any]] = []
    until = time.monotonic() + seconds
    for number in range(jobs):
        for rounding in ROUNDINGS:
            if time.monotonic() > until:
                return rows
            rows.append(one(harness, rounding, number))
        print(f"{len(rows)} jobs", flush=True)
    return rows


def main() -> int:
    """See the module's text. Exit status 1: a right candidate was refused, or a wrong one accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=40, help="of each kernel")
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    arguments = parser.parse_args()
    device = first_device(Backend.OPENCL)
    record = where(device, "python -m benchmarks.trust.rounded_integers " + " ".join(sys.argv[1:]))
    pool = CompilePool()
    harness = Harness(device, pool)
    try:
        rows = run(harness, arguments.jobs, arguments.seconds)
    finally:
        harness.close()
        pool.close()
    return _written(arguments.out, record, rows)


def _written(out: Path, record: dict[str, Any], rows: list[dict[str, Any]]) -> int:
    refused = [r for r in rows if not r["right"]["accepted"]]
    accepted = [r for r in rows if r["wrong"]["accepted"]]
    rates = {"refused": share(len(refused), len(rows)), "accepted": share(len(accepted), len(rows))}
    (out / f"{NAME}.json").write_text(json.dumps(record | rates | {"jobs": rows}, indent=1) + "\n")
    text = (
        f"# Integers that floats are rounded to, on {record['device']}\n\n"
        f"{record['driver']}. Commit {record['commit']}, {record['when']}. `{record['command']}`\n\n"
        f"{len(ROUNDINGS)} kernels, {len(rows)} jobs, each with a baseline and inputs of its own.\n\n"
        f"- Right candidates refused: {in_words(rates['refused'])}.\n"
        f"- Wrong candidates accepted: {in_words(rates['accepted'])}.\n"
    )
    text += "".join(f"- Refused: `{r['right']['element']}`, {r['right']['reason']}\n" for r in refused)
    text += "".join(f"- Accepted: `{r['wrong']['element']}`\n" for r in accepted)
    (out / f"{NAME}.md").write_text(text)
    print(text)
    return 1 if refused or accepted else 0


if __name__ == "__main__":
    sys.exit(main())
