"""A search by energy beside one by time on the GPU of this machine: what it finds, and what it costs.

    python -m benchmarks.gpu.energy_search --out OUT [--trials N] [--seeds N] [family ...]

For every CUDA example whose kernel leaves its inputs alone, on its largest workload: the same number of
trials with both metrics, in turns, from nothing. Then the winners of both against each other in interleaved
runs of the energy counter. Writes `OUT/energy-search.json` and `OUT/energy-search.md`.
"""

import argparse
import json
import math
import os
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.gpu.cut_short import TimedSink
from benchmarks.gpu.energy import largest
from benchmarks.job_files import FAMILIES, load
from benchmarks.provenance import head
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import Job, Metric, SearcherName
from warpsmith.domain.outcome import CutShort, Measured, Rejected
from warpsmith.domain.plan import TimingPlan, launch_size
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import Template
from warpsmith.measure.nvml import Nvml, nvml_for
from warpsmith.rewrite.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner, probe_devices
from warpsmith.search import enumerate_space, launched, make_searcher
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel, SessionPorts
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.timing.energy import Energies, energies, measurable
from warpsmith.tuning.timing.paired_blocks import Side
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice

SECONDS = 150.0
"""Of a search, at most."""


def search(
    job: Job, template: Template, ports: SessionPorts, baseline: BaselineResult, seed: int, trials: int
) -> TimedSink:
    """One search from nothing."""
    scopes = [ports.opener.info.scope() | w.scope() for w in job.workloads]
    feasible = enumerate_space(template.space, scopes)
    told = launched(template.kernel.launch, feasible, scopes, ports.opener.info.limits.warp_size)
    searcher = make_searcher(SearcherName.DEFAULT, feasible, seed, launched=told)
    sink, session = TimedSink(), DeviceSession(job, ports)
    try:
        limits = SliceLimits(SECONDS, trials, compile_ahead=2 * (os.cpu_count() or 1))
        run_slice(session, template, baseline, searcher, sink, limits, SliceStart(gate=False))
    finally:
        session.close()
    return sink


def best(sink: TimedSink) -> tuple[Configuration, Measured]:
    """The trial with the least objective."""
    measured = [(c, o) for c, o in sink.trials if isinstance(o, Measured)]
    return min(measured, key=lambda pair: pair[1].objective)


def figures(job: Job, sink: TimedSink) -> dict[str, Any]:
    """Of one search."""
    configuration, outcome = best(sink)
    measured = [o for _, o in sink.trials if isinstance(o, Measured)]
    estimates = [math.log(o.expected / o.objective) for o in measured if o.expected is not None]
    return {
        "trials": len(sink.trials),
        "measured": len(measured),
        "cut_short": sum(isinstance(o, CutShort) for _, o in sink.trials),
        "estimates_over_truth": [round(math.exp(e), 3) for e in estimates],
        "device_s": round(sink.seconds, 1),
        "objective": outcome.objective,
        "configuration": configuration,
        "us": [time_us(job, t) for t in outcome.timings],
        "mj": [t.energy_mj for t in outcome.timings],
        "points": [
            (time_us(job, o.timings[0]), o.timings[0].energy_mj) for o in measured if o.timings[0].energy_mj
        ],
    }


def duel(
    job: Job,
    template: Template,
    ports: SessionPorts,
    counter: Nvml,
    first: Configuration,
    second: Configuration,
) -> dict[str, Any]:
    """Energies and times of two configurations in interleaved runs, each in a process of its own."""
    (workload,) = job.workloads
    sessions, sides, times = [], {}, {}
    for name, configuration in (("A", first), ("B", second)):
        session = DeviceSession(job, ports)
        sessions.append(session)
        kernel = template.configured(configuration)
        compiled = session.compile(kernel)
        assert not isinstance(compiled, Rejected), compiled.reason
        size = launch_size(kernel, workload, ports.opener.info)
        handle = session.device(workload).load(compiled)
        sides[name] = Side(session, LoadedKernel(handle, workload, size))
    try:
        for name, side in sides.items():
            checked = side.session.checker.check(side.loaded, whole=True)
            assert not isinstance(checked, Rejected), checked.reason
            times[name] = statistics.median(timed_us(job, side))
        found = energies(job, counter, sides, times, seed=0)
    finally:
        for session in sessions:
            session.close()
    assert isinstance(found, Energies), found
    return {"us": times, "energies": asdict(found)}


def timed_us(job: Job, side: Side) -> tuple[float, ...]:
    """Twenty samples."""
    plan = TimingPlan(job.objective.cache, samples=20)
    return side.session.sampler.time(side.loaded, plan).samples_us


def family(name: str, device: DeviceInfo, pool: CompilePool, options: argparse.Namespace) -> dict[str, Any]:
    """One example, both metrics in turns."""
    counter = nvml_for(device)
    assert counter is not None
    ports = SessionPorts(ChildOpener(device), pool, ReferenceRunner(), energy=counter)
    whole = load(name, "cuda")
    job = whole.model_copy(update={"workloads": (largest(whole, device),)})
    jobs = {
        metric: job.model_copy(update={"objective": job.objective.model_copy(update={"metric": metric})})
        for metric in (Metric.ENERGY, Metric.TIME)
    }
    template = make_template(job).template
    session = DeviceSession(jobs[Metric.ENERGY], ports)
    try:
        baseline = measure_baseline(session)
    finally:
        session.close()
    assert not baseline.refused, baseline.refused
    runs: list[dict[str, Any]] = []
    for seed in range(options.seeds):
        order = (Metric.ENERGY, Metric.TIME) if seed % 2 else (Metric.TIME, Metric.ENERGY)
        sinks = {m: search(jobs[m], template, ports, baseline, seed, options.trials) for m in order}
        run: dict[str, Any] = {m.value: figures(jobs[m], sink) for m, sink in sinks.items()}
        by_time, by_energy = (best(sinks[m])[0] for m in (Metric.TIME, Metric.ENERGY))
        if by_time != by_energy:
            run["duel"] = duel(jobs[Metric.ENERGY], template, ports, counter, by_time, by_energy)
        runs.append(run)
        print(name, seed, {m: {k: v for k, v in run[m].items() if k != "points"} for m in ("time", "energy")})
        print(name, seed, run.get("duel"), flush=True)
    return {"workload": job.workloads[0].key, "runs": runs}


def markdown(record: dict[str, Any]) -> list[str]:
    """The record as a table."""
    lines = [
        "# A search by energy beside one by time",
        "",
        f"{record['device']}, driver {record['driver']}. Commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        "Energy and time: of the winner by energy over the winner by time, in interleaved runs.",
        "",
        "| kernel | seed | trials by energy: metered, only timed | device s: energy, time "
        "| energy | runs differ by | time |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in record["families"].items():
        for seed, run in enumerate(found["runs"]):
            by_energy, by_time, met = run["energy"], run["time"], run.get("duel")
            words = "the same configuration | | "
            if met is not None:
                e = met["energies"]
                words = (
                    f"{e['winner_mj'] / e['baseline_mj']:.3f} | {100 * e['spread']:.1f} % "
                    f"| {met['us']['B'] / met['us']['A']:.3f}"
                )
            lines.append(
                f"| {name} {found['workload']} | {seed} | {by_energy['measured']}, {by_energy['cut_short']} "
                f"| {by_energy['device_s']}, {by_time['device_s']} | {words} |"
            )
    return lines


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_intermixed_args()
    device = next(d for d in probe_devices().devices if d.backend is Backend.CUDA)
    pool = CompilePool(os.cpu_count() or 1)
    record: dict[str, Any] = {
        **head(device, "python -m benchmarks.gpu.energy_search " + " ".join(sys.argv[1:])),
        "families": {},
    }
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.families or [f for f in FAMILIES if measurable(load(f, "cuda"))]:
        record["families"][name] = family(name, device, pool, options)
        (options.out / "energy-search.json").write_text(json.dumps(record, indent=1) + "\n")
        (options.out / "energy-search.md").write_text("\n".join(markdown(record)) + "\n")
    pool.close()
    print("\n".join(markdown(record)))


if __name__ == "__main__":
    main()
