"""Three ways to a faster kernel, with the same limits: templates and search, rewriting alone, search alone.

    python -m benchmarks.agents.strategies [--jobs silu_and_mul matmul] [--seeds 3] [--rounds 4] [--trials 16]

Runs every example job with every strategy and seed on this machine's OpenCL device, with the provider
`rules`, and where `replies/` has answers for the job, with these as well, through the provider `external`.
Every finished job is replayed from its records. The record says what `direct` is with rules, and who wrote
the replies.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from benchmarks.agents.embedded import Embedded
from benchmarks.agents.page import page
from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, ROOT, first_device, where
from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job, Strategy
from warpsmith.jobfile import load_job

REPLIES = Path(__file__).parent / "replies"
ORDER = (Strategy.SEARCH, Strategy.DIRECT, Strategy.TEMPLATE)
QUIET = dict.fromkeys(("tester", "profiler", "tuner", "repairer"), "rules")
"""Roles that no reply was written for."""

Row = dict[str, Any]


def prepare(name: str, strategy: Strategy, seed: int, provider: str, options: argparse.Namespace) -> Job:
    """An example job with the limits of this comparison."""
    job = load_job(ROOT / "examples" / name / "opencl.yaml")
    budget = {"rounds": options.rounds, "trials": options.trials, "seconds": options.seconds}
    agents = {"provider": provider, "roles": QUIET if provider == "external" else {}}
    changes = {"budget": budget, "agents": agents, "strategy": strategy, "seed": seed}
    changes["workloads"] = [w.model_dump() for w in job.workloads[-options.workloads :]]
    return Job.model_validate(job.model_dump() | changes)


def run_all(options: argparse.Namespace) -> list[Row]:
    """Every job, strategy, seed and provider; a finished run in `--keep` is not run again."""
    kept: list[Row] = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else []
    rows: list[Row] = []
    device = first_device(Backend.OPENCL)
    with Embedded(device) as machine:
        for seed in range(options.seeds):
            for name in options.jobs:
                for provider, strategy in _arms(name, options.providers):
                    key = {"job": name, "provider": provider, "strategy": strategy.value, "seed": seed}
                    known = next((r for r in kept if key.items() <= r.items()), None)
                    row = known or key | _run(machine, name, strategy, seed, provider, options)
                    rows.append(row)
                    if options.keep:
                        options.keep.write_text(json.dumps(rows))
                    words = " ".join(str(v) for v in key.values())
                    print(f"{words}: {row['speedup']:.3f} ({row['trials']} trials)", flush=True)
    return rows


def _arms(name: str, providers: Sequence[str]) -> list[tuple[str, Strategy]]:
    arms = [("rules", s) for s in ORDER] if "rules" in providers else []
    if "replies" in providers and (REPLIES / f"{name}.yaml").exists():
        arms += [("external", s) for s in ORDER if s is not Strategy.SEARCH]
    return arms


def _run(
    machine: Embedded, name: str, strategy: Strategy, seed: int, provider: str, options: argparse.Namespace
) -> Row:
    job = prepare(name, strategy, seed, provider, options)
    if provider == "rules":
        return asdict(machine.run(job))
    script = yaml.safe_load((REPLIES / f"{name}.yaml").read_text())
    return asdict(machine.run(job, script[strategy.value], script["by"])) | {"by": script["by"]}


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", nargs="*", default=["silu_and_mul", "softmax", "matmul", "stencil"])
    parser.add_argument("--providers", nargs="*", choices=["rules", "replies"], default=["rules", "replies"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--workloads", type=int, default=1, help="the last so many of each example")
    parser.add_argument(
        "--keep", type=Path, help="file of finished runs: read where it is there, and written"
    )
    parser.add_argument("--remark", default="", help="about the machine, for the record")
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    options = parser.parse_args()
    rows = run_all(options)
    shown = [a for a in sys.argv[1:] if a not in ("--remark", options.remark)]
    record = where(first_device(Backend.OPENCL), "python -m benchmarks.agents.strategies " + " ".join(shown))
    names = ("rounds", "trials", "seconds", "seeds", "workloads")
    record |= {"limits": {n: getattr(options, n) for n in names}, "remark": options.remark, "runs": rows}
    (options.out / "agents-strategies.json").write_text(json.dumps(record, indent=1) + "\n")
    (options.out / "agents-strategies.md").write_text(page(record))
    print(page(record))
    return 0 if all(r["state"] == "done" and not r["replay_differences"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
