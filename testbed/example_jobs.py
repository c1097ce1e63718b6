"""The example jobs on small shapes, their inputs, their references, and a child that runs OpenCL."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testbed.deadlines import stretched
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job, NumpyReference, Workload
from warpsmith.domain.jobs.plan import BufferPlan, ScalarPlan, WorkloadPlan, plan_workload
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.job_files.jobfile import load_job
from warpsmith.verify.dtypes import numpy_dtype

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

SMALL: dict[str, tuple[dict[str, int], ...]] = {
    "silu_and_mul": ({"tokens": 3, "hidden": 128}, {"tokens": 5, "hidden": 131}, {"tokens": 2, "hidden": 20}),
    "fused_add_rmsnorm": ({"tokens": 3, "hidden": 256}, {"tokens": 5, "hidden": 131}),
    "merge_attn_states": ({"tokens": 3, "heads": 2, "dim": 64}, {"tokens": 2, "heads": 3, "dim": 61}),
    "softmax": ({"rows": 3, "columns": 256}, {"rows": 5, "columns": 131}),
    "matmul": ({"m": 32, "n": 32, "k": 32}, {"m": 29, "n": 35, "k": 19}),
    "stencil": ({"height": 32, "width": 64}, {"height": 19, "width": 37}),
}
FAMILIES = tuple(SMALL)

NUMPY_TYPES: dict[Dtype, Any] = {d: numpy_dtype(d) for d in Dtype}


def load_example(family: str, backend: str) -> Job:
    """The job as a user's client would send it: the source read in."""
    return load_job(EXAMPLES / family / f"{backend}.yaml")


def small(job: Job, family: str) -> Job:
    """The same job on small shapes."""
    workloads = tuple(Workload(dimensions=d) for d in SMALL[family])
    return Job.model_validate(job.model_dump() | {"workloads": [w.model_dump() for w in workloads]})


def draw_inputs(plan: WorkloadPlan) -> dict[str, Any]:
    """Arrays by argument, in the argument's dtype; outputs are filled with a poison."""
    rng = np.random.default_rng(plan.seed)
    inputs: dict[str, Any] = {}
    for a in plan.arguments:
        if isinstance(a, ScalarPlan):
            inputs[a.name] = NUMPY_TYPES[a.dtype].type(a.value)
        elif not isinstance(a, BufferPlan):
            raise ValueError(f"{a.name}: no example has such an argument")
        elif a.role is Role.OUTPUT:
            inputs[a.name] = np.full(a.shape, 77.0).astype(NUMPY_TYPES[a.dtype])
        elif not a.dtype.is_float:
            inputs[a.name] = rng.integers(0, 128, a.shape).astype(NUMPY_TYPES[a.dtype])
        else:
            mean, std = (a.draw.mean, a.draw.std) if a.draw else (0.0, 1.0)
            inputs[a.name] = rng.normal(mean, std, a.shape).astype(NUMPY_TYPES[a.dtype])
    return inputs


def expected(job: Job, inputs: Mapping[str, Any], dims: Mapping[str, int]) -> dict[str, Any]:
    """What the job's NumPy reference says."""
    assert isinstance(job.reference, NumpyReference)
    names: dict[str, Any] = {}
    exec(job.reference.source, names)  # the project's own examples
    wide = {k: v.astype(np.float64) if isinstance(v, np.ndarray) else float(v) for k, v in inputs.items()}
    result: dict[str, Any] = names[job.reference.function](wide, dict(dims))
    return result


@dataclass(frozen=True)
class OpenClCase:
    """One launch of one configured kernel on one small workload."""

    label: str
    job: Job
    kernel: ConfiguredKernel
    workload: Workload

    def plan(self) -> WorkloadPlan:
        """Arguments in numbers; the same inputs every time."""
        return plan_workload(self.job.kernel, self.workload, dict(self.job.space.defaults), seed=11)


def run_opencl(cases: Sequence[OpenClCase], folder: Path) -> list[str]:
    """Run every case in one child process; returns what went wrong, one line a case."""
    spec = []
    for n, case in enumerate(cases):
        inputs = draw_inputs(case.plan())
        np.savez(folder / f"{n}-in.npz", **inputs)
        scope = case.kernel.scope(case.workload.scope(), {"device.max_threads_per_block": 1024})
        launch = case.kernel.kernel.launch
        spec.append(
            {
                "source": case.kernel.source,
                "entry": case.kernel.kernel.entry,
                "arguments": [a.name for a in case.plan().arguments],
                "grid": [e.integer(scope) for e in launch.grid],
                "block": [e.integer(scope) for e in launch.block],
                "options": list(case.kernel.kernel.options),
            }
        )
    (folder / "cases.json").write_text(json.dumps(spec))
    child = Path(__file__).parent / "opencl_child.py"
    subprocess.run([sys.executable, str(child), str(folder)], check=True, timeout=stretched(280))
    return [problem for n, case in enumerate(cases) if (problem := _problem_of(case, folder, n))]


def _problem_of(case: OpenClCase, folder: Path, n: int) -> str:
    where = f"{case.label} {case.kernel.configuration} {case.workload.key}"
    error = folder / f"{n}-error.txt"
    if error.exists():
        return f"{where}: {error.read_text()[:2000]}"
    want = expected(case.job, draw_inputs(case.plan()), case.workload.dimensions)
    with np.load(folder / f"{n}-out.npz") as got:
        for buffer in case.plan().mutated:
            tolerance = case.job.tolerance(buffer.name, buffer.dtype)
            have = got[buffer.name].astype(np.float64)
            good = np.isclose(have, want[buffer.name], rtol=tolerance.rtol, atol=tolerance.atol)
            if not good.all():
                return f"{where}: {buffer.name} differs in {int((~good).sum())} of {good.size} elements"
    return ""
