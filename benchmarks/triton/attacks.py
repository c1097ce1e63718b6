"""Triton kernels that cheat and honest ones through every check: what is refused where, and what is accepted.

    python -m benchmarks.triton.attacks --out FOLDER [--only NAME ...]

A job file of `tests/adversarial/triton/cheats` has an honest default; `CHEAT: 1` is the candidate. One of
`tests/adversarial/triton/honest` is tried with its defaults and with the last value of every parameter. Each
candidate goes through the whole acceptance procedure, as a first-time trial and as a winner. Writes
`attacks.json` and `attacks.md`, and exits with 1 if a verdict is not the one that the file states.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.production.honest import PAIRS, fixed
from benchmarks.provenance import head, record_folder
from benchmarks.trust.record import first_device
from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.errors import ChildDied
from warpsmith.job_files.jobfile import load_job
from warpsmith.sandbox import CompilePool

Row = dict[str, Any]
FOLDER = Path(__file__).resolve().parents[2] / "tests" / "adversarial" / "triton"
KINDS = ("cheats", "honest")
EXPECTED = ("rejected", "no gain", "accepted")
TASK_GATE = "task gate"
"""Where the job's own kernel is refused, so that nothing is known of the candidate."""
RUN_TIMEOUT_S = 20.0
_FIELD = re.compile(r"^# (\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A job file of the corpus, with what it states in its comments."""

    path: Path
    kind: str
    expect: str
    """One of `EXPECTED`."""
    stage: str
    """Where a cheat should end; empty for what is not refused."""
    about: str
    """How it cheats, or what it computes."""
    exploit: str
    """Of a cheat: its kind, in the numbering of `testbed.adversarial`."""

    @property
    def name(self) -> str:
        """`cheats/odd_sizes`."""
        return f"{self.kind}/{self.path.stem}"

    def candidates(self, job: Job) -> list[Configuration]:
        """Configurations that are tried against the job's defaults."""
        if self.kind == "cheats":
            return [job.space.defaults | {"CHEAT": 1}]
        last = {p.name: p.values[-1] for p in job.space.parameters}
        return [job.space.defaults, last]


def cases() -> list[Case]:
    """All of them, by name."""
    found = []
    for path in sorted(FOLDER.glob("*/*.yaml")):
        said = dict(_FIELD.findall(path.read_text()))
        about = said.get("how") or said["what"]
        exploit = said.get("exploit", "")
        found.append(Case(path, path.parent.name, said["expect"], said.get("stage", ""), about, exploit))
    return found


def tried(harness: Harness, case: Case) -> list[Row]:
    """What became of the candidates of a case."""
    job = load_job(case.path)
    template = Template(kernel=job.kernel, space=job.space)
    rows = []
    for configuration in case.candidates(job):
        began = time.monotonic()
        row: Row = {"case": case.name, "exploit": case.exploit, "about": case.about, "expect": case.expect}
        row |= {"stated_stage": case.stage, "configuration": dict(configuration)}
        try:
            verdict = harness.try_candidate(job, fixed(template, configuration))
        except (ChildDied, AssertionError, ValueError) as exc:
            row |= {"as_expected": False, "failed": f"{type(exc).__name__}: {exc}"[:500]}
        else:
            row |= {"accepted": verdict.accepted, "faster": verdict.faster, "stage": verdict.layer}
            row |= {"reason": verdict.reason[:500]}
            row["as_expected"] = verdict.layer != TASK_GATE and verdict.meets(case.expect)
        rows.append(row | {"seconds": round(time.monotonic() - began, 1)})
    return rows


def page(record: Row) -> str:
    """The record as a page."""
    rows = record["rows"]
    lines = ["# Triton kernels through every check", ""]
    lines += [f"{record['device']}, {record['driver']}, commit {record['commit']}, {record['when']}.", ""]
    for kind in KINDS:
        of = [r for r in rows if r["case"].startswith(kind)]
        right = sum(r["as_expected"] for r in of)
        lines.append(f"- {kind}: {right} of {len(of)} have the verdict that their files state.")
    lines += ["", "| case | expected | found | stage (stated) | reason |", "|---|---|---|---|---|"]
    for row in rows:
        stage = row.get("stage", "")
        if row["stated_stage"] and row["stated_stage"] != stage:
            stage += f" ({row['stated_stage']})"
        reason = " ".join(str(row.get("reason") or row.get("failed", ""))[:160].replace("|", "/").split())
        lines.append(f"| {row['case']} | {row['expect']} | {_found(row)} | {stage} | {reason} |")
    return "\n".join(lines) + "\n"


def _found(row: Row) -> str:
    if "failed" in row:
        return "failed"
    if not row["accepted"]:
        return "rejected"
    return "accepted, faster" if row["faster"] else "accepted"


def main(words: Sequence[str] | None = None) -> int:
    """See the module's text."""
    known = {c.name: c for c in cases()}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=known, metavar="NAME", help="such as cheats/odd_sizes")
    parser.add_argument("--out", type=record_folder, required=True)
    asked = parser.parse_args(words)
    device = first_device(Backend.CUDA)
    record = head(device, "python -m benchmarks.triton.attacks " + " ".join(sys.argv[1:])) | {"rows": []}
    pool = CompilePool()
    try:
        for name in asked.only or known:
            # Each has a session of its own, so that no cheat meets what another left behind.
            harness = Harness(device, pool, PAIRS, RUN_TIMEOUT_S)
            try:
                record["rows"] += tried(harness, known[name])
            finally:
                harness.close()
            print(json.dumps(record["rows"][-1]), flush=True)
            (asked.out / "attacks.json").write_text(json.dumps(record, indent=1) + "\n")
    finally:
        pool.close()
    (asked.out / "attacks.md").write_text(page(record))
    print(page(record))
    return int(any(not r["as_expected"] for r in record["rows"]))


if __name__ == "__main__":
    sys.exit(main())
