"""Kernel Tuner and `warpsmith.tune` on three kernels: the code of docs/kernel-tuner.md as it stands
there, and that of `beside/`, which has the same form.

    python -m benchmarks.search.side_by_side --peer PYTHON --out FOLDER [--seconds 60] [--busy 4]

PYTHON is that of an environment with kernel_tuner, pyopencl and pocl-binary-distribution. Each program runs
in a process of its own, by turns, and every second kernel turns their order round. Then the kernel as it was
given and the winners of both are launched by turns, under one clock, and compared with Kernel Tuner's answer.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import ROOT, head, record_folder
from warpsmith.backends.opencl.platforms import devices, opencl
from warpsmith.domain.device import Backend
from warpsmith.sandbox import probe_devices

PAGE = ROOT / "docs" / "kernel-tuner.md"
PAGES = (PAGE, *sorted((ROOT / "benchmarks" / "search" / "beside").glob("*.md")))
SECONDS = r'(seconds=|"time_limit": )20'
"""The time of a search in both programs of a page."""
RULES_OFF = ', fields={"rewrite": {"enabled": False}})\n'
"""End of a page's call of Warpsmith, so that both search the same space."""
RUNS = ("program", "run", "seconds", "configurations", "winner", "load before")
TIMES = ("launched by turns", "median µs", "quartiles", "least", "right")
LAUNCHES = 60
BUSY = "while True: pass"
THEIRS_TOLD = """
import json, kernel_tuner, numpy, pyopencl
best = env["best_config"]
times = [r["time"] for r in results if isinstance(r["time"], float)]
told = {
    "evaluations": len(results), "measured": len(times), "best_ms": float(best["time"]),
    "winner": {name: best[name] for name in tune_params},
    "versions": {m.__name__: getattr(m, "VERSION_TEXT", None) or m.__version__
                 for m in (kernel_tuner, numpy, pyopencl)},
}
json.dump(told, open("told.json", "w"))
"""
OURS_TOLD = """
import collections, json
(workload,) = result.workloads
kernel = result.kernel_for(**workload.dimensions)
told = {
    "evaluations": sum(t["outcome"] is not None for t in result.trials),
    "outcomes": collections.Counter(t["outcome"] for t in result.trials if t["outcome"]),
    "state": result.state.value, "reason": result.reason, "has_gain": result.has_gain,
    "baseline_us": workload.baseline_us, "best_us": workload.best_us,
    "speedup_95": workload.speedup and [workload.speedup.low, workload.speedup.high],
    "winner": workload.configuration,
    "kernel": {"source": kernel.source, "entry": kernel.entry, "options": list(kernel.options),
               "grid": list(kernel.grid), "block": list(kernel.block)},
}
json.dump(told, open("told.json", "w"))
"""


def page_code(page: Path = PAGE) -> dict[str, str]:
    """The kernel and the two programs of a page."""
    text = page.read_text()
    (kernel,) = re.findall(r"^```c\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    theirs, ours = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return {"kernel": kernel, "kernel_tuner": theirs, "warpsmith": ours}


def problem_of(program: str) -> dict[str, Any]:
    """Names that a program of Kernel Tuner gives to its arguments, grid and right answer."""
    before, _, _ = program.replace("from kernel_tuner import tune_kernel\n", "").partition("results, env")
    np.random.seed(1)
    names: dict[str, Any] = {}
    exec(before, names)
    return names


def ran(python: str, kernel: str, program: str, told: str) -> dict[str, Any]:
    """What a program found, with the seconds of its process."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("matmul.cl", "kernel.cl"):
            (Path(folder) / name).write_text(kernel)
        # A file, because a function of `python -c` has no source that could be sent.
        (Path(folder) / "program.py").write_text(program + told)
        began = time.monotonic()
        load = os.getloadavg()[0]
        subprocess.run(
            [python, "program.py"],
            cwd=folder,
            env=os.environ
            | {
                "PYTHONPATH": str(ROOT) if python == sys.executable else "",
                # What an earlier run compiled is not there.
                "POCL_CACHE_DIR": folder,
            },
            stdout=subprocess.DEVNULL,
            check=True,
        )
        seconds = round(time.monotonic() - began, 1)
        found: dict[str, Any] = json.loads((Path(folder) / "told.json").read_text())
    return {"seconds": seconds, "load_before": round(load, 1)} | found


def as_launched(kernel: str, problem: dict[str, Any], winner: dict[str, int] | None = None) -> dict[str, Any]:
    """A configuration of a kernel, that as it was given if there is none, with its launch."""
    entry, _, sizes, _, values = problem["problem"]
    winner = winner or {name: given[0] for name, given in values.items()}
    names = ("block_size_x", "block_size_y")[: len(sizes)]
    steps = [problem["grid"][f"grid_div_{axis}"] for axis in "xy"[: len(sizes)]]
    return {
        "source": kernel,
        "entry": entry,
        "options": [f"-D{name}={value}" for name, value in winner.items()],
        "grid": [-(-int(s) // math.prod(winner[n] for n in by)) for s, by in zip(sizes, steps, strict=True)],
        "block": [winner[name] for name in names],
    }


def clocked(kernels: dict[str, dict[str, Any]], problem: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Times of a launch of each kernel in microseconds, launched by turns, and how far its output is off."""
    cl = opencl()
    context = cl.Context([devices()[0]])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arguments = [
        cl.Buffer(context, flags, hostbuf=a) if isinstance(a, np.ndarray) else a for a in problem["arguments"]
    ]
    answers = [(arguments[i], a) for i, a in enumerate(problem["right"]["answer"]) if a is not None]
    times: dict[str, list[float]] = {name: [] for name in kernels}
    off = {}
    built = {
        name: getattr(cl.Program(context, given["source"]).build(given["options"]), given["entry"])
        for name, given in kernels.items()
    }
    for _ in range(LAUNCHES):
        for name, given in kernels.items():
            for output, right in answers:
                cl.enqueue_fill_buffer(queue, output, np.full(1, np.nan, np.float32), 0, right.nbytes)
            items = [g * s for g, s in zip(given["grid"], given["block"], strict=False)]
            event = built[name](queue, items, given["block"][: len(items)], *arguments)
            event.wait()
            times[name].append((event.profile.end - event.profile.start) / 1e3)
            off[name] = 0.0
            for output, right in answers:
                out = np.empty_like(right)
                cl.enqueue_copy(queue, out, output)
                off[name] = max(off[name], float(np.nan_to_num(np.abs(out - right), nan=np.inf).max()))
    return {
        name: {
            "median_us": float(np.median(taken)),
            "quartiles_us": [float(q) for q in np.quantile(taken, (0.25, 0.75))],
            "min_us": min(taken),
            "largest_error": off[name],
            "right": off[name] <= problem["right"]["atol"],
        }
        for name, taken in times.items()
    }


def table(record: dict[str, Any]) -> str:
    """The record as tables in Markdown."""
    about = f"{record['device']}, {record['cores']} cores, {record['busy']} busy processes beside, "
    lines = f"{about}commit {record['commit']}: `{record['command']}`\n"
    for kernel, found in record["kernels"].items():
        lines += f"\n## {kernel}\n\n" + _head(RUNS)
        for name, runs in found["runs"].items():
            for number, run in enumerate(runs, start=1):
                winner = ", ".join(f"{k}={v}" for k, v in (run["winner"] or {}).items()) or "as it was given"
                lines += _row(name, number, run["seconds"], run["evaluations"], winner, run["load_before"])
        lines += "\n" + _head(TIMES)
        for name, timed in found["clock"].items():
            low, high = (f"{q:.0f}" for q in timed["quartiles_us"])
            least, right = f"{timed['min_us']:.0f}", "yes" if timed["right"] else "no"
            lines += _row(name, f"{timed['median_us']:.0f}", f"{low} to {high}", least, right)
    return lines


def _head(names: Sequence[str]) -> str:
    return _row(*names) + _row(*["---"] * len(names))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Context in which as many processes keep cores busy."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def compared(page: Path, given: argparse.Namespace, turned: bool) -> dict[str, Any]:
    """The programs of a page, run, and their winners under one clock."""
    code = page_code(page)
    theirs, ours = (
        re.sub(SECONDS, rf"\g<1>{given.seconds}", code[name]) for name in ("kernel_tuner", "warpsmith")
    )
    without_rules = ours.rstrip().removesuffix(")") + RULES_OFF
    programs = {
        "Kernel Tuner": (given.peer, theirs, THEIRS_TOLD),
        "Warpsmith": (sys.executable, ours, OURS_TOLD),
        "Warpsmith without rules": (sys.executable, without_rules, OURS_TOLD),
    }
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    for _ in range(given.runs):
        for name in reversed(programs) if turned else programs:
            python, program, told = programs[name]
            runs[name].append(ran(python, code["kernel"], program, told))
            print(page.stem, name, runs[name][-1]["seconds"], "s", flush=True)
    problem = problem_of(code["kernel_tuner"])
    kernels = {"as it was given": as_launched(code["kernel"], problem)}
    for name, found in runs.items():
        for number, run in enumerate(found, start=1):
            kernel = run.get("kernel") or as_launched(code["kernel"], problem, run["winner"])
            kernels[f"{name}, run {number}"] = kernel
    return {"code": code, "runs": runs, "clock": clocked(kernels, problem)}


def main() -> int:
    """Write side-by-side.json and .md, or side-by-side-busy.* with others beside."""
    options = argparse.ArgumentParser(description="Kernel Tuner and Warpsmith on three kernels, on OpenCL.")
    options.add_argument("--peer", required=True, help="Python of an environment with Kernel Tuner")
    options.add_argument("--runs", type=int, default=1, help="runs of each program")
    options.add_argument("--seconds", type=int, default=60, help="time of a search")
    options.add_argument("--busy", type=int, default=0, help="processes that keep cores busy meanwhile")
    options.add_argument("--out", type=record_folder, required=True, help="folder for the record")
    given = options.parse_args()
    device = next(d for d in probe_devices().devices if d.backend is Backend.OPENCL)
    call = f"--runs {given.runs} --seconds {given.seconds} --busy {given.busy}"
    record = head(device, f"python -m benchmarks.search.side_by_side {call}") | {
        "versions": {name: version(name) for name in ("numpy", "pyopencl", "pocl-binary-distribution")},
        "cores": os.cpu_count(),
        "busy": given.busy,
    }
    with busy_processes(given.busy):
        record["kernels"] = {
            page.stem: compared(page, given, bool(place % 2)) for place, page in enumerate(PAGES)
        }
    name = "side-by-side-busy" if given.busy else "side-by-side"
    (given.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    (given.out / f"{name}.md").write_text(table(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
