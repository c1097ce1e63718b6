"""Measure every feasible configuration of the CUDA examples, as recordings for `benchmarks.search`.

    python -m benchmarks.gpu.record_spaces --out OUT [--most 6000] [--seconds 150] [--again 60] [family ...]

Each example's template (of the rules) is measured whole, in random order, by a slice like a job's own:
compiled, checked, timed, and stopped early where hopeless. The recorded time is the objective (1: the
baseline), so that searchers can be compared on this measurement. The best of thousands of noisy figures
is the luckiest, so the best `--again` are measured twice more, and the median counts. Writes
`OUT/FAMILY-H200.json.gz`, with the device, the commit and the seconds it took under `made`.
"""

import argparse
import gzip
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.smaller import with_smallest
from benchmarks.job_files import FAMILIES, load
from benchmarks.provenance import plain_command, record_folder
from benchmarks.trust.record import first_device
from warpsmith.commit import commit_name
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import Job, SearcherName
from warpsmith.domain.outcome import CutShort, Measured, Outcome
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import Template
from warpsmith.rewrite.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.search import enumerate_space, make_searcher
from warpsmith.testing.fakes import ListSink
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice

ROOT = Path(__file__).resolve().parents[2]


def restrictions(template: Template, scopes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The constraints, with the device's limits and the dimensions as numbers.

    A configuration is feasible where one workload allows it.
    """
    own = {p.name for p in template.space.parameters}
    found: dict[tuple[str, ...], None] = {}
    for scope in scopes:
        allowed = []
        for constraint in template.space.constraints:
            words = constraint.expression.text
            for name in sorted(set(scope) - own, key=len, reverse=True):
                words = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", repr(scope[name]), words)
            allowed.append(words)
        found[tuple(allowed)] = None
    common = [w for w in next(iter(found)) if all(w in each for each in found)]
    rest = [" and ".join(f"({w})" for w in each if w not in common) for each in found]
    return common + ([" or ".join(f"({words})" for words in rest)] if all(rest) else [])


def median_of(job: Job, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What a recording keeps of a configuration that was measured several times."""
    entries = [entry(job, outcome) for outcome in outcomes]
    numbers = [e for e in entries if "workloads_us" in e]
    if len(numbers) < len(entries):
        return next(e for e in entries if e not in numbers)
    each = {
        key: statistics.median(e["workloads_us"][key] for e in numbers) for key in numbers[0]["workloads_us"]
    }
    return entries[0] | {"time": statistics.median(e["time"] for e in numbers), "workloads_us": each}


def entry(job: Job, outcome: Outcome) -> dict[str, Any]:
    """What a recording keeps of an outcome: also each workload's microseconds and the compile facts."""
    facts = {} if outcome.facts is None else outcome.facts.model_dump(exclude={"seconds"}, exclude_none=True)
    assert not isinstance(outcome, CutShort), "every trial runs on every workload"
    if not isinstance(outcome, Measured):
        return {"time": f"{outcome.stage.value} failed", "static": facts}
    each = {t.workload: time_us(job, t) for t in outcome.timings}
    return {"time": outcome.objective, "workloads_us": each, "static": facts}


def best_of(trials: Sequence[tuple[Configuration, Outcome]], count: int) -> list[Configuration]:
    """The configurations with the lowest objectives."""
    measured = [(o.objective, n, c) for n, (c, o) in enumerate(trials) if isinstance(o, Measured)]
    return [c for _, _, c in sorted(measured)[:count]]


def record(
    job: Job, device: DeviceInfo, pool: CompilePool, most: int, seconds: float, again: int
) -> dict[str, Any]:
    """One example's recording."""
    template = make_template(job).template
    scopes = [device.scope() | w.scope() for w in job.workloads]
    feasible = enumerate_space(template.space, scopes)
    session = DeviceSession(job, SessionPorts(ChildOpener(device), pool, ReferenceRunner()))
    sink = ListSink()
    began = time.monotonic()
    try:
        baseline = measure_baseline(session)
        assert not baseline.refused, baseline.refused
        searcher = make_searcher(SearcherName.RANDOM, feasible, seed=0)
        limits = SliceLimits(seconds, most, compile_ahead=2 * (os.cpu_count() or 1))
        run_slice(session, template, baseline, searcher, sink, limits)
        best = best_of(sink.trials, again)
        for _ in range(2 if best else 0):
            more = SliceLimits(seconds, len(best), limits.compile_ahead)
            run_slice(
                session, template, baseline, searcher, sink, more, SliceStart(gate=False, leftover=best)
            )
    finally:
        session.close()
    names = [p.name for p in template.space.parameters]
    by_key: dict[str, list[tuple[Configuration, Outcome]]] = {}
    for configuration, outcome in sink.trials:
        by_key.setdefault(",".join(str(configuration[n]) for n in names), []).append((configuration, outcome))
    cache = {
        key: {**found[0][0], **median_of(job, [outcome for _, outcome in found])}
        for key, found in by_key.items()
    }
    return {
        "tune_params": {p.name: list(p.values) for p in template.space.parameters},
        "restrictions": restrictions(template, scopes),
        "cache": cache,
        "made": {
            "device": device.name,
            "driver": device.driver,
            "commit": commit_name(),
            "command": plain_command("python " + " ".join(sys.argv)),
            "workloads": [w.key for w in job.workloads],
            "feasible": feasible.count,
            "recorded": len(cache),
            "measured_again": len(best),
            "seconds": round(time.monotonic() - began, 1),
        },
    }


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=[])
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--most", type=int, default=6000)
    parser.add_argument("--seconds", type=float, default=150, help="for each family")
    parser.add_argument("--again", type=int, default=0, help="so many of the best are measured twice more")
    parser.add_argument("--workloads", type=int, default=0, help="only so many, the smallest; 0: all")
    options = parser.parse_intermixed_args()
    device = first_device(Backend(options.backend))
    pool = CompilePool(os.cpu_count() or 1)
    for family in options.families or FAMILIES:
        job = with_smallest(load(family, options.backend), options.workloads)
        job = job.model_copy(update={"budget": job.budget.model_copy(update={"stop_early": False})})
        found = record(job, device, pool, options.most, options.seconds, options.again)
        name = re.sub(r"^NVIDIA ", "", device.name).replace(" ", "_").replace("-", "_")
        with gzip.open(options.out / f"{family}-{name}.json.gz", "wt") as file:
            json.dump(found, file)
        print(family, found["made"], flush=True)
    pool.close()


if __name__ == "__main__":
    main()
