"""One configuration measured again and again, each time as a winner is: how far the figures lie apart.

    python -m benchmarks.trust.repeat [--backend cuda] [--runs 5] [--configuration NAME=VALUE ...]

The kernel is the template of `examples/silu_and_mul` on 16 x 12288. Every run is a process of its own, with
its own baseline, seeds and interleaved blocks.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.trust.rate import the_job
from benchmarks.trust.record import RESULTS, first_device, where
from warpsmith.domain.device import Backend
from warpsmith.domain.outcome import Measured
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.first_trial import run_trial
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners

BEST = ("WS_BLOCK=128", "WS_ROW_SPLIT=16", "WS_VEC=8", "WS_UNROLL=1", "WS_FAST_MATH=1")
"""What the search chose on an H200, see `benchmarks/results/h200-examples.md`."""
PAIRS = 12


def once(backend: Backend, words: list[str]) -> dict[str, Any]:
    """Baseline, trial and winner."""
    device = first_device(backend)
    job, template = the_job(backend)
    configuration = {name: int(value) for name, _, value in (word.partition("=") for word in words)}
    pool = CompilePool(2)
    ports = SessionPorts(ChildOpener(device), pool, ReferenceRunner())
    session = DeviceSession(job, ports)
    try:
        baseline = measure_baseline(session)
        session.baseline.learn(baseline)
        times = {t.workload: time_us(job, t) or 0.0 for t in baseline.timings}
        kernel = template.configured(configuration)
        outcome = run_trial(session, template, kernel, session.compile(kernel), times)
        assert isinstance(outcome, Measured), outcome
        finalist = Finalist("candidate", template, configuration, outcome)
        result = verify_winners(
            job, ports, [finalist], ComparisonPlan(baseline.aa_width, PAIRS), lambda: True, baseline
        )
    finally:
        session.close()
        pool.close()
    (found,) = result.comparisons
    return {"baseline_us": found.baseline_us, "best_us": found.best_us, "speedup": found.speedup.model_dump()}


def main() -> int:
    """See the module's text; the exit status is 1 where the times differ by more than 2 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="cuda", choices=["opencl", "cuda"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--configuration", nargs="+", default=list(BEST))
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    backend = Backend(arguments.backend)
    if arguments.once:
        print(json.dumps(once(backend, arguments.configuration)))
        return 0
    command = [sys.executable, "-m", "benchmarks.trust.repeat", "--once", "--backend", backend.value]
    command += ["--configuration", *arguments.configuration]
    rows = []
    for _ in range(arguments.runs):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stderr[-2000:])
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    spread = {
        name: (max(r[name] for r in rows) / min(r[name] for r in rows) - 1) * 100
        for name in ("baseline_us", "best_us")
    }
    record = where(first_device(backend), "python -m benchmarks.trust.repeat " + " ".join(sys.argv[1:]))
    record |= {"configuration": arguments.configuration, "spread_percent": spread, "runs": rows}
    (arguments.out / f"trust-repeat-{backend.value}.json").write_text(json.dumps(record, indent=1) + "\n")
    lines = [
        f"# 16 x 12288 silu_and_mul measured {len(rows)} times on {record['device']}",
        "",
        f"{record['driver']}. Commit {record['commit']}, {record['when']}. `{record['command']}`",
        "",
        f"`{' '.join(arguments.configuration)}`, cold caches, a process of its own each time.",
        "",
        "| run | your kernel, µs | configuration, µs | speed-up [95 %] |",
        "|---|---|---|---|",
    ]
    for n, row in enumerate(rows, 1):
        s = row["speedup"]
        lines.append(
            f"| {n} | {row['baseline_us']:.3f} | {row['best_us']:.3f} "
            f"| {s['estimate']:.3f} [{s['low']:.3f}, {s['high']:.3f}] |"
        )
    words = f"{spread['baseline_us']:.2f} % and {spread['best_us']:.2f} %"
    lines += ["", f"Largest over smallest: {words}."]
    (arguments.out / f"trust-repeat-{backend.value}.md").write_text("\n".join(lines) + "\n")
    return 0 if max(spread.values()) <= 2.0 else 1


if __name__ == "__main__":
    sys.exit(main())
