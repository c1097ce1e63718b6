"""The demo as a new user meets it: a fresh clone, its installation, and runs beside other work.

    python -m benchmarks.first_hour.demo --out OUT [--runs 10] [--busy 4]

Writes `OUT/demo.json` and `OUT/demo.md`. The first run is `make demo` in a fresh clone without an
environment, on an otherwise idle machine; the others are runs of the demo alone, with `--busy` processes
beside them that each keep a core busy.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.provenance import ROOT, head, record_folder
from benchmarks.trust.record import RESULTS, first_device
from warpsmith.domain.device import Backend

WANTED_SPEEDUP = 1.5
WANTED_INSTALL_S = 120.0


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Processes that each keep a core busy."""
    made = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in made:
            process.kill()
            process.wait()


def run(command: list[str], folder: Path, out: Path) -> dict[str, Any]:
    """One run of the demo: seconds, and what its result says."""
    began = time.monotonic()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    # A folder of its own: a new user has no earlier trials to reuse.
    data = out / f"data-{time.monotonic_ns()}"
    environment["WARPSMITH_DATA_DIR"] = str(data)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    row: dict[str, Any] = {
        "seconds": round(time.monotonic() - began, 1),
        "exit": done.returncode,
        "load": round(os.getloadavg()[0], 1),
    }
    result = out / "result.json"
    if not result.exists():
        return row | {"failed": (done.stdout + done.stderr)[-500:]}
    told = json.loads(result.read_text())
    result.unlink()
    return row | {
        "speedup": told["speedup"],
        "verdicts": [c["verdict"] for c in told["comparisons"]],
        "speedups": [round(c["speedup"]["estimate"], 2) for c in told["comparisons"]],
        "trials": told["trials_measured"] + told["trials_rejected"],
    }


def gained(row: dict[str, Any]) -> bool:
    """True if every workload is faster, and by as much as is wanted together."""
    return (
        bool(row.get("verdicts"))
        and all(v == "faster" for v in row["verdicts"])
        and row["speedup"] >= WANTED_SPEEDUP
    )


def fresh_clone(folder: Path) -> dict[str, Any]:
    """`make demo` in a clone of the committed tree, installation included."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    return run(["make", "demo"], clone, clone)


def _cells(row: dict[str, Any]) -> str:
    end = f"{row['seconds']} | {row['load']}"
    if "failed" in row:
        return f"failed, exit {row['exit']} | | | | {end}"
    speedups, verdicts = ", ".join(map(str, row["speedups"])), ", ".join(row["verdicts"])
    return f"{row['speedup']:.2f} | {speedups} | {verdicts} | {row['trials']} | {end}"


def page(record: dict[str, Any]) -> str:
    """The record as a page."""
    first, rows = record["fresh_clone"], record["runs"]
    lines = [
        f"# The demo on {record['device']}",
        "",
        f"Commit {record['commit']}, {record['when']}, {record['cores']} cores. `{record['command']}`",
        "",
    ]
    if first:
        lines += [
            f"`make demo` in a fresh clone, with installation: {first['seconds']:.0f} s, "
            f"{first.get('speedup') or 0:.2f}x.",
            "",
        ]
    lines += [
        f"With {record['busy']} busy processes beside it: {sum(map(gained, rows))} of {len(rows)} runs "
        f"faster on every workload and at least {WANTED_SPEEDUP}x.",
        "",
        "| run | speed-up | workloads | verdicts | trials | seconds | load |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {number} | {_cells(row)} |" for number, row in enumerate(rows, 1)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """See the module's text. Exits with 1 if a run did not gain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=record_folder, default=RESULTS / "first-hour")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--no-clone", action="store_true", help="leave out the fresh clone")
    arguments = parser.parse_args()
    command = f"python -m benchmarks.first_hour.demo --runs {arguments.runs} --busy {arguments.busy}"
    record = head(first_device(Backend.OPENCL), command)
    record |= {"cores": os.cpu_count(), "busy": arguments.busy, "fresh_clone": None, "runs": []}
    with tempfile.TemporaryDirectory(prefix="warpsmith-demo-") as name:
        folder = Path(name)
        if not arguments.no_clone:
            record["fresh_clone"] = fresh_clone(folder)
            print(json.dumps(record["fresh_clone"]), flush=True)
        with busy_processes(arguments.busy):
            for _ in range(arguments.runs):
                demo = [sys.executable, "-m", "warpsmith", "demo", "--out", str(folder)]
                row = run(demo, ROOT, folder)
                print(json.dumps(row), flush=True)
                record["runs"].append(row)
                # After each, so that what was measured stays if the rest does not come.
                (arguments.out / "demo.json").write_text(json.dumps(record, indent=1) + "\n")
                (arguments.out / "demo.md").write_text(page(record))
    return int(not all(map(gained, record["runs"])))


if __name__ == "__main__":
    sys.exit(main())
