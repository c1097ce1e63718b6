"""OpenCL kernels whose local memory the host gives: bound, sized by the configuration, followed by rules."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from testbed.deadlines import HANGS_S
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import CacheState, Job
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled, TimingPlan, plan_workload
from warpsmith.domain.templates.space import allows
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool
from warpsmith.sandbox.hosts.device_host import ChildDevice
from warpsmith.tuning.session.launch_limits import beyond_limits
from warpsmith.verify.inputs import draw_inputs

SUMS = """
__kernel void sums(__global const float *x, __local float *scratch, __global float *y, const int n,
                   __local int *seen)
{
    int t = get_local_id(0);
    int i = get_global_id(0);
    scratch[t] = i < n ? x[i] : 0.0f;
    seen[t] = i < n;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
        if (t < s) { scratch[t] += scratch[t + s]; seen[t] += seen[t + s]; }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float mean = scratch[0] / (float)seen[0];
    if (i < n) y[i] = x[i] - mean;
}
"""
N = 4096


def sums_job(block: Any = 64, extent: Any = 64, **fields: Any) -> Job:
    """The job of `SUMS`, which is right for one size of the block only: it is never tuned."""
    kernel = {
        "backend": "opencl",
        "source": SUMS,
        "entry": "sums",
        "arguments": [
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
            {"name": "scratch", "dtype": "float32", "role": "local", "shape": [extent]},
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
            {"name": "seen", "dtype": "int32", "role": "local", "shape": [extent]},
        ],
        "launch": {"grid": [f"ceil_div(n, {block})"], "block": [block]},
    }
    data = {"name": "sums", "kernel": kernel, "workloads": [{"dimensions": {"n": N}}], **fields}
    return Job.model_validate(data)


@pytest.fixture
def child(opencl_info: DeviceInfo) -> Iterator[ChildDevice]:
    """An opened device."""
    opened = ChildOpener(opencl_info).open()
    yield opened
    opened.close()


def outcome(
    child: ChildDevice, pool: CompilePool, job: Job, template: Template, configuration: dict[str, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What a configuration writes, and what is right for its block."""
    kernel = template.configured(configuration)
    (workload,) = job.workloads
    compiled = pool.submit(kernel, child.info).result(HANGS_S)
    assert isinstance(compiled, Compiled), compiled
    plan = plan_workload(job.kernel, workload, dict(job.space.defaults), seed=3)
    size = launch_size(kernel, workload, child.info)
    child.prepare(plan)
    handle = child.load(compiled)
    got = child.run(handle, plan.key, size).outputs["y"]
    child.unload(handle)
    rows = draw_inputs(plan)["x"].astype(np.float64).reshape(-1, size.block[0])
    return got, (rows - rows.mean(axis=1, keepdims=True)).reshape(-1)


@pytest.mark.parametrize("block", [16, 64, 256])
def test_a_parameter_sizes_local_memory(
    child: ChildDevice, pool: CompilePool, opencl_info: DeviceInfo, block: int
) -> None:
    tunable = {"name": "BLOCK", "values": [16, 64, 256], "default": 64}
    job = sums_job("BLOCK", "BLOCK", parameters=[tunable])
    template = Template(kernel=job.kernel, space=job.space)
    size = launch_size(template.configured({"BLOCK": block}), job.workloads[0], opencl_info)
    assert size.local_bytes == (4 * block, 4 * block)
    got, want = outcome(child, pool, job, template, {"BLOCK": block})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_kernels_with_local_arguments_are_timed(child: ChildDevice, pool: CompilePool) -> None:
    job = sums_job()
    kernel = Template(kernel=job.kernel).configured({})
    compiled = pool.submit(kernel, child.info).result(HANGS_S)
    assert isinstance(compiled, Compiled)
    plan = plan_workload(job.kernel, job.workloads[0], {}, seed=3)
    child.prepare(plan)
    size = launch_size(kernel, job.workloads[0], child.info)
    timed = child.time(child.load(compiled), plan.key, size, TimingPlan(CacheState.COLD, samples=3))
    assert len(timed.samples.samples_us) == 3


def test_every_block_of_the_rule_gets_the_memory_it_needs(child: ChildDevice, pool: CompilePool) -> None:
    job = sums_job(rewrite={"allow": ["block_size"]})
    template = make_template(job).template
    assert [a.rule for a in template.applied] == ["block_size"]
    (parameter,) = template.space.parameters
    for value in parameter.values:
        configuration = {parameter.name: value}
        scope = {**child.info.scope(), **job.workloads[0].scope(), **configuration}
        assert allows(template.space.constraints, scope) is None
        got, want = outcome(child, pool, job, template, configuration)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=str(value))


def test_local_memory_never_shrinks_below_what_the_job_says() -> None:
    template = make_template(sums_job(extent=72, rewrite={"allow": ["block_size"]})).template
    (name,) = (p.name for p in template.space.parameters)
    sizes = {
        value: template.kernel.local_arguments[0].bytes_expression.integer({name: value, "n": N})
        for value in (16, 64, 256)
    }
    assert sizes == {16: 4 * 72, 64: 4 * 72, 256: 4 * 288}


@pytest.mark.parametrize(
    "index",
    ["t * get_local_size(0) + t", "at", "mad24(t, t, 1)", "(t << 1) * t"],
)
def test_a_block_whose_square_is_needed_stays(index: str) -> None:
    job = sums_job(extent=4096, rewrite={"allow": ["block_size"]})
    text = SUMS.replace("seen[t] = ", f"int at = t * t; seen[{index}] = ")
    kernel = job.kernel.model_copy(update={"source": text})
    report = make_template(job.model_copy(update={"kernel": kernel}))
    assert report.template.applied == ()
    assert "outgrows the block" in " ".join(map(str, report.declined))


COLUMNS = """
__kernel void columns(__global const float *x, __local float *sums, __global float *y, int n, int parts)
{
    int t = get_global_id(0);
    if (t >= parts) return;
    int c = get_global_id(1);
    sums[PLACE] = 0.0f;
    for (int i = t; i < n; i += parts) sums[PLACE] += x[c * n + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    float all = 0.0f;
    for (int i = 0; i < parts; ++i) all += sums[i];
    y[c] = all;
}
"""


@pytest.mark.parametrize(
    "place", ["t", "get_global_id(0)", "get_group_id(0) * get_local_size(0) + get_local_id(0)"]
)
def test_a_place_that_follows_from_the_block_s_index_keeps_the_block(place: str) -> None:
    """One block of 64 spans the axis; with two blocks of 32 each would see half of the sums."""
    kernel = {
        "backend": "opencl",
        "source": COLUMNS.replace("PLACE", place),
        "entry": "columns",
        "arguments": [
            {"name": "x", "dtype": "float32", "role": "input", "shape": ["columns", "n"]},
            {"name": "sums", "dtype": "float32", "role": "local", "shape": ["parts"]},
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["columns"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
            {"name": "parts", "dtype": "int32", "role": "scalar", "value": "parts"},
        ],
        "launch": {"grid": ["ceil_div(parts, 64)", "columns"], "block": [64, 1]},
    }
    data = {
        "name": "columns",
        "kernel": kernel,
        "workloads": [{"dimensions": {"n": 256, "columns": 8, "parts": 64}}],
        "rewrite": {"allow": ["block_size"]},
    }
    report = make_template(Job.model_validate(data))
    assert report.template.applied == ()
    assert "which block it is" in " ".join(map(str, report.declined))


def test_more_local_memory_than_the_device_has_is_refused_before_the_launch(opencl_info: DeviceInfo) -> None:
    job = sums_job(extent="device.max_shared_per_block")
    kernel = Template(kernel=job.kernel).configured({})
    size = launch_size(kernel, job.workloads[0], opencl_info)
    assert "of shared memory" in beyond_limits(size, opencl_info.limits)
