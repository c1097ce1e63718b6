"""How many kernels of whole projects a job can express, by their signatures; each other one with its reason.

    python -m benchmarks.production.expressible --mirrors FOLDER [--out DIR]

Reads every `__global__` definition of the projects, in all preprocessor branches. A type that a template
argument chooses counts as what the project instantiates it with: a number, or a struct of numbers and
addresses. Kernels that wait for other devices count as not expressible, since a job has one. Writes
`production-expressible.json` and `production-expressible.md`.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.production.jobs import checkout_options, sources_of_record
from benchmarks.production.sources import PROJECTS, fetch_all
from benchmarks.production.struct_types import TypeIndex
from benchmarks.provenance import plain_command, record_folder
from benchmarks.trust.record import RESULTS
from warpsmith.commit import commit_name
from warpsmith.rewrite.reader.declarations.argument_lists import KernelArgument
from warpsmith.rewrite.reader.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels

OTHER_DEVICES = "it waits for other devices, or writes to them"
FILES = ("*.cu", "*.cuh", "*.h", "*.hpp", "*.inl")
WANTED = 0.95
_OTHERS = re.compile(
    r"\bnvshmem|\bmultimem\b|\bRankSignals\b|\bRankData\b|\bSignal\s*\*|world_size|\bnum_ranks\b|\bNRanks\b|\bngpus\b"
    r"|\bpeer_|\bmscclpp|\bBlockBarrier\b|\bkNumRanks\b|\bmixed_comm\b|\w*All(?:ToAll|Reduce|Gather)\w*Params\b"
)
_GRID_SYNC = re.compile(
    r"\bgrid\w*\s*\.\s*sync\s*\(|this_grid\(\)\s*\.\s*sync|\bgrid_sync\b|\bgrid\.barrier_"
)
_CLUSTER = re.compile(
    r"this_cluster\(|\bcluster_sync\b|cluster_arrive|cluster\.sync|block_rank_in_cluster|\bmapa\b|cluster_ctarank"
)
_TMA = re.compile(r"\btma\w*|\bTMA\w*|tensormap|TensorMap|prefetch_descriptor|cp_async_bulk_tensor", re.I)
_PDL = re.compile(
    r"griddepcontrol|cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion|pdl_sync"
)
_SITES = {
    "clusters": r"cudaLaunchAttributeClusterDimension|__cluster_dims__",
    "cooperative launch": r"cudaLaunchCooperativeKernel|cudaLaunchAttributeCooperative",
    "programmatic dependent launch": r"cudaLaunchAttributeProgrammaticStreamSerialization",
}
"""What host code and kernels write where a launch has attributes."""


@dataclass(frozen=True)
class Verdict:
    """One kernel definition."""

    project: str
    file: str
    line: int
    kernel: str
    why_not: str
    """Empty if a job can express it."""
    needs: tuple[str, ...]
    """Parts of the job form beyond buffers and numbers that it takes."""


def judged(root: Path, project: str) -> Iterator[Verdict]:
    """Every kernel definition of a checkout."""
    paths = sorted(p for pattern in FILES for p in root.rglob(pattern))
    types = TypeIndex.of(paths)
    for path in paths:
        text = path.read_text(errors="replace")
        if "__global__" not in text:
            continue
        for kernel in find_kernels(text, Dialect.CUDA):
            why, needs = _judge(kernel, types)
            name = str(path.relative_to(root))
            yield Verdict(project, name, kernel.line, kernel.qualified_name, why, tuple(sorted(needs)))


def _judge(kernel: KernelDefinition, types: TypeIndex) -> tuple[str, set[str]]:
    own = frozenset(p.name for p in kernel.template)
    needs: set[str] = set()
    signature = " ".join([kernel.qualified_name, *(f"{a.type_text} {a.name}" for a in kernel.arguments)])
    if _PDL.search(kernel.body):
        needs.add("programmatic dependent launch (runs without)")
    if _CLUSTER.search(kernel.body):
        needs.add("clusters (`__cluster_dims__` in the source)")
    if _GRID_SYNC.search(kernel.body):
        needs.add("cooperative launch")
    if _OTHERS.search(signature) or _OTHERS.search(kernel.body):
        return OTHER_DEVICES, needs
    for argument in kernel.arguments:
        why = _argument(argument, own, types, kernel, needs)
        if why:
            return f"{argument.name or 'an argument'}: {why}", needs
    if not kernel.arguments:
        return "it has no arguments, so nothing could be compared", needs
    return "", needs


def _argument(
    argument: KernelArgument, own: frozenset[str], types: TypeIndex, kernel: KernelDefinition, needs: set[str]
) -> str:
    if argument.is_pointer:
        if argument.pointers > 2:
            return "addresses of addresses of addresses"
        needs.update(["arrays of addresses"] if argument.pointers == 2 else [])
        return ""
    if argument.dtype is not None:
        needs.update(["vectors by value"] if argument.lanes > 1 else [])
        return ""
    why = types.why_not(argument.type_text, own)
    if why:
        return why
    last = re.sub(r"<.*>", "", argument.base).split("::")[-1].strip()
    if last in types.structs and last not in own:
        needs.add("structs by value")
    elif last in own and re.search(rf"\b{re.escape(argument.name or '-')}\s*\.", kernel.body):
        needs.add("structs by value")
        if _TMA.search(kernel.body):
            return "a struct with tensor maps (TMA), by what the body does with it"
    return ""


def launch_sites(root: Path) -> Counter[str]:
    """How often host code asks for each attribute of a launch."""
    found: Counter[str] = Counter()
    for path in sorted(p for pattern in (*FILES, "*.cc", "*.cpp") for p in root.rglob(pattern)):
        text = path.read_text(errors="replace")
        for attribute, pattern in _SITES.items():
            found[attribute] += len(re.findall(pattern, text))
    return found


def totals(verdicts: list[Verdict]) -> dict[str, Any]:
    """Counts by project and altogether."""
    found: dict[str, Any] = {}
    for project in (*dict.fromkeys(v.project for v in verdicts), "all"):
        here = [v for v in verdicts if project in (v.project, "all")]
        good = sum(not v.why_not for v in here)
        found[project] = {
            "kernels": len(here),
            "expressible": good,
            "share": good / len(here) if here else None,
        }
    return found


def reasons(verdicts: list[Verdict]) -> dict[str, int]:
    """How often each reason occurs, without the names of arguments and types."""
    texts = (re.sub(r"^\w+: ", "", v.why_not) for v in verdicts if v.why_not)
    return dict(Counter(re.sub(r": .*", "", t) for t in texts).most_common())


def page(record: dict[str, Any]) -> str:
    """The record as Markdown."""
    every, one = record["totals"]["all"], record["on_one_device"]
    lines = [
        "# Which production kernels a job can express",
        "",
        f"Commit {record['commit']}, {record['when']}. `{record['command']}`",
        "",
        f"{every['expressible']} of {every['kernels']} `__global__` definitions "
        f"({100 * every['share']:.1f} %) of five",
        "projects can be written as a job, by their signatures. Of those that need one device only it is "
        f"{one['expressible']} of {one['kernels']} ({100 * one['share']:.1f} %).",
        "",
        "| project | kernels | expressible | share |",
        "|---|---|---|---|",
    ]
    for name, t in record["totals"].items():
        lines.append(f"| {name} | {t['kernels']} | {t['expressible']} | {100 * t['share']:.1f} % |")
    lines += ["", "| why not | kernels |", "|---|---|"]
    lines += [f"| {why} | {count} |" for why, count in record["reasons"].items()]
    lines += ["", "| what the others take beyond buffers and numbers | kernels |", "|---|---|"]
    lines += [f"| {need} | {count} |" for need, count in record["needs"].items()]
    lines += ["", "| what launches in host code ask for | places |", "|---|---|"]
    lines += [f"| {attribute} | {count} |" for attribute, count in record["launch_sites"].items()]
    lines += ["", "## Each kernel that cannot", "", "| kernel | where | why |", "|---|---|---|"]
    for v in record["not_expressible"]:
        where = f"{v['project']}: {v['file']}:{v['line']}"
        lines.append(f"| {v['kernel']} | {where} | {v['why_not'].replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """See the module's text. Exits with 1 if fewer than 95 % can be expressed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    checkout_options(parser)
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    options = parser.parse_args()
    roots = fetch_all(options.checkouts, options.mirrors)
    verdicts = [v for p in PROJECTS for v in judged(roots[p.name], p.name)]
    record = {
        "commit": commit_name(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": plain_command("python -m benchmarks.production.expressible " + " ".join(sys.argv[1:])),
        "sources": sources_of_record(),
        "totals": totals(verdicts),
        "on_one_device": totals([v for v in verdicts if v.why_not != OTHER_DEVICES])["all"],
        "reasons": reasons(verdicts),
        "needs": dict(Counter(n for v in verdicts if not v.why_not for n in v.needs).most_common()),
        "launch_sites": dict(sum((launch_sites(roots[p.name]) for p in PROJECTS), Counter())),
        "not_expressible": [asdict(v) for v in verdicts if v.why_not],
    }
    (options.out / "production-expressible.json").write_text(json.dumps(record, indent=1) + "\n")
    (options.out / "production-expressible.md").write_text(page(record))
    print(json.dumps({k: record[k] for k in ("totals", "on_one_device", "reasons", "needs")}, indent=1))
    return int(record["totals"]["all"]["share"] < WANTED)


if __name__ == "__main__":
    sys.exit(main())
