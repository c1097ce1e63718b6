"""Whole tuning jobs of nine OpenCL kernels that others wrote, on an older tree and on this one.

    python -m benchmarks.first_hour.jobs --mirrors FOLDER --before COMMIT [--live 20]
    python -m benchmarks.first_hour.jobs --mirrors FOLDER --live 20 [--busy 4]

With `--before`, every job runs on both trees in turn, which writes `OUT/nine-jobs.json` and `.md`. With
`--live`, jobs run on this tree, with other seeds in each round, until that many showed a figure. How far that
is above what is verified goes to `OUT/live-figures.json` and `.md`, beside series with other numbers of busy
processes. Runs of this tree that `--before` made are the first of them. FOLDER has a git directory for each
repository, `OWNER+NAME/repo`.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.first_hour.demo import busy_processes
from benchmarks.first_hour.jobs_record import live_page, live_series, pairs_page, shortened, shown, with_ratio
from benchmarks.first_hour.strangers import KERNELS, Kernel, lay_out
from benchmarks.provenance import ROOT, head, record_folder
from benchmarks.trust.record import RESULTS, first_device
from warpsmith.domain.device import Backend

BEYOND_S = 180.0
"""That a job may take beyond its budget before it counts as one that does not end."""
ROUNDS = 9
"""Of live figures: jobs that show none shall not go on for ever."""
PROGRAM = Path(__file__).with_name("watched_tune.py")
Rows = list[dict[str, Any]]


def older_tree(commit: str, folder: Path) -> Path:
    """The files of a commit, without a repository.

    Raises:
        subprocess.CalledProcessError: there is no such commit; git's message is on stderr.
    """
    folder.mkdir()
    packed = folder.with_suffix(".tar")
    subprocess.run(["git", "archive", "--output", str(packed), commit], cwd=ROOT, check=True)
    subprocess.run(["tar", "-xf", str(packed), "-C", str(folder)], check=True)
    return folder


def run(kernel: Kernel, tree: Path, mirrors: Path, seed: int, seconds: float) -> dict[str, Any]:
    """One job on one tree, with a data folder of its own: nothing is reused.

    Raises:
        RuntimeError: a package came from elsewhere than the tree.
    """
    with tempfile.TemporaryDirectory(prefix="warpsmith-job-") as name:
        folder = Path(name)
        job = lay_out(kernel, mirrors, folder, seed, seconds)
        return {"kernel": kernel.name, "seed": seed} | tuned(job, tree, folder, seconds)


def tuned(job: Path, tree: Path, folder: Path, seconds: float) -> dict[str, Any]:
    """What `warpsmith tune` of a tree shows and finds for a job file.

    Raises:
        RuntimeError: a package came from elsewhere than the tree.
    """
    statuses = folder / "statuses.jsonl"
    # -P: the folder of the program holds no package of the tree, and shall not come before it.
    command = [sys.executable, "-P", str(PROGRAM), str(statuses), str(job), str(folder / "out")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    environment |= {"WARPSMITH_DATA_DIR": str(folder / "data"), "PYTHONPATH": str(tree)}
    began = time.monotonic()
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            ended = f"exit {process.wait(seconds + BEYOND_S)}"
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            ended = f"no end after {seconds + BEYOND_S:.0f} s"
    row = {"seconds": round(time.monotonic() - began, 1), "load": round(os.getloadavg()[0], 1)}
    said = (folder / "log.txt").read_text(errors="replace")
    if not statuses.exists():
        raise RuntimeError(f"{ended}: {said[-400:]}")
    origins, *lines = (json.loads(line) for line in statuses.read_text().splitlines())
    if strange := [place for place in origins.values() if not Path(place).is_relative_to(tree)]:
        raise RuntimeError(f"not of the tree {tree}: {', '.join(strange)}")
    result = folder / "out" / "result.json"
    if not result.exists():
        return row | {"failed": f"{ended}: {said[-400:]}"}
    return row | shown(lines) | shortened(json.loads(result.read_text()))


def pairs(before: Path, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each job on both trees in turn; the tree that goes first changes, as the machine may do."""
    for number, kernel in enumerate(_wanted(arguments.only)):
        trees = {"before": before, "after": ROOT}
        order = list(trees)[:: -1 if number % 2 else 1]
        rows = {which: run(kernel, trees[which], arguments.mirrors, 0, arguments.seconds) for which in order}
        yield {"kernel": kernel.name, "first": order[0]} | {which: rows[which] for which in trees}


def live_rows(made: Rows, arguments: argparse.Namespace) -> Iterator[Rows]:
    """Rows of this tree, one more each time, until enough of them showed a figure.

    Args:
        made: the first of them, with seed 0.
    """
    rows = [with_ratio(row) for row in made]
    yield rows
    rounds = itertools.count(1 if made else 0)
    for seed, kernel in itertools.product(itertools.islice(rounds, ROUNDS), _wanted(arguments.only)):
        if sum(row["ratio"] is not None for row in rows) >= arguments.live:
            return
        rows.append(with_ratio(run(kernel, ROOT, arguments.mirrors, seed, arguments.seconds)))
        print(json.dumps(rows[-1]), flush=True)
        yield rows


def _wanted(only: str) -> list[Kernel]:
    return [kernel for kernel in KERNELS if only in kernel.name]


def _write(out: Path, name: str, record: dict[str, Any], page: str) -> None:
    (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (out / f"{name}.md").write_text(page)


def _pairs_record(arguments: argparse.Namespace, beginning: dict[str, Any]) -> Rows:
    """Measure and write the pairs; returns the rows of this tree."""
    record = beginning | {"before": arguments.before, "seconds": arguments.seconds, "pairs": []}
    with tempfile.TemporaryDirectory(prefix="warpsmith-tree-") as name:
        for pair in pairs(older_tree(arguments.before, Path(name) / "tree"), arguments):
            print(json.dumps(pair), flush=True)
            record["pairs"].append(pair)
            # After each, so that what was measured stays if the rest does not come.
            _write(arguments.out, "nine-jobs", record, pairs_page(record))
    return [pair["after"] for pair in record["pairs"]]


def _live_record(arguments: argparse.Namespace, beginning: dict[str, Any], made: Rows) -> None:
    path = arguments.out / "live-figures.json"
    record = json.loads(path.read_text()) if path.exists() else {"series": []}
    others = [series for series in record["series"] if series["busy"] != arguments.busy]
    with busy_processes(arguments.busy):
        for rows in live_rows(made, arguments):
            series = [*others, beginning | live_series(rows, arguments.busy)]
            record = {"series": sorted(series, key=lambda one: one["busy"])}
            _write(arguments.out, "live-figures", record, live_page(record))


def main() -> int:
    """See the module's text. Exits with 1 if a job failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mirrors", type=Path, required=True, help="folder of git directories")
    parser.add_argument("--before", metavar="COMMIT", help="the older tree")
    parser.add_argument("--live", type=int, default=0, help="rows of live figures")
    parser.add_argument("--busy", type=int, default=0, help="busy processes beside the live figures")
    parser.add_argument("--seconds", type=float, default=40, help="budget of a job")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--out", type=record_folder, default=RESULTS / "first-hour")
    arguments = parser.parse_args()
    if not (arguments.before or arguments.live):
        parser.error("give --before COMMIT, --live N, or both")
    if arguments.before and arguments.busy:
        parser.error("the two trees are compared on a quiet machine; give --busy with --live alone")
    words = [f"--seconds {arguments.seconds:g}"]
    words += [
        f"--{k} {getattr(arguments, k)}" for k in ("before", "live", "busy", "only") if getattr(arguments, k)
    ]
    command = f"python -m benchmarks.first_hour.jobs --mirrors FOLDER {' '.join(words)}"
    beginning = head(first_device(Backend.OPENCL), command)
    beginning |= {"cores": os.cpu_count(), "sources": {k.name: f"{k.repository}@{k.commit}" for k in KERNELS}}
    made = _pairs_record(arguments, beginning) if arguments.before else []
    if arguments.live:
        _live_record(arguments, beginning, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
