"""Tune every CUDA example with `warpsmith tune` and write one table.

    python -m benchmarks.gpu.tune_examples --out OUT [--commit SHA] [--seconds S] [family or job.yaml ...]

Each job is its own process, so that a failure costs one row. Results: `OUT/examples.json` (all
figures) and `OUT/examples.md` (the table), with device, driver, commit and command.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from benchmarks.job_files import FAMILIES
from benchmarks.provenance import plain_command, record_folder

ROOT = Path(__file__).resolve().parents[2]

BEYOND_S = 120.0
"""That verification may take beyond a short budget."""


def tune(job: Path, out: Path, seconds: float | None) -> dict[str, Any]:
    """Run one job; the result as the service gives it, or what went wrong."""
    out.mkdir(parents=True, exist_ok=True)
    limit_s = 400.0
    if seconds is not None:
        job, limit_s = shortened(job, out, seconds), seconds + BEYOND_S
    command = [sys.executable, "-m", "warpsmith", "tune", str(job), "--out", str(out)]
    started = time.monotonic()
    environment = os.environ | {"WARPSMITH_DATA_DIR": str(out / "data")}
    with (out / "log.txt").open("w") as log:
        try:
            code = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, timeout=limit_s, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            code = 124
    wall_s = time.monotonic() - started
    result = out / "result.json"
    if not result.exists():
        tail = (out / "log.txt").read_text(errors="replace")[-1500:]
        return {"error": f"exit {code} after {wall_s:.0f} s", "log": tail, "wall_s": wall_s}
    return {"exit": code, "wall_s": wall_s, "result": json.loads(result.read_text())}


def shortened(job: Path, out: Path, seconds: float) -> Path:
    """The same job with another budget of time, its source beside it."""
    fields = yaml.safe_load(job.read_text())
    fields["budget"]["seconds"] = seconds
    source = fields["kernel"].get("source_file")
    if source:
        shutil.copy(job.parent / source, out / source)
    target = out / "job.yaml"
    target.write_text(yaml.safe_dump(fields, sort_keys=False))
    return target


def without_sources(result: dict[str, Any]) -> dict[str, Any]:
    """The figures of a result; sources follow from the commit, the rules and the configuration."""
    kept = ("state", "speedup", "comparisons", "trials_measured", "trials_rejected", "trials_per_second")
    short = {key: result[key] for key in kept if key in result}
    short["rejections"] = result["rejections"]
    short["dispatch"] = [{k: v for k, v in d.items() if k != "source"} for d in result["dispatch"]]
    return short


def speedup(result: dict[str, Any]) -> str:
    """Geometric mean, or that nothing was verified."""
    return "none" if result["speedup"] is None else f"{result['speedup']:.3f}"


def rows(family: str, record: dict[str, Any]) -> list[str]:
    """Table rows of one family."""
    if "error" in record:
        return [f"| {family} | {record['error']} | | | | | | |"]
    result = record["result"]
    chosen = {d["workload"]: d["configuration"] for d in result["dispatch"]}
    lines = []
    for c in result["comparisons"]:
        s = c["speedup"]
        configuration = chosen.get(c["workload"])
        words = "baseline kept"
        if configuration is not None:
            words = " ".join(f"{k}={v}" for k, v in configuration.items())
        lines.append(
            f"| {family} | {c['workload']} | {c['baseline_us']:.2f} | {c['best_us']:.2f} "
            f"| {s['estimate']:.3f} [{s['low']:.3f}, {s['high']:.3f}] | {c['verdict']} "
            f"| {c['other_baseline_us']:.2f} → {c['other_best_us']:.2f} | {words} |"
        )
    return lines


def device_line() -> str:
    """Device, driver, power limit and clock by nvidia-smi; empty where there is none."""
    if shutil.which("nvidia-smi") is None:
        return ""
    query = "--query-gpu=name,driver_version,power.limit,clocks.max.sm"
    said = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return said.stdout.strip()


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--seconds", type=float, help="budget of each job, in place of its own")
    arguments = parser.parse_args()
    jobs = {
        Path(f).stem if f.endswith(".yaml") else f: Path(f).resolve()
        if f.endswith(".yaml")
        else ROOT / "examples" / f / "cuda.yaml"
        for f in arguments.families or FAMILIES
    }
    families = list(jobs)
    records = {}
    for family, job in jobs.items():
        records[family] = tune(job, arguments.out / family, arguments.seconds)
        note = records[family].get("error") or speedup(records[family]["result"]) + "x"
        print(f"{family}: {note} ({records[family]['wall_s']:.0f} s)", flush=True)
    record = {
        "device": device_line(),
        "commit": arguments.commit,
        "command": plain_command("python -m benchmarks.gpu.tune_examples " + " ".join(sys.argv[1:])),
        "families": records,
    }
    for found in records.values():
        if "result" in found:
            found["result"] = without_sources(found["result"])
    (arguments.out / "examples.json").write_text(json.dumps(record, indent=1))
    head = "| family | workload | baseline µs | best µs | speed-up [95 %] | verdict | other cache | chosen |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    lines += [line for family in families for line in rows(family, records[family])]
    lines += [
        "",
        "| family | geometric mean | trials | rejected | trials/s | wall s |",
        "|---|---|---|---|---|---|",
    ]
    for family in families:
        if "result" in records[family]:
            r = records[family]["result"]
            lines.append(
                f"| {family} | {speedup(r)} | {r['trials_measured']} | {r['trials_rejected']} "
                f"| {r['trials_per_second']:.2f} | {records[family]['wall_s']:.0f} |"
            )
    table = "\n".join(lines)
    (arguments.out / "examples.md").write_text(
        f"Device: {record['device']}. Commit {arguments.commit}. `{record['command']}`\n\n{table}\n"
    )
    print(table)


if __name__ == "__main__":
    main()
