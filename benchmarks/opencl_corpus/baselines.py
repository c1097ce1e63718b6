"""How long baselines of long launches take: PolyBench's gemm at three sizes and Rodinia's kmeans, on PoCL.

    python -m benchmarks.opencl_corpus.baselines --checkouts FOLDER [--mirrors FOLDER] [--seconds S]

Each is a whole job of `warpsmith tune`. Wanted: a quarter of the budget at most, and trials after it.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.opencl_corpus.bindings import bound_jobs
from benchmarks.opencl_corpus.sources import PROJECTS
from benchmarks.opencl_corpus.tune import tuned
from benchmarks.trust.record import RESULTS, first_device, where
from warpsmith.domain.device import Backend

GEMM, KMEANS = "gemm.cl:gemm", "kmeans.cl:kmeans_kernel_c"
CASES: tuple[tuple[str, dict[str, int]], ...] = (
    *((GEMM, {"ni": n, "nj": n, "nk": n}) for n in (256, 512, 1024)),
    (KMEANS, {}),
)
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
    parser.add_argument("--out", type=Path, default=RESULTS / "opencl-corpus")
    arguments = parser.parse_args()
    arguments.checkouts.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for only, sizes in CASES:
        jobs = bound_jobs(arguments.checkouts, arguments.mirrors, arguments.seconds, only, sizes)
        for name, job in jobs:
            with tempfile.TemporaryDirectory(prefix="warpsmith-baseline-") as folder:
                row = tuned(name, job, Path(folder)) | {"sizes": job.workloads[0].key}
                row["baseline_s"] = baseline_seconds(Path(folder))
            rows.append(row)
            shown = ("kernel", "sizes", "baseline_s", "seconds", "speedup", "trials", "why", "failed")
            print(json.dumps({k: row.get(k) for k in shown}), flush=True)
    command = f"python -m benchmarks.opencl_corpus.baselines --seconds {arguments.seconds:g}"
    record = where(first_device(Backend.OPENCL), command)
    record |= {"sources": {p.name: f"{p.repository}@{p.commit}" for p in PROJECTS}, "kernels": rows}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "baselines.json").write_text(json.dumps(record, indent=1) + "\n")
    limit = MOST_SHARE * arguments.seconds
    return int(any(row["baseline_s"] is None or row["baseline_s"] > limit for row in rows))


if __name__ == "__main__":
    sys.exit(main())
