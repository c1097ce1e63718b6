"""What cutting hopeless trials short saves on a GPU: the same searches with and without, on the device.

    python benchmarks/gpu/cut_short.py --out OUT [--trials 150] [--seeds 2] [family ...]

For each example and seed the default searcher runs so many trials with `budget.stop_early` and so many
without, in turns, after one baseline; no search ends by itself. Seconds are those on the device. The
best objective and the workloads' own best times are of measured trials alone. Writes `OUT/cut-short.json`.
"""

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.job_files import load  # noqa: E402
from benchmarks.provenance import head  # noqa: E402
from tests.fakes import ListSink  # noqa: E402
from warpsmith.domain.device import Backend, DeviceInfo  # noqa: E402
from warpsmith.domain.job import Job, SearcherName  # noqa: E402
from warpsmith.domain.outcome import CutShort, Measured, Outcome  # noqa: E402
from warpsmith.domain.space import Configuration  # noqa: E402
from warpsmith.domain.template import Template  # noqa: E402
from warpsmith.rewrite.templater import make_template  # noqa: E402
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner, probe_devices  # noqa: E402
from warpsmith.search import enumerate_space, make_searcher  # noqa: E402
from warpsmith.tuning.baseline import measure_baseline  # noqa: E402
from warpsmith.tuning.objective import time_us  # noqa: E402
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts  # noqa: E402
from warpsmith.tuning.tasks import BaselineResult  # noqa: E402
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice  # noqa: E402

FAMILIES = ("silu_and_mul", "merge_attn_states", "fused_add_rmsnorm")


@dataclass
class TimedSink(ListSink):
    """Also the seconds on the device."""

    seconds: float = 0.0

    def finished(self, configuration: Configuration, outcome: Outcome, seconds: float) -> None:
        super().finished(configuration, outcome, seconds)
        self.seconds += seconds


def figures(job: Job, sink: TimedSink) -> dict[str, Any]:
    """Of one search."""
    measured = [o for _, o in sink.trials if isinstance(o, Measured)]
    own: dict[str, float] = {}
    for outcome in measured:
        for timing in outcome.timings:
            value = time_us(job, timing) or math.inf
            own[timing.workload] = min(value, own.get(timing.workload, math.inf))
    estimates = [math.log(o.expected / o.objective) for o in measured if o.expected is not None]
    return {
        "trials": len(sink.trials),
        "cut_short": sum(isinstance(o, CutShort) for _, o in sink.trials),
        "went_on_by_chance": len(estimates),
        "estimate_over_truth": round(math.exp(statistics.fmean(estimates)), 4) if estimates else None,
        "device_s": round(sink.seconds, 2),
        "best": min(o.objective for o in measured),
        "own_best_us": own,
    }


def search(
    job: Job, template: Template, ports: SessionPorts, baseline: BaselineResult, seed: int, trials: int
) -> dict[str, Any]:
    """One search from nothing."""
    scopes = [ports.opener.info.scope() | w.scope() for w in job.workloads]
    searcher = make_searcher(SearcherName.DEFAULT, enumerate_space(template.space, scopes), seed)
    sink, session = TimedSink(), DeviceSession(job, ports)
    try:
        limits = SliceLimits(200, trials, compile_ahead=2 * (os.cpu_count() or 1))
        run_slice(session, template, baseline, searcher, sink, limits, SliceStart(gate=False))
    finally:
        session.close()
    return figures(job, sink)


def measure(
    family: str, device: DeviceInfo, pool: CompilePool, options: argparse.Namespace
) -> dict[str, Any]:
    """One example, with and without in turns."""
    job = load(family, options.backend)
    without = job.model_copy(update={"budget": job.budget.model_copy(update={"stop_early": False})})
    template = make_template(job).template
    ports = SessionPorts(ChildOpener(device), pool, ReferenceRunner())
    session = DeviceSession(job, ports)
    try:
        baseline = measure_baseline(session)
    finally:
        session.close()
    assert not baseline.refused, baseline.refused
    runs: dict[str, list[dict[str, Any]]] = {"cut": [], "whole": []}
    for seed in range(options.seeds):
        arms: Sequence[tuple[str, Job]] = (("cut", job), ("whole", without))
        for name, each in arms if seed % 2 else tuple(reversed(arms)):
            runs[name].append(search(each, template, ports, baseline, seed, options.trials))
            print(family, name, {k: v for k, v in runs[name][-1].items() if k != "own_best_us"}, flush=True)
    return {"workloads": len(job.workloads), "saved": saved(runs), "best": ratio(runs), **runs}


def saved(runs: dict[str, list[dict[str, Any]]]) -> float:
    """Share of the device time of whole trials."""
    seconds = {name: sum(r["device_s"] for r in each) for name, each in runs.items()}
    return round(1 - seconds["cut"] / seconds["whole"], 3)


def ratio(runs: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """With over without, below 1 is better: the best objective, and the own bests in the mean."""
    pairs = list(zip(runs["cut"], runs["whole"], strict=True))
    objective = statistics.fmean(math.log(a["best"] / b["best"]) for a, b in pairs)
    own = statistics.fmean(
        math.log(a["own_best_us"][key] / b["own_best_us"][key]) for a, b in pairs for key in b["own_best_us"]
    )
    return {"objective": round(math.exp(objective), 4), "own_bests": round(math.exp(own), 4)}


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=[])
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_intermixed_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = next(d for d in probe_devices().devices if d.backend is Backend(options.backend))
    pool = CompilePool(os.cpu_count() or 1)
    record: dict[str, Any] = {
        **head(device, "python " + " ".join(sys.argv)),
        "families": {},
    }
    for family in options.families or FAMILIES:
        record["families"][family] = measure(family, device, pool, options)
        (options.out / "cut-short.json").write_text(json.dumps(record, indent=1))
        print(family, {k: record["families"][family][k] for k in ("saved", "best")}, flush=True)
    pool.close()


if __name__ == "__main__":
    main()
