"""Kernel Tuner and `warpsmith.tune` on one kernel: runs the code of docs/kernel-tuner.md as it stands there.

    python -m benchmarks.search.side_by_side --peer PYTHON --out FOLDER

PYTHON is that of an environment with kernel_tuner, pyopencl and pocl-binary-distribution. Each program runs
in a process of its own, by turns. Then the kernel as it was given and the winners of both are launched by
turns, under one clock, and compared with NumPy.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import ROOT, head, record_folder
from warpsmith.backends.opencl.platforms import devices, opencl
from warpsmith.domain.device import Backend
from warpsmith.sandbox import probe_devices

PAGE = ROOT / "docs" / "kernel-tuner.md"
LAST = "seconds=20)"
"""Last argument of the page's call of Warpsmith."""
RULES_OFF = 'seconds=20, fields={"rewrite": {"enabled": False}})'
"""The same, so that both search the same space."""
SIZES = (96, 128, 160)
DEFAULTS = {"block_size_x": 16, "block_size_y": 4, "tile_size_x": 1}
LAUNCHES = 60
TOLERANCE = 1e-3
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
kernel = result.kernel_for(m=m, n=n, k=k)
(workload,) = result.workloads
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


def page_code() -> dict[str, str]:
    """The kernel and the two programs of the page."""
    text = PAGE.read_text()
    (kernel,) = re.findall(r"^```c\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    theirs, ours = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return {"kernel": kernel, "kernel_tuner": theirs, "warpsmith": ours}


def ran(python: str, kernel: str, program: str, told: str) -> dict[str, Any]:
    """What a program found, with the seconds of its process."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "matmul.cl").write_text(kernel)
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


def as_launched(kernel: str, winner: dict[str, int]) -> dict[str, Any]:
    """A configuration of the page's kernel, with its launch."""
    m, n, _ = SIZES
    x, y, tile = (winner[name] for name in ("block_size_x", "block_size_y", "tile_size_x"))
    return {
        "source": kernel,
        "entry": "matmul",
        "options": [f"-D{name}={value}" for name, value in winner.items()],
        "grid": [-(-n // (x * tile)), -(-m // y)],
        "block": [x, y],
    }


def clocked(kernels: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Times of a launch of each kernel in microseconds, launched by turns, and how far its output is off."""
    cl = opencl()
    m, n, k = SIZES
    random = np.random.default_rng(1)
    a, b = random.random((m, k), np.float32), random.random((k, n), np.float32)
    right = a.astype(np.float64) @ b
    out = np.empty((m, n), np.float32)
    context = cl.Context([devices()[0]])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    inputs = [cl.Buffer(context, flags, hostbuf=array) for array in (a, b)]
    output = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, out.nbytes)
    times: dict[str, list[float]] = {name: [] for name in kernels}
    off = {}
    built = {
        name: getattr(cl.Program(context, given["source"]).build(given["options"]), given["entry"])
        for name, given in kernels.items()
    }
    for _ in range(LAUNCHES):
        for name, given in kernels.items():
            cl.enqueue_fill_buffer(queue, output, np.full(1, np.nan, np.float32), 0, out.nbytes)
            items = [g * s for g, s in zip(given["grid"], given["block"], strict=True)]
            event = built[name](queue, items, given["block"], *inputs, output, *map(np.int32, SIZES))
            event.wait()
            times[name].append((event.profile.end - event.profile.start) / 1e3)
            cl.enqueue_copy(queue, out, output)
            off[name] = float(np.abs(out - right).max())
    return {
        name: {
            "median_us": float(np.median(taken)),
            "quartiles_us": [float(q) for q in np.quantile(taken, (0.25, 0.75))],
            "min_us": min(taken),
            "largest_error": off[name],
            "right": off[name] <= TOLERANCE,
        }
        for name, taken in times.items()
    }


def table(record: dict[str, Any]) -> str:
    """The record as a table in Markdown."""
    lines = _row("program", "run", "seconds", "configurations", "winner", "load before") + _row(*["---"] * 6)
    for name, runs in record["runs"].items():
        for number, run in enumerate(runs, start=1):
            winner = ", ".join(f"{k}={v}" for k, v in (run["winner"] or {}).items()) or "as it was given"
            lines += _row(name, number, run["seconds"], run["evaluations"], winner, run["load_before"])
    lines += "\n" + _row("launched by turns", "median µs", "quartiles", "least", "right") + _row(*["---"] * 5)
    for name, timed in record["clock"].items():
        low, high = (f"{q:.0f}" for q in timed["quartiles_us"])
        right = "yes" if timed["right"] else "no"
        lines += _row(name, f"{timed['median_us']:.0f}", f"{low} to {high}", f"{timed['min_us']:.0f}", right)
    about = f"{record['device']}, {record['cores']} cores, commit {record['commit']}: `{record['command']}`"
    return f"{about}\n\n{lines}"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def main() -> int:
    """Write side-by-side.json and .md."""
    options = argparse.ArgumentParser(description="Kernel Tuner and Warpsmith on one kernel, on OpenCL.")
    options.add_argument("--peer", required=True, help="Python of an environment with Kernel Tuner")
    options.add_argument("--runs", type=int, default=2, help="runs of each program")
    options.add_argument("--out", type=record_folder, required=True, help="folder for the record")
    given = options.parse_args()
    code = page_code()
    programs = {
        "Kernel Tuner": (given.peer, code["kernel_tuner"], THEIRS_TOLD),
        "Warpsmith": (sys.executable, code["warpsmith"], OURS_TOLD),
        "Warpsmith without rules": (sys.executable, code["warpsmith"].replace(LAST, RULES_OFF), OURS_TOLD),
    }
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    for _ in range(given.runs):
        for name, (python, program, told) in programs.items():
            runs[name].append(ran(python, code["kernel"], program, told))
            print(name, runs[name][-1]["seconds"], "s", flush=True)
    kernels = {"as it was given": as_launched(code["kernel"], DEFAULTS)}
    for name, found in runs.items():
        for number, run in enumerate(found, start=1):
            kernel = run.get("kernel") or as_launched(code["kernel"], run["winner"])
            kernels[f"{name}, run {number}"] = kernel
    device = next(d for d in probe_devices().devices if d.backend is Backend.OPENCL)
    record = head(device, f"python -m benchmarks.search.side_by_side --runs {given.runs}") | {
        "versions": {name: version(name) for name in ("numpy", "pyopencl", "pocl-binary-distribution")},
        "cores": os.cpu_count(),
        "sizes": dict(zip("mnk", SIZES, strict=True)),
        "code": code,
        "runs": runs,
        "clock": clocked(kernels),
    }
    (given.out / "side-by-side.json").write_text(json.dumps(record, indent=1) + "\n")
    (given.out / "side-by-side.md").write_text(table(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
