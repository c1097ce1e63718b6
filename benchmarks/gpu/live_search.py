"""Our search and Kernel Tuner's best strategy on the GPU of this machine, both on our measurement.

    python -m benchmarks.gpu.live_search --out OUT [--budget 100] [--seeds 5] [family ...]

For each kernel all searches take turns: a configuration is measured when the first of them asks for it,
and the others are told the same figure, so that only the search differs (`benchmarks.search.live`). Trials
run whole, on every workload. At the end what each search would hand over is measured twice more, and the
median of its three figures counts. Kernel Tuner needs `benchmarks/search/environment.sh`. Writes
`OUT/live-search.json` and `OUT/live-search.md`.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.gpu.record_spaces import restrictions
from benchmarks.job_files import FAMILIES, load
from benchmarks.provenance import head, record_folder
from benchmarks.search.live import KernelTunerStream, OwnStream, Stream, Turns, trace
from benchmarks.search.metrics import best_so_far
from benchmarks.trust.record import first_device
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import Job, SearcherName
from warpsmith.domain.outcome import Measured
from warpsmith.domain.space import configuration_key
from warpsmith.domain.template import Template
from warpsmith.rewrite.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.search import enumerate_space, launched, make_searcher
from warpsmith.search.feasible_set import FeasibleSet
from warpsmith.testing.fakes import ListSink
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice

STRATEGY = "adaptive_tabu_greywolf"
"""Kernel Tuner's best on the recorded spaces."""
OURS = "warpsmith"
AT = (10, 25, 50, 100)
SECONDS = 240.0
"""Of one example, at most."""
AGAIN = 2


def streams_of(
    template: Template,
    feasible: FeasibleSet,
    scopes: Sequence[Mapping[str, Any]],
    warp: int,
    options: argparse.Namespace,
) -> list[Stream]:
    """As many searches of each kind as there are seeds."""
    told = launched(template.kernel.launch, feasible, scopes, warp)
    configurations = [feasible.configuration(row) for row in range(len(feasible))]
    tune_params = {p.name: list(p.values) for p in template.space.parameters}
    limits = restrictions(template, scopes)
    streams: list[Stream] = []
    for seed in range(options.seeds):
        searcher = make_searcher(SearcherName.DEFAULT, feasible, seed, launched=told)
        streams.append(OwnStream(OURS, searcher, options.budget))
        streams.append(KernelTunerStream(STRATEGY, seed, options.budget, tune_params, limits, configurations))
    return streams


def family(name: str, device: DeviceInfo, pool: CompilePool, options: argparse.Namespace) -> dict[str, Any]:
    """All searches of one example."""
    whole = load(name, options.backend)
    job: Job = whole.model_copy(update={"budget": whole.budget.model_copy(update={"stop_early": False})})
    template = make_template(job).template
    scopes = [device.scope() | w.scope() for w in job.workloads]
    feasible = enumerate_space(template.space, scopes)
    session = DeviceSession(job, SessionPorts(ChildOpener(device), pool, ReferenceRunner()))
    sink, began = ListSink(), time.monotonic()
    streams = streams_of(template, feasible, scopes, device.limits.warp_size, options)
    turns = Turns(streams)
    ahead = 2 * (os.cpu_count() or 1)
    try:
        baseline = measure_baseline(session)
        assert not baseline.refused, baseline.refused
        said = run_slice(session, template, baseline, turns, sink, SliceLimits(SECONDS, 10**6, ahead))
        if said.reason:
            raise RuntimeError(f"{name}: its own default configuration is refused: {said.reason}")
        winners = {winner(s, turns.values): None for s in streams}
        again = [c for c, _ in sink.trials if configuration_key(c) in winners][: len(winners)]
        for _ in range(AGAIN):
            limits = SliceLimits(SECONDS, len(again), ahead)
            run_slice(
                session, template, baseline, turns, sink, limits, SliceStart(gate=False, leftover=again)
            )
    finally:
        session.close()
        for stream in streams:
            stream.close()
    return figures(streams, turns.values, medians(sink)) | {
        "feasible": feasible.count,
        "measured": len(turns.values),
        "seconds": round(time.monotonic() - began, 1),
    }


def winner(stream: Stream, values: Mapping[str, float | None]) -> str:
    """The key of the best that a search was told of."""
    return min((value, key) for key in stream.keys if (value := values[key]) is not None)[1]


def medians(sink: ListSink) -> dict[str, float]:
    """Objectives by key: the median where there are several."""
    found: dict[str, list[float]] = {}
    for configuration, outcome in sink.trials:
        if isinstance(outcome, Measured):
            found.setdefault(configuration_key(configuration), []).append(outcome.objective)
    return {key: statistics.median(values) for key, values in found.items()}


def figures(
    streams: Sequence[Stream], values: Mapping[str, float | None], again: Mapping[str, float]
) -> dict[str, Any]:
    """Best so far of every search over the best of them all, and what each hands over likewise."""
    best = min(v for v in values.values() if v is not None)
    settled = {id(s): again[winner(s, values)] for s in streams}
    least = min(settled.values())
    out: dict[str, Any] = {}
    for name in dict.fromkeys(s.name for s in streams):
        mine = [s for s in streams if s.name == name]
        curves = [best_so_far(trace(s, values), max(AT)) / best for s in mine]
        out[name] = {
            "asked": [len(s.keys) for s in mine],
            "best_over_best": [[round(float(c[n - 1]), 5) for n in AT] for c in curves],
            "handed_over": [round(settled[id(s)] / least, 5) for s in mine],
        }
    return {
        "searches": out,
        "best": best,
        "keys": [[s.name, s.keys] for s in streams],
        "values": dict(values),
    }


def markdown(record: Mapping[str, Any]) -> list[str]:
    """The record as a table."""
    at = " / ".join(map(str, AT))
    lines = [
        "# Our search and Kernel Tuner's on our measurement, live",
        "",
        f"{record['device']}, driver {record['driver']}. Commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        f"{record['seeds']} searches of each kind, {record['budget']} configurations each, in turns. Best so",
        "far over the best that any of them found, geometric mean over the searches; handed over: the same",
        "of the winners, by the median of three measurements each.",
        "",
        f"| kernel | feasible | measured | seconds | ours at {at} | handed over "
        f"| Kernel Tuner at {at} | handed over |",
        "|---|---|---|---|---|---|---|---|",
    ]
    families = record["families"]
    for name, found in families.items():
        cells = [cell for search in found["searches"].values() for cell in _cells([search])]
        cells = [name, found["feasible"], found["measured"], f"{found['seconds']:.0f}", *cells]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    names = next(iter(families.values()))["searches"]
    overall = [cell for n in names for cell in _cells([f["searches"][n] for f in families.values()])]
    lines.append(f"| geometric mean | | | | {' | '.join(overall)} |")
    return lines


def _cells(searches: Sequence[Mapping[str, Any]]) -> list[str]:
    """Geometric means of the best so far at `AT`, and of what is handed over."""
    curves = zip(*(curve for s in searches for curve in s["best_over_best"]), strict=True)
    handed_over = [value for s in searches for value in s["handed_over"]]
    reached = " / ".join(f"{statistics.geometric_mean(values):.3f}" for values in curves)
    return [reached, f"{statistics.geometric_mean(handed_over):.3f}"]


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_intermixed_args()
    device = first_device(Backend(options.backend))
    pool = CompilePool(os.cpu_count() or 1)
    record: dict[str, Any] = {
        **head(device, "python -m benchmarks.gpu.live_search " + " ".join(sys.argv[1:])),
        "seeds": options.seeds,
        "budget": options.budget,
        "families": {},
    }
    for name in options.families or FAMILIES:
        record["families"][name] = family(name, device, pool, options)
        (options.out / "live-search.json").write_text(json.dumps(record, indent=1) + "\n")
        (options.out / "live-search.md").write_text("\n".join(markdown(record)) + "\n")
        print(markdown(record)[-2], flush=True)
    pool.close()
    print("\n".join(markdown(record)))


if __name__ == "__main__":
    main()
