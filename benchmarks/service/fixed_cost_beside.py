"""What two versions of the service cost a job, in one run: fixed cost, and trials a second of the search.

    python -m benchmarks.service.fixed_cost_beside --before CHECKOUT --out FILE [--rounds 3] [--smoke]

CHECKOUT is another version, as `git worktree add` makes it. Each round runs `benchmarks.service.fixed_cost`
there and here, in turns that change their order, with the packages of this environment. Job, shapes and
budget are the same.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.provenance import ROOT

Row = dict[str, Any]
KINDS = ("before", "now")
FIGURES = {
    "baseline": "seconds of the baseline",
    "verification": "seconds of the verification",
    "first_trial": "seconds to the first trial",
    "trials_per_second": "trials a second of the search",
}


def once(checkout: Path, words: Sequence[str]) -> Row:
    """The record of one job in a checkout.

    Raises:
        RuntimeError: it wrote none; says what it printed.
    """
    with tempfile.TemporaryDirectory(prefix="warpsmith-beside-") as folder:
        out = Path(folder) / "record.json"
        command = [sys.executable, "-m", "benchmarks.service.fixed_cost", "--out", str(out), *words]
        kept = os.environ | {"PYTHONPATH": str(checkout)}
        done = subprocess.run(command, cwd=checkout, env=kept, capture_output=True, text=True, check=False)
        if not out.exists():
            raise RuntimeError(f"{checkout}: {done.stderr[-2000:]}")
        found: Row = json.loads(out.read_text())
        return found


def figures(record: Mapping[str, Any]) -> dict[str, float]:
    """The figures of one job."""
    stages = record["stages"]
    return {
        "baseline": stages["baseline"]["seconds"],
        "verification": stages["verification"]["seconds"],
        "first_trial": record["first_trial_s"],
        "trials_per_second": record["trials"] / stages["search"]["seconds"],
    }


def page(record: Mapping[str, Any]) -> str:
    """The record as Markdown."""
    commits = record["commits"]
    lines = [
        "# Fixed cost of a job, before and now",
        "",
        f"{record['device']}, {record['driver']}; commits {commits['before']} and {commits['now']}, "
        f"{record['when']}. `{record['command']}`",
        "",
        f"{record['job']} on {'; '.join(record['workloads'])}; budget {record['budget_s']:g} s.",
        "",
        "| figure | before | now | ratio of medians |",
        "|---|---|---|---|",
    ]
    for key, title in FIGURES.items():
        before, now = ([figures(r)[key] for r in record["jobs"][kind]] for kind in KINDS)
        shown = (", ".join(f"{v:.2f}" for v in values) for values in (before, now))
        lines.append(f"| {title} | {next(shown)} | {next(shown)} | {median(now) / median(before):.2f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """See the module's text; exits with 1 if a job did not end as done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of another version")
    parser.add_argument("--out", type=Path, required=True, help="JSON file; the table goes beside it as .md")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="small shapes and a budget of 8 seconds")
    parser.add_argument("--seconds", type=float, help="budget of a job")
    options = parser.parse_args()
    words = ["--smoke"] * options.smoke + (["--seconds", f"{options.seconds:g}"] if options.seconds else [])
    places = {"before": options.before.resolve(), "now": ROOT}
    jobs: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    for turn in range(options.rounds):
        for kind in KINDS if turn % 2 == 0 else reversed(KINDS):
            jobs[kind].append(once(places[kind], words))
            print(kind, figures(jobs[kind][-1]), flush=True)
    last = jobs["now"][-1]
    record = {key: last[key] for key in ("device", "driver", "when", "job", "workloads", "budget_s")}
    given = [f"--rounds {options.rounds}", *words]
    record["command"] = f"python -m benchmarks.service.fixed_cost_beside {' '.join(given)}"
    record |= {"commits": {kind: rows[-1]["commit"] for kind, rows in jobs.items()}, "jobs": jobs}
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(page(record))
    print(page(record))
    return int(any(row["ended"] != "done" for rows in jobs.values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
