"""What `warpsmith validate` says of mistakes; writes `results/first-hour/mistakes.md`.

python -m benchmarks.first_hour.mistakes
"""

import argparse
import re
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.first_hour.mistake_list import MISTAKES, SOURCE_NAME, FoundBy, Mistake
from benchmarks.provenance import ROOT
from warpsmith.cli.validate import Report, Wishes, validate
from warpsmith.commit import commit_name
from warpsmith.domain.device import Backend
from warpsmith.job_checks.finding import Finding
from warpsmith.sandbox.device_host import Probe, probe_devices
from warpsmith.settings import Settings

RESULT = ROOT / "benchmarks" / "results" / "first-hour" / "mistakes.md"

MEMORY_BYTES = 8 * 10**9


@dataclass(frozen=True)
class Said:
    """What came of one mistake."""

    mistake: Mistake
    report: Report
    named: Finding | None
    """The finding that names it, at its line."""


def look(mistake: Mistake, folder: Path) -> Said:
    """Validate the job with one mistake, in a folder of its own."""
    folder.mkdir(parents=True)
    path = folder / "job.yaml"
    path.write_text(mistake.job())
    (folder / SOURCE_NAME).write_text(mistake.source())
    settings = Settings(_env_file=None)
    report = validate(path, Wishes(settings, mistake.by is FoundBy.COMPILE, probe=devices_here))
    named = (
        f
        for f in report.findings
        if mistake.says
        and mistake.says in str(f)
        and (f.line, f.is_error) == (mistake.line(), mistake.is_error)
    )
    return Said(mistake, report, next(named, None))


@cache
def devices_here() -> Probe:
    """OpenCL devices of this machine, as if each had 8 GB and there were no CUDA; asked once."""
    here = probe_devices()
    small = tuple(
        d.model_copy(update={"limits": d.limits.model_copy(update={"total_memory_bytes": MEMORY_BYTES})})
        for d in here.devices
        if d.backend is not Backend.CUDA
    )
    return Probe(small, {**here.unavailable, "cuda": "cuda: no driver"})


def page(said: list[Said]) -> str:
    """The record."""
    by_validate = [s for s in said if s.named is not None]
    devices = ", ".join(d.name for d in devices_here().devices) or "no device"
    lines = [
        f"# {len(said)} mistakes of a first job",
        "",
        f"Commit {commit_name()}, on {devices}, as if it had 8 GB and no CUDA.",
        "`python -m benchmarks.first_hour.mistakes`; the job and the changes are in",
        "`benchmarks/first_hour/mistake_list.py`. A test holds `validate` to every message.",
        "",
        f"`validate` names {len(by_validate)} of {len(said)}, each with its line; the others need a launch.",
        "",
        "| mistake | named by | line | message |",
        "|---|---|---|---|",
    ]
    for s in said:
        if s.named is None:
            cells = [s.mistake.title, s.mistake.by.value, "", "is seen when the kernel runs"]
        else:
            severity = "" if s.named.is_error else "warning: "
            cells = [
                s.mistake.title,
                s.mistake.by.value,
                str(s.named.line),
                f"`{severity}{_short(str(s.named))}`",
            ]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    plain = re.sub(r"\S*/(?=\w+\.cl)", "", text).replace("\n", " ").replace("`", "'")
    return plain if len(plain) <= 240 else plain[:240] + " ..."


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        said = [look(m, Path(folder) / str(n)) for n, m in enumerate(MISTAKES)]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    record = page(said)
    arguments.out.write_text(record)
    print(record)
    silent = [s.mistake.title for s in said if s.named is None and s.mistake.by is not FoundBy.TUNE]
    print("\n".join(f"not named: {title}" for title in silent))
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
