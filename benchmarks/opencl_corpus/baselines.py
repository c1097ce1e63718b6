"""How long baselines of long launches take: PolyBench's gemm at three sizes and Rodinia's kmeans, on PoCL.

    python -m benchmarks.opencl_corpus.baselines --checkouts FOLDER [--mirrors FOLDER] [--only NAME]

Each is a whole job of `warpsmith tune`. Wanted: a quarter of the budget at most, and trials after it. With
60 s gemm 1024 is refused; it then gets what it is told to ask for. A run replaces its own rows of the record.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.opencl_corpus.bindings import bound_jobs
from benchmarks.opencl_corpus.sources import PROJECTS
from benchmarks.opencl_corpus.tune import tuned
from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, where
from warpsmith.domain.device import Backend

GEMM, KMEANS = "gemm.cl:gemm", "kmeans.cl:kmeans_kernel_c"
CASES: tuple[tuple[str, dict[str, int], float], ...] = (
    (GEMM, {"ni": 256, "nj": 256, "nk": 256}, 1.0),
    (GEMM, {"ni": 512, "nj": 512, "nk": 512}, 1.0),
    (GEMM, {"ni": 1024, "nj": 1024, "nk": 1024}, 1.0),
    (GEMM, {"ni": 1024, "nj": 1024, "nk": 1024}, 250 / 60),
    (KMEANS, {}, 1.0),
)
"""Kernel, sizes, and the budget in units of `--seconds`."""
MOST_SHARE = 0.25


def baseline_seconds(data: Path) -> float | None:
    """Seconds of the job's baseline, from the embedded mode's database; None if there was none."""
    for file in data.rglob("warpsmith.db"):
        with sqlite3.connect(file) as database:
            found = database.execute("SELECT result FROM task WHERE kind = 'baseline' ORDER BY id").fetchall()
        for (text,) in found:
            if text:
                return float(json.loads(text)["seconds"])
    return None


def main() -> int:
    """See the module's text. Exits with 1 if a baseline took more than its share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--checkouts", type=Path, required=True, help="folder that the projects are fetched to"
    )
    parser.add_argument(
        "--mirrors", type=Path, help="folder of git directories to fetch from, OWNER+NAME/repo"
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="", help="cases whose kernel or sizes hold this")
    parser.add_argument("--out", type=record_folder, default=RESULTS / "opencl-corpus")
    arguments = parser.parse_args()
    arguments.checkouts.mkdir(parents=True, exist_ok=True)
    command = f"python -m benchmarks.opencl_corpus.baselines --seconds {arguments.seconds:g}"
    record = where(first_device(Backend.OPENCL), command)
    rows = [
        row | {"commit": record["commit"], "when": record["when"]}
        for case in CASES
        for row in _measured(arguments, *case)
    ]
    file = arguments.out / "baselines.json"
    kept = json.loads(file.read_text())["kernels"] if file.exists() else []
    made = {(row["kernel"], row["sizes"], row["budget_s"]) for row in rows}
    rows = sorted(
        [*rows, *(row for row in kept if (row["kernel"], row["sizes"], row["budget_s"]) not in made)],
        key=lambda row: (row["kernel"], row["baseline_s"] or 0.0),
    )
    record |= {"sources": {p.name: f"{p.repository}@{p.commit}" for p in PROJECTS}, "kernels": rows}
    file.write_text(json.dumps(record, indent=1) + "\n")
    late = [r for r in rows if r["baseline_s"] is None or r["baseline_s"] > MOST_SHARE * r["budget_s"]]
    return int(bool(late))


def _measured(
    arguments: argparse.Namespace, only: str, sizes: dict[str, int], factor: float
) -> Iterator[dict[str, Any]]:
    seconds = round(factor * arguments.seconds, 1)
    for name, job in bound_jobs(arguments.checkouts, arguments.mirrors, seconds, only, sizes):
        size = job.workloads[0].key
        if arguments.only not in f"{name} {size}":
            continue
        with tempfile.TemporaryDirectory(prefix="warpsmith-baseline-") as folder:
            row = tuned(name, job, Path(folder)) | {"sizes": size, "budget_s": seconds}
            row["baseline_s"] = baseline_seconds(Path(folder))
        shown = ("kernel", "sizes", "budget_s", "baseline_s", "seconds", "speedup", "trials", "why", "failed")
        print(json.dumps({k: row.get(k) for k in shown}), flush=True)
        yield row


if __name__ == "__main__":
    sys.exit(main())
