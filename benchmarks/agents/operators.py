"""Tuned kernels as PyTorch operators beside the framework's own, in one process on one device.

    python -m benchmarks.agents.operators --state DIR --out DIR [--arm template] [--seed 0]

DIR is what `benchmarks.agents.gpu go` left. Each job's result is exported as a torch operator. It and what a
user of PyTorch or transformers calls today take turns on the same tensors: eagerly with a cold L2 cache, and
warm under a CUDA graph. A kernel without a gain is exported too: its own dispatch serves, and it counts.
"""

import argparse
import importlib
import json
import math
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.agents.frameworks import FRAMEWORK
from benchmarks.agents.gpu import ENVIRONMENT
from benchmarks.production.service import embedded_service
from benchmarks.provenance import plain_command, record_folder
from benchmarks.trust.record import first_device
from warpsmith.commit import commit_name
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.plan import BufferPlan, ScalarPlan, WorkloadPlan, plan_workload
from warpsmith.extensions.clients.python.result import Result
from warpsmith.measure.statistics import speedup_interval
from warpsmith.verify.inputs import draw_buffer

BLOCKS, CALLS, WARM_UP = 12, 20, 5
CACHE_BYTES = 256 << 20
Call = Callable[[], object]


def tensors_of(plan: WorkloadPlan, torch: Any) -> dict[str, Any]:
    """The buffers of a workload on the device, drawn as the job says."""
    raw = {2: (np.uint16, torch.bfloat16), 1: (np.uint8, getattr(torch, "float8_e4m3fn", None))}
    found = {}
    for buffer in (a for a in plan.arguments if isinstance(a, BufferPlan)):
        values = np.ascontiguousarray(draw_buffer(buffer, plan.seed)).reshape(buffer.shape)
        if values.dtype.kind == "V" or values.dtype.name.startswith(("bfloat", "float8")):
            bits, dtype = raw[values.dtype.itemsize]
            found[buffer.name] = torch.from_numpy(values.view(bits)).cuda().view(dtype)
        else:
            found[buffer.name] = torch.from_numpy(values).cuda()
    return found


def eager_us(call: Call, torch: Any, flush: Any) -> list[float]:
    """Times of single calls between two events, each after the L2 cache was overwritten."""
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(CALLS)]
    for before, after in pairs:
        flush.zero_()
        before.record()
        call()
        after.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) * 1e3 for before, after in pairs]


def captured(call: Call, torch: Any) -> Call:
    """A replay of `CALLS` calls as one CUDA graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    replay: Call = graph.replay
    return replay


def graph_us(replay: Call, torch: Any) -> list[float]:
    """Time of a call in a replay, as a block of one sample."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    replay()
    after.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) * 1e3 / CALLS]


def side_by_side(theirs: Call, ours: Call, time: Callable[[Call], list[float]]) -> dict[str, Any]:
    """Both in turns, the order alternating: medians in µs, and the speed-up with its interval."""
    blocks: dict[str, list[list[float]]] = {"theirs": [], "ours": []}
    sides = [("theirs", theirs), ("ours", ours)]
    for n in range(BLOCKS):
        for name, call in sides[:: 1 if n % 2 else -1]:
            blocks[name].append(time(call))
    interval = speedup_interval(blocks["theirs"], blocks["ours"])
    medians = {f"{name}_us": round(float(np.median(some)), 2) for name, some in blocks.items()}
    return medians | {"speedup": [round(v, 3) for v in (interval.estimate, interval.low, interval.high)]}


def compared(job: Job, workload: Workload, operator: Any, framework: Callable[..., Any], torch: Any) -> Any:
    """Both on one workload: times, and the largest difference of each output beside its largest value."""
    plan = plan_workload(job.kernel, workload, job.space.defaults, seed=7)
    given, kept = tensors_of(plan, torch), {}
    scalars = {a.name: a.value for a in plan.arguments if isinstance(a, ScalarPlan)} | dict(
        workload.dimensions
    )
    # Scalars are by keyword and default to the job's.
    names = [a.name for a in operator.default._schema.arguments if not a.kwarg_only]
    kept = {name: tensor.clone() for name, tensor in given.items()}
    wanted = framework({n: t.clone() for n, t in given.items()}, dict(workload.dimensions))
    arguments = [kept[n] if n in kept else scalars[n] for n in names]
    operator(*arguments)
    differences = {
        name: [
            float(f"{v:.3g}")
            for v in ((kept[name].float() - want.float()).abs().max(), want.float().abs().max())
        ]
        for name, want in ((n, t.reshape(kept[n].shape)) for n, t in wanted.items())
    }

    def ours() -> None:
        operator(*arguments)

    def theirs() -> object:
        return framework(given, dict(workload.dimensions))

    for call in (ours, theirs):
        for _ in range(WARM_UP):
            call()
    flush = torch.empty(CACHE_BYTES, dtype=torch.uint8, device="cuda")
    row = {"workload": workload.key, "differences": differences}
    row["eager"] = side_by_side(theirs, ours, lambda call: eager_us(call, torch, flush))
    replayed, ours_replayed = captured(theirs, torch), captured(ours, torch)
    row["graph"] = side_by_side(replayed, ours_replayed, lambda call: graph_us(call, torch))
    return row


def exported(result: Result, folder: Path, name: str, torch: Any) -> Any:
    """The operator of a result, imported from its package."""
    result.export("torch", folder, name)
    sys.path.insert(0, str(folder))
    importlib.import_module(name).prepare()
    return getattr(torch.ops.warpsmith, name)


def rows_of(results: Mapping[str, Result], torch: Any) -> list[dict[str, Any]]:
    """Every kernel that the framework has as well, workload by workload."""
    rows = []
    for name, result in results.items():
        row: dict[str, Any] = {"kernel": name, "speedup": result.speedup}
        with TemporaryDirectory() as folder:
            try:
                operator = exported(result, Path(folder), name, torch)
                row["workloads"] = [
                    compared(result.job, w, operator, FRAMEWORK[name], torch) for w in result.job.workloads
                ]
            except Exception as exc:  # noqa: BLE001 - a kernel that fails says so in the record
                row["failed"] = f"{type(exc).__name__}: {exc}"[:500]
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def page(made: Mapping[str, Any]) -> str:
    """The record as Markdown: a line for each workload, and the geometric means over kernels."""
    lines = ["| kernel | workload | eager, µs | speed-up [95 %] | graph, µs | speed-up [95 %] | difference |"]
    lines.append("|---|---|---|---|---|---|---|")
    logs: dict[str, list[float]] = {"eager": [], "graph": []}
    for kernel in made["kernels"]:
        name = kernel["kernel"].removeprefix("fresh_")
        if "failed" in kernel:
            lines.append(f"| {name} | {kernel['failed']} | - | - | - | - | - |")
        rows = kernel.get("workloads", ())
        for row in rows:
            apart = "; ".join(f"{n} {d:g} of {most:g}" for n, (d, most) in row["differences"].items())
            cells = [name, row["workload"]]
            for way in logs:
                of = row[way]
                cells += [
                    f"{of['theirs_us']} → {of['ours_us']}",
                    "{:.2f} [{:.2f}, {:.2f}]".format(*of["speedup"]),
                ]
            lines.append(f"| {' | '.join([*cells, apart])} |")
        for way in logs if rows else ():
            logs[way].append(statistics.fmean(math.log(row[way]["speedup"][0]) for row in rows))
    means = [f"{way} {math.exp(statistics.fmean(of)):.2f}x" for way, of in logs.items() if of]
    head = f"""# Tuned kernels as PyTorch operators, beside the framework's own

{made["device"]}, {made["driver"]}, PyTorch {made["torch"]}. `{made["command"]}` at {made["commit"]}.

Geometric means over {len(logs["eager"])} kernels: {", ".join(means)}. Eager: single calls, the L2 cache
overwritten before each. Graph: a replay of twenty calls, warm. Difference: the largest of an output, and its
largest value.
What the framework's side is: `benchmarks/agents/frameworks.py`.

"""
    return head + "\n".join(lines) + "\n"


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--arm", default="template")
    parser.add_argument("--seed", default="0")
    parser.add_argument(
        "--earlier", type=Path, nargs="*", default=(), help="records whose kernels stand beside"
    )
    options = parser.parse_args()
    first_device(Backend.CUDA)  # or an exit that says that there is none
    import torch

    known: dict[str, str] = json.loads((options.state / "jobs.json").read_text())
    with embedded_service(options.state / "data", ENVIRONMENT) as client:
        results = {
            kernel: client.result_of(id_)
            for kernel in FRAMEWORK
            if (id_ := known.get(f"{kernel}.{options.arm}.{options.seed}"))
            and client.status(id_).state.is_terminal
        }
    evidence = next(iter(results.values())).evidence
    made = {
        "device": evidence.device,
        "driver": evidence.driver,
        "commit": commit_name(),
        "command": plain_command("python -m benchmarks.agents.operators " + " ".join(sys.argv[1:])),
        "torch": torch.__version__,
        "kernels": rows_of(results, torch),
    }
    for earlier in (json.loads(path.read_text()) for path in options.earlier):
        made["kernels"] = earlier["kernels"] + made["kernels"]
    (options.out / "operators.json").write_text(json.dumps(made, indent=1) + "\n")
    (options.out / "operators.md").write_text(page(made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
