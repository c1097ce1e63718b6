"""What all the checks cost: trials a second of ours beside Kernel Tuner's, same configurations, same machine.

    python -m benchmarks.trust.rate [--configurations 300] [--peer PATH] [--out FOLDER]

The template is what the rules make of `examples/silu_and_mul/cuda.yaml`, on 16 x 12288. Ours is a whole
slice: gate, compiling, every check, timing, judging. Kernel Tuner's (its `nvcuda` back end, 7 launches a
configuration) is its `tune_kernel` call, once as it comes and once with its own check of the answer;
`--peer` is a folder that holds it. Starting either is not counted.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, where
from testbed.example_jobs import load_example
from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job, Workload
from warpsmith.domain.outcome import Measured, Outcome
from warpsmith.domain.space import Configuration, ParameterValue, configuration_key
from warpsmith.domain.template import Template
from warpsmith.rewrite.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.search import enumerate_space
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.ports import Searcher
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.slice import SliceLimits, run_slice

TOKENS, HIDDEN = 16, 12288
SHAPE = {"tokens": TOKENS, "hidden": HIDDEN}


class Listed(Searcher):
    """A searcher that proposes a list."""

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._left = list(configurations)

    def ask(self, count: int) -> Sequence[Configuration]:
        """The next of the list."""
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """Nothing is learned."""


class Kept:
    """A sink that keeps outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.ended: list[float] = []
        self.device_s: list[float] = []

    def proposed(self, configurations: Sequence[Configuration]) -> None:
        """Nothing is stored."""

    def finished(self, configuration: Configuration, outcome: Outcome, seconds: float) -> None:
        """One more."""
        self.outcomes.append(outcome)
        self.ended.append(time.monotonic())
        self.device_s.append(seconds)

    def alive(self) -> bool:
        """Always."""
        return True


def the_job(backend: Backend) -> tuple[Job, Template]:
    """The example on one shape, and its template."""
    job = load_example("silu_and_mul", backend.value)
    job = job.model_copy(update={"workloads": (Workload(dimensions=SHAPE),)})
    return job, make_template(job).template


def chosen(template: Template, scope: dict[str, Any], count: int) -> dict[str, list[ParameterValue]]:
    """Values by parameter whose product, all of it feasible, has about `count` configurations."""
    values = {p.name: list(p.values) for p in template.space.parameters}
    feasible = enumerate_space(template.space, [scope | SHAPE])
    allowed = {configuration_key(feasible.configuration(row)) for row in range(len(feasible))}
    while True:
        every = product(values)
        if len(every) <= count and all(configuration_key(c) in allowed for c in every):
            return values
        # The parameter with most values loses its first.
        longest = max(values, key=lambda name: len(values[name]))
        values[longest].pop(0)


def product(values: dict[str, list[ParameterValue]]) -> list[Configuration]:
    """All combinations, in a random order that is always the same."""
    every = [dict(zip(values, c, strict=True)) for c in itertools.product(*values.values())]
    random.Random(0).shuffle(every)
    return every


def ours(backend: Backend, count: int) -> dict[str, Any]:
    """One slice over `count` configurations."""
    device = first_device(backend)
    job, template = the_job(backend)
    configurations = product(chosen(template, device.scope(), count))
    workers = os.cpu_count() or 1
    pool = CompilePool(workers)
    pool.warm(backend)
    session = DeviceSession(job, SessionPorts(ChildOpener(device), pool, ReferenceRunner()))
    sink = Kept()
    try:
        began = time.monotonic()
        baseline = measure_baseline(session)
        baseline_s = time.monotonic() - began
        limits = SliceLimits(seconds=600, trials=len(configurations), compile_ahead=2 * workers)
        rest = [c for c in configurations if c != template.space.defaults]
        began = time.monotonic()
        run_slice(session, template, baseline, Listed(rest), sink, limits)
        seconds = time.monotonic() - began
    finally:
        session.close()
        pool.close()
    measured = [o for o in sink.outcomes if isinstance(o, Measured)]
    best = min(measured, key=lambda o: o.objective)
    return {
        "trials": len(sink.outcomes),
        "measured": len(measured),
        "seconds": seconds,
        "trials_per_s": len(sink.outcomes) / seconds,
        "baseline_s": baseline_s,
        "gate_s": sink.ended[0] - began,
        "device_ms_of_a_trial": statistics.median(sink.device_s[1:]) * 1e3,
        "trials_per_s_after_the_first_ten": (len(sink.ended) - 11) / (sink.ended[-1] - sink.ended[10]),
        "best_us": [t.cold.median_us for t in best.timings if t.cold is not None],
    }


def peer(count: int, check: bool) -> dict[str, Any]:
    """Kernel Tuner over the same configurations; runs in a process of its own."""
    import kernel_tuner
    from kernel_tuner import tune_kernel

    device = first_device(Backend.CUDA)
    _, template = the_job(Backend.CUDA)
    values = chosen(template, device.scope(), count)
    launch = template.kernel.launch
    grid = tuple(e.text.replace("tokens", str(TOKENS)) for e in launch.grid)
    (block,) = (e.text for e in launch.block)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((TOKENS, 2 * HIDDEN)).astype(np.float16)
    gate, up = data[:, :HIDDEN].astype(np.float64), data[:, HIDDEN:].astype(np.float64)
    right = (gate / (1.0 + np.exp(-gate)) * up).astype(np.float16)
    arguments = [data, np.zeros_like(right), np.int32(HIDDEN)]
    nvcc = shutil.which("nvcc")
    include = [f"-I{Path(nvcc).resolve().parents[1] / 'include'}"] if nvcc else []
    began = time.monotonic()
    results, _ = tune_kernel(
        template.kernel.entry,
        template.kernel.text,
        grid,
        arguments,
        values,
        grid_div_x=[],
        grid_div_y=[],
        block_size_names=[block, "unused_y", "unused_z"],
        lang="nvcuda",
        compiler_options=[*include, "-std=c++17"],
        answer=[None, right, None] if check else None,
        atol=2e-2,
        quiet=True,
    )
    seconds = time.monotonic() - began
    times = [r["time"] for r in results if isinstance(r["time"], float)]
    return {
        "version": kernel_tuner.__version__ if hasattr(kernel_tuner, "__version__") else "",
        "trials": len(results),
        "measured": len(times),
        "seconds": seconds,
        "trials_per_s": len(results) / seconds,
        "best_us": min(times) * 1e3,
    }


def in_a_process(folder: Path, count: int, check: bool) -> dict[str, Any]:
    """`peer` with that folder on the path."""
    command = [sys.executable, "-m", "benchmarks.trust.rate", "--configurations", str(count)]
    command += ["--as-peer", "checked" if check else "plain"]
    path = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH", ""), str(folder)) if p)
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return {"error": done.stderr[-1500:]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="cuda", choices=["opencl", "cuda"])
    parser.add_argument("--configurations", type=int, default=300, help="at least 12")
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--as-peer", choices=["plain", "checked"], help=argparse.SUPPRESS)
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.configurations < 12:
        parser.error("--configurations: the rate after the first ten needs at least 12")
    if arguments.as_peer:
        print(json.dumps(peer(arguments.configurations, arguments.as_peer == "checked")))
        return 0
    backend = Backend(arguments.backend)
    record = where(first_device(backend), "python -m benchmarks.trust.rate " + " ".join(sys.argv[1:]))
    found = {"warpsmith": ours(backend, arguments.configurations)}
    if arguments.peer is not None:
        found["Kernel Tuner"] = in_a_process(arguments.peer, arguments.configurations, False)
        found["Kernel Tuner, checking the answer"] = in_a_process(
            arguments.peer, arguments.configurations, True
        )
    record |= {"cores": os.cpu_count(), "found": found}
    name = f"trust-rate-{backend.value}"
    (arguments.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (arguments.out / f"{name}.md").write_text(page(record))
    print(page(record))
    return 0


def page(record: dict[str, Any]) -> str:
    """The record as a page."""
    lines = [
        f"# Trials a second, 16 x 12288 silu_and_mul, on {record['device']}",
        "",
        f"{record['driver']}, {record['cores']} cores. Commit {record['commit']}, {record['when']}."
        f" `{record['command']}`",
        "",
        "| tuner | configurations | trials/s | best, µs by its own clock |",
        "|---|---|---|---|",
    ]
    for name, row in record["found"].items():
        if "error" in row:
            lines.append(f"| {name} | {row['error'][-200:]} | | |")
            continue
        best = row["best_us"] if isinstance(row["best_us"], float) else row["best_us"][0]
        lines.append(f"| {name} | {row['trials']} | {row['trials_per_s']:.1f} | {best:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
