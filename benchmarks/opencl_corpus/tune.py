"""Tune kernels that others wrote, each as a user would: `warpsmith tune`, the offline rules, PoCL.

    python -m benchmarks.opencl_corpus.tune --checkouts FOLDER [--mirrors FOLDER] [--seconds S] [--only NAME]

A job is its own process, so that a failure costs one row. The record has the verified speed-up with its
interval, or the reason why there is none, and seconds from the command to the result.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.opencl_corpus.bindings import bound_jobs
from benchmarks.opencl_corpus.sources import PROJECTS
from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, where
from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job

BEYOND_S = 180.0
"""That a job may take beyond its budget before it counts as one that does not end."""


def tuned(name: str, job: Job, folder: Path) -> dict[str, Any]:
    """One row of the record."""
    (folder / "job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "warpsmith", "tune", str(folder / "job.json"), "--out", str(folder)]
    environment = os.environ | {"WARPSMITH_DATA_DIR": str(folder / "data")}
    began = time.monotonic()
    with (folder / "log.txt").open("w") as log:
        try:
            limit = job.budget.seconds + BEYOND_S
            ran = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=limit, check=False)
            ended = f"exit {ran.returncode}"
        except subprocess.TimeoutExpired:
            ended = f"no end after {limit:.0f} s"
    row: dict[str, Any] = {"kernel": name, "seconds": round(time.monotonic() - began, 1)}
    found = folder / "result.json"
    if not found.exists():
        tail = (folder / "log.txt").read_text(errors="replace")[-400:]
        return row | {"failed": f"{ended}: {tail}"}
    return row | shortened(json.loads(found.read_text()))


def shortened(result: dict[str, Any]) -> dict[str, Any]:
    """The figures of a result; sources follow from the commit, the rules and the configuration."""
    templates = result["candidates"]
    return {
        "state": result["state"],
        "detail": result["detail"],
        "why": (result.get("reason") or {}).get("sentence", ""),
        "speedup": result["speedup"],
        "comparisons": result["comparisons"],
        "rules": [a["rule"] for c in templates[:1] for a in c.get("applied", ())],
        "configuration": [d.get("configuration") for d in result["dispatch"]],
        "trials": result["trials_measured"] + result["trials_rejected"] + result["trials_cut_short"],
        "rejections": [{k: r[k] for k in ("stage", "reason", "count")} for r in result["rejections"]],
    }


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--checkouts", type=Path, required=True, help="folder that the projects are fetched to"
    )
    parser.add_argument(
        "--mirrors", type=Path, help="folder of git directories to fetch from, OWNER+NAME/repo"
    )
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--out", type=record_folder, default=RESULTS / "opencl-corpus")
    parser.add_argument("--name", default="tuned")
    arguments = parser.parse_args()
    arguments.checkouts.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, job in bound_jobs(arguments.checkouts, arguments.mirrors, arguments.seconds, arguments.only):
        with tempfile.TemporaryDirectory(prefix="warpsmith-corpus-") as folder:
            rows.append(tuned(name, job, Path(folder)))
        print(
            json.dumps(
                {k: rows[-1].get(k) for k in ("kernel", "seconds", "speedup", "trials", "why", "failed")}
            ),
            flush=True,
        )
    record = where(
        first_device(Backend.OPENCL),
        f"python -m benchmarks.opencl_corpus.tune --seconds {arguments.seconds:g}",
    )
    record |= {"sources": {p.name: f"{p.repository}@{p.commit}" for p in PROJECTS}, "kernels": rows}
    (arguments.out / f"{arguments.name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (arguments.out / f"{arguments.name}.md").write_text(page(record))
    return 0


def page(record: dict[str, Any]) -> str:
    """The record as Markdown."""
    lines = [
        "# OpenCL kernels that others wrote, tuned on PoCL by the offline rules",
        "",
        f"{record['device']}, {record['driver']}, commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        "| kernel | speed-up [95 %] | before → after, µs | chosen | trials | seconds | why no more |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in record["kernels"]:
        if "failed" in row:
            lines.append(
                f"| {row['kernel']} | failed | - | - | - | {row['seconds']} | {_cell(row['failed'])} |"
            )
            continue
        found = row["comparisons"][0] if row["comparisons"] else None
        gain = times = "-"
        if found is not None:
            s = found["speedup"]
            gain = f"{s['estimate']:.2f} [{s['low']:.2f}, {s['high']:.2f}] {found['verdict']}"
            times = f"{found['baseline_us']:.0f} → {found['best_us']:.0f}"
        chosen = next((c for c in row["configuration"] if c), None) or {}
        words = ", ".join(f"{k.removeprefix('WS_')}={v}" for k, v in chosen.items()) or "kept"
        cells = (row["kernel"], gain, times, words, row["trials"], row["seconds"])
        why = _cell(row["why"] or row["detail"])
        lines.append(f"| {' | '.join(str(c) for c in cells)} | {why} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:200]


if __name__ == "__main__":
    sys.exit(main())
