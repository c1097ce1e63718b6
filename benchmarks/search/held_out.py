"""Is the look-up for shapes that no workload names ever slower than the baseline?

    python -m benchmarks.search.held_out measure [--backend opencl] [family ...]
    python -m benchmarks.search.held_out

The first times configurations of the examples on many shapes, twice, and keeps that in held-out-times.json.
The second makes dispatch tables from the first times of some shapes, serves the others by them, and judges
that by the second times; it writes held-out.json and held-out.md.
"""

import argparse
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.job_files import load
from benchmarks.search.held_out_policies import POLICIES, Recorded, judged, markdown
from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job, Workload
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import search_plan
from warpsmith.rewrite.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner, probe_devices
from warpsmith.search import enumerate_space
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.session.launch_limits import size_within_limits

SHAPES: Mapping[str, Mapping[str, Sequence[int]]] = {
    "silu_and_mul": {"tokens": (8, 17, 32, 64, 128, 256), "hidden": (512, 768, 1024, 1531, 2048, 3072)},
    "softmax": {"rows": (8, 17, 32, 64, 128, 256), "columns": (256, 512, 777, 1024, 1536, 2048)},
    "fused_add_rmsnorm": {"tokens": (8, 17, 32, 64, 128), "hidden": (512, 768, 1024, 1531, 2048, 3072)},
    "merge_attn_states": {"tokens": (13, 32, 64, 128), "heads": (7, 16, 32), "dim": (61, 64, 128)},
    "matmul": {"m": (48, 64, 96, 128), "n": (61, 64, 96, 128), "k": (64, 83, 128)},
    "stencil": {"height": (64, 119, 128, 192, 256, 512), "width": (128, 256, 333, 384, 512)},
}
GPU_FACTOR = {"tokens": 16, "rows": 16, "m": 8, "n": 8, "k": 4, "height": 8, "width": 8}
"""A GPU needs larger shapes before a kernel takes longer than its launch; odd sizes stay odd."""
CONFIGURATIONS = 16
Prepared = tuple[ConfiguredKernel, Compiled, Template]
RECORD = Path("benchmarks/results/search/held-out-times.json")


def shapes_of(family: str, backend: str) -> list[Workload]:
    """All combinations of the sizes of a family."""
    sizes = SHAPES[family]
    if backend == Backend.CUDA:
        sizes = {n: [v * GPU_FACTOR.get(n, 1) - (v % 2) for v in values] for n, values in sizes.items()}
    names = list(sizes)
    return [Workload(dimensions=dict(zip(names, v, strict=True))) for v in itertools.product(*sizes.values())]


def some_configurations(template: Template, job: Job, scope: Mapping[str, Any]) -> list[Configuration]:
    """The template's own starts, and random feasible ones."""
    feasible = enumerate_space(template.space, [dict(scope) | w.scope() for w in job.workloads])
    rng = random.Random(0)
    drawn = [feasible.configuration(r) for r in rng.sample(range(len(feasible)), min(len(feasible), 64))]
    listed = [*template.warm_starts, *drawn]
    out: list[Configuration] = []
    for configuration in listed:
        if configuration not in out and configuration != template.space.defaults:
            out.append(configuration)
    return out[:CONFIGURATIONS]


def measure(
    family: str, device_index: int, backend: Backend, pool: CompilePool, repeats: int
) -> dict[str, Any]:
    """Times of a family, by pass, configuration and shape, in µs; None where it cannot run."""
    device = [d for d in probe_devices().devices if d.backend is backend][device_index]
    shapes = shapes_of(family, backend)
    job = load(family, backend.value).model_copy(update={"workloads": tuple(shapes)})
    template = make_template(job).template
    session = DeviceSession(job, SessionPorts(ChildOpener(device), pool, ReferenceRunner()))
    kernels: list[Prepared] = []
    own = session.inputs.user_template
    first = own.configured(job.space.defaults)
    compiled = session.compile(first)
    assert not isinstance(compiled, Rejected), compiled
    kernels.append((first, compiled, own))
    for configuration in some_configurations(template, job, device.scope()):
        kernel = template.configured(configuration)
        compiled = session.compile(kernel)
        if not isinstance(compiled, Rejected):
            kernels.append((kernel, compiled, template))
    passes: list[list[list[float | None]]] = []
    for turn in range(2):
        rows: list[list[float | None]] = [[] for _ in kernels]
        for workload in shapes:
            times = _on(session, workload, kernels, turn, repeats)
            for row, time in zip(rows, times, strict=True):
                row.append(time)
        passes.append(rows)
        print(family, "pass", turn + 1, flush=True)
    session.close()
    return {
        "family": family,
        "device": device.name,
        "backend": backend.value,
        "repeats": repeats,
        "shapes": [w.dimensions for w in shapes],
        "configurations": [k.configuration for k, _, _ in kernels],
        "times_us": passes,
    }


def _on(
    session: DeviceSession,
    workload: Workload,
    kernels: Sequence[tuple[ConfiguredKernel, Compiled, Template]],
    turn: int,
    repeats: int,
) -> list[float | None]:
    """The lowest of a few times of all kernels on one shape, in random order: other work only adds."""
    order = list(range(len(kernels))) * repeats
    random.Random(turn).shuffle(order)
    found: dict[int, list[float]] = {}
    for number in order:
        kernel, compiled, template = kernels[number]
        try:
            if not session.inputs.allowed(template, kernel, [workload]):
                continue
            size = size_within_limits(kernel, workload, session.info)
            if isinstance(size, Rejected):
                continue
            device = session.device(workload)
            handle = device.load(compiled)
            plan = search_plan(session.job.objective.cache)
            samples = device.time(handle, session.inputs.plan(workload).key, size, plan).samples
            device.unload(handle)
            found.setdefault(number, []).append(float(np.median(samples.samples_us)))
        except (ChildDied, KernelRefused, ExpressionError):
            session.renew()
    session.release(workload)
    return [round(min(found[n]), 3) if n in found else None for n in range(len(kernels))]


def main() -> None:
    """Measure, or judge what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.held_out", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("measure", "judge"), default="judge")
    parser.add_argument("families", nargs="*", default=[])
    parser.add_argument("--backend", default="opencl")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3, help="timings of a kernel on a shape in a pass")
    parser.add_argument("--out", type=Path, default=RECORD.parent)
    options = parser.parse_intermixed_args()
    times = options.out / RECORD.name
    record: list[dict[str, Any]] = json.loads(times.read_text()) if times.exists() else []
    if options.what == "measure":
        pool = CompilePool(1)
        for family in options.families or SHAPES:
            found = measure(family, options.device, Backend(options.backend), pool, options.repeats)
            mark = (found["family"], found["device"])
            record = [*(r for r in record if (r["family"], r["device"]) != mark), found]
            options.out.mkdir(parents=True, exist_ok=True)
            times.write_text(json.dumps(record) + "\n")
        pool.close()
        return
    judgement = judged([Recorded(r) for r in record], POLICIES)
    (options.out / "held-out.json").write_text(json.dumps(judgement, indent=1) + "\n")
    (options.out / "held-out.md").write_text("\n".join(markdown(judgement)) + "\n")
    print("\n".join(markdown(judgement)))


if __name__ == "__main__":
    main()
