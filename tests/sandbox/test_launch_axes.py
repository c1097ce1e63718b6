"""Launches whose grid and block have different numbers of axes, as the kernel is and as the rules make it."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled, plan_workload
from warpsmith.extensions.rules.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool
from warpsmith.sandbox.hosts.device_host import ChildDevice
from warpsmith.search import enumerate_space
from warpsmith.verify.inputs import draw_inputs

BODY = """__kernel void rows(__global const float *x, __global float *y, const int r, const int n) {{
  int row = {row};
  int col = {col};
  if (row < r && col < n) y[row * n + col] = 2.0f * x[row * n + col] + (float)row;
}}
"""
R, N = 37, 20
TRIED = 8
"""Configurations beside the default."""


def rows_job(row: str, col: str, grid: list[str], block: list[str]) -> Job:
    """A job in which each thread has one element of a matrix."""
    kernel = {
        "backend": "opencl",
        "source": BODY.format(row=row, col=col),
        "entry": "rows",
        "arguments": [
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["r", "n"]},
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["r", "n"]},
            {"name": "r", "dtype": "int32", "role": "scalar", "value": "r"},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
        ],
        "launch": {"grid": grid, "block": block},
    }
    workloads = [{"dimensions": {"r": R, "n": N}}]
    return Job.model_validate({"name": "rows", "kernel": kernel, "workloads": workloads})


@pytest.fixture
def child(opencl_info: DeviceInfo) -> Iterator[ChildDevice]:
    """An opened device."""
    opened = ChildOpener(opencl_info).open()
    yield opened
    opened.close()


def outcomes(child: ChildDevice, pool: CompilePool, job: Job) -> Iterator[tuple[dict[str, Any], bool]]:
    """Configurations of a job's template, and whether each writes what it should."""
    template = make_template(job).template
    (workload,) = job.workloads
    plan = plan_workload(job.kernel, workload, {}, seed=5)
    child.prepare(plan)
    want = 2.0 * draw_inputs(plan)["x"].astype(np.float64).reshape(R, N) + np.arange(R)[:, None]
    found = enumerate_space(template.space, [{**child.info.scope(), **workload.scope()}])
    drawn = random.Random(2).sample(range(len(found)), min(TRIED, len(found)))
    configurations = [dict(template.space.defaults), *(dict(found.configuration(n)) for n in drawn)]
    for configuration in configurations:
        kernel = template.configured(configuration)
        compiled = pool.submit(kernel, child.info).result(60)
        assert isinstance(compiled, Compiled), compiled
        handle = child.load(compiled)
        got = child.run(handle, plan.key, launch_size(kernel, workload, child.info)).outputs["y"]
        child.unload(handle)
        yield configuration, bool(np.allclose(got.reshape(R, N), want, rtol=1e-5))


@pytest.mark.parametrize(
    ("row", "col", "grid", "block"),
    [
        ("get_group_id(0) * 4 + get_local_id(1)", "get_local_id(0)", ["ceil_div(r, 4)"], ["n", "4"]),
        ("get_group_id(1)", "get_local_id(0)", ["1", "r"], ["n"]),
        ("get_global_id(1)", "get_global_id(0)", ["1", "ceil_div(r, 4)"], ["n", "4"]),
    ],
)
def test_missing_axes_of_a_grid_or_a_block_are_one(
    child: ChildDevice, pool: CompilePool, row: str, col: str, grid: list[str], block: list[str]
) -> None:
    wrong = [c for c, is_right in outcomes(child, pool, rows_job(row, col, grid, block)) if not is_right]
    assert wrong == []
