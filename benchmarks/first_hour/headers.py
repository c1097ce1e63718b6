"""What `init` makes of kernels in headers: does the job file load, and does it compile as it was written?

    python -m benchmarks.first_hour.headers --checkouts FOLDER [--mirrors FOLDER] [--only NAME]

Every kernel of FlashInfer's `include/flashinfer/*.cuh` gets a job file by `init HEADER -I include`; nothing
in it is filled in. Then `validate --compile` takes it for sm_90. What is marked TODO in a file is a guess.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.production.sources import PROJECTS, fetch_all
from benchmarks.provenance import ROOT, commit_name, record_folder
from warpsmith.cli.init import Wanted, skeleton
from warpsmith.cli.validate import Wishes, validate
from warpsmith.errors import InvalidInput
from warpsmith.rewrite.reader.kernel_definitions import Dialect, find_kernels
from warpsmith.settings import Settings

PROJECT = "flashinfer"
HEADERS = "include/flashinfer/*.cuh"
INCLUDE = "include"
OUTCOMES = (
    "compiles as written",
    "valid, wants a library's header that is not here",
    "valid, does not compile",
    "not valid as written",
    "no job file",
)


def looked_at(header: Path, include: Path, entry: str, folder: Path) -> dict[str, Any]:
    """What became of one kernel: its outcome, and the first finding that says why."""
    row: dict[str, Any] = {"header": header.name, "kernel": entry}
    target = folder / f"{header.stem}-{entry.rpartition('::')[2]}.yaml"
    try:
        target.write_text(skeleton([header], target, Wanted(entry, include_dirs=(include,))))
    except InvalidInput as exc:
        return row | {"outcome": OUTCOMES[4], "why": str(exc)[:300]}
    report = validate(target, Wishes(Settings(_env_file=None), compiles=True))
    errors = [str(f) for f in report.findings if f.is_error]
    if not errors:
        return row | {"outcome": OUTCOMES[0]}
    if not any(f.field == "kernel.source" and f.is_error for f in report.findings):
        return row | {"outcome": OUTCOMES[3], "why": errors[0][:300]}
    return row | {"outcome": OUTCOMES[1 if "No such file" in errors[0] else 2], "why": errors[0][:300]}


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: the totals, and a line for each kernel."""
    totals = Counter(row["outcome"] for row in rows)
    lines = [f"- {outcome}: {totals[outcome]} of {len(rows)}" for outcome in OUTCOMES]
    lines += ["", "| header | kernel | outcome | why |", "|---|---|---|---|"]
    for row in rows:
        why = row.get("why", "").replace("|", "/").replace("\n", " ")
        lines.append(f"| {row['header']} | {row['kernel']} | {row['outcome']} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkouts", type=Path, required=True, help="folder that the project is fetched to")
    parser.add_argument(
        "--mirrors", type=Path, help="folder of git directories to fetch from, OWNER+NAME/repo"
    )
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--out", type=record_folder, default=ROOT / "benchmarks" / "results" / "first-hour")
    arguments = parser.parse_args()
    root = fetch_all(arguments.checkouts, arguments.mirrors)[PROJECT]
    rows = []
    with tempfile.TemporaryDirectory(prefix="warpsmith-headers-") as folder:
        for header in sorted(root.glob(HEADERS)):
            for kernel in find_kernels(header.read_text(errors="replace"), Dialect.CUDA):
                if arguments.only in kernel.name:
                    rows.append(looked_at(header, root / INCLUDE, kernel.name, Path(folder)))
                    print(json.dumps(rows[-1]), flush=True)
    commit = next(p.commit for p in PROJECTS if p.name == PROJECT)
    (arguments.out / "headers.md").write_text(
        "# Job files that `init` writes for kernels in headers\n\n"
        f"FlashInfer at {commit}, `{HEADERS}`; commit {commit_name()}, for sm_90 without a GPU.\n"
        "`python -m benchmarks.first_hour.headers`; nothing in the files was filled in.\n\n"
        f"{table(rows)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
