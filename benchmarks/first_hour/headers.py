"""What `init` makes of kernels in headers: does the job file load, and does it compile as it was written?

    python -m benchmarks.first_hour.headers --checkouts FOLDER [--mirrors FOLDER] [--only NAME]

Every kernel of FlashInfer's `include/flashinfer/*.cuh` gets a job file by `init HEADER -I include`, and every
kernel of a few headers of other projects one by `init HEADER`; nothing in it is filled in. Then
`validate --compile` takes it for sm_90. What is marked TODO in a file is a guess.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.production.sources import PROJECTS, fetch_all
from benchmarks.provenance import ROOT, record_folder
from warpsmith.backends.cuda.toolkit import cccl_version
from warpsmith.cli.compile_check import Compiler
from warpsmith.cli.init import Wanted
from warpsmith.cli.init_trials import tried_skeleton
from warpsmith.cli.validate import Wishes, validate
from warpsmith.commit import commit_name
from warpsmith.errors import InvalidInput
from warpsmith.rewrite.reader.kernels.kernel_definitions import Dialect, find_kernels
from warpsmith.settings import Settings

PROJECT = "flashinfer"
HEADERS = "include/flashinfer/*.cuh"
INCLUDE = "include"
OTHERS = {
    "ggml": ("reduce_rows.cuh", "fattn-vec.cuh", "mmq.cuh"),
    "llm.c": ("layernorm.cuh", "gelu.cuh", "fused_classifier.cuh"),
    "sglang": ("awq_dequantize.cuh", "norm_scale_shift.cuh", "per_tensor_quant_fp8.cuh"),
    "vllm": ("concat_mla_q.cuh", "dequantize.cuh", "persistent_topk.cuh"),
}
"""Names of headers by project."""
OUTCOMES = (
    "compiles as written",
    "valid, wants a library's header that is not here",
    "valid, does not compile",
    "not valid as written",
    "no job file",
)


def looked_at(header: Path, include: Path | None, entry: str, folder: Path) -> dict[str, Any]:
    """What became of one kernel: its outcome, and the first finding that says why."""
    row: dict[str, Any] = {"header": header.name, "kernel": entry.rpartition("::")[2]}
    target = folder / f"{header.stem}-{entry.rpartition('::')[2]}.yaml"
    settings = Settings(_env_file=None)
    try:
        wanted = Wanted(entry, include_dirs=(include,) if include else ())
        with Compiler(settings) as compiler:
            target.write_text(tried_skeleton([header], target, wanted, compiler))
    except InvalidInput as exc:
        return row | {"outcome": OUTCOMES[4], "why": str(exc)[:300]}
    report = validate(target, Wishes(settings, compiles=True))
    errors = [str(f) for f in report.findings if f.is_error]
    if not errors:
        return row | {"outcome": OUTCOMES[0]}
    if not any(f.field == "kernel.source" and f.is_error for f in report.findings):
        return row | {"outcome": OUTCOMES[3], "why": errors[0][:300]}
    return row | {"outcome": OUTCOMES[1 if "No such file" in errors[0] else 2], "why": errors[0][:300]}


def rows_of(headers: Iterable[Path], include: Path | None, only: str) -> list[dict[str, Any]]:
    """What became of every kernel of these headers; each is printed at once."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="warpsmith-headers-") as folder:
        for header in headers:
            names = dict.fromkeys(
                k.qualified_name for k in find_kernels(header.read_text(errors="replace"), Dialect.CUDA)
            )
            for name in names:
                if only in name:
                    rows.append(looked_at(header, include, name, Path(folder)))
                    print(json.dumps(rows[-1]), flush=True)
    return rows


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
    roots = fetch_all(arguments.checkouts, arguments.mirrors)
    own = sorted(roots[PROJECT].glob(HEADERS))
    rows = rows_of(own, roots[PROJECT] / INCLUDE, arguments.only)
    few = [p for name, headers in OTHERS.items() for h in headers for p in sorted(roots[name].rglob(h))]
    others = rows_of(few, None, arguments.only)
    commits = {p.name: p.commit for p in PROJECTS}
    (arguments.out / "headers.md").write_text(
        "# Job files that `init` writes for kernels in headers\n\n"
        f"FlashInfer at {commits[PROJECT]}, `{HEADERS}`; commit {commit_name()}, for sm_90 without a GPU, "
        f"with CCCL {cccl_version()}.\n"
        "`python -m benchmarks.first_hour.headers`; nothing in the files was filled in.\n\n"
        f"{table(rows)}\n## Headers of other projects\n\n"
        + "".join(f"- {name} at {commits[name]}\n" for name in OTHERS)
        + f"\n{table(others)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
