"""Sequences of launches on a device: buffers, scratch, order, and what is looked at."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.sandbox.kernels import floats
from tests.sequence_jobs import row_sums
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.job import CacheState, Job
from warpsmith.domain.launch_size import LaunchSize, launch_size
from warpsmith.domain.plan import Compiled, Family, TimedCheck, TimingPlan, WorkloadPlan, plan_workload
from warpsmith.domain.template import Template
from warpsmith.sandbox import ChildOpener, CompilePool
from warpsmith.sandbox.device_host import ChildDevice
from warpsmith.verify.inputs import draw_inputs


@pytest.fixture
def child(opencl_info: DeviceInfo) -> Iterator[ChildDevice]:
    """An opened device."""
    opened = ChildOpener(opencl_info).open()
    yield opened
    opened.close()


def loaded(
    child: ChildDevice, pool: CompilePool, job: Job, splits: int = 2
) -> tuple[int, WorkloadPlan, LaunchSize]:
    """A configuration of a job, loaded, with the plan of the first workload prepared."""
    kernel = Template(kernel=job.kernel, space=job.space).configured({"SPLITS": splits})
    compiled = pool.submit(kernel, child.info).result(60)
    assert isinstance(compiled, Compiled), compiled
    assert compiled.entries == ("partials", "merge")
    plan = plan_workload(job.kernel, job.workloads[0], dict(job.space.defaults), seed=3)
    child.prepare(plan)
    return child.load(compiled), plan, launch_size(kernel, job.workloads[0], child.info)


def sums(plan: WorkloadPlan) -> Any:
    """What is right."""
    (x,) = (b for b in plan.buffers if b.name == "x")
    rows = draw_inputs(plan)["x"].astype(np.float64).reshape(x.shape)
    return (rows**2).sum(axis=1)


@pytest.mark.parametrize("splits", [1, 2, 8])
def test_a_sequence_runs_in_order_with_scratch_of_the_configuration(
    child: ChildDevice, pool: CompilePool, splits: int
) -> None:
    handle, plan, size = loaded(child, pool, row_sums(), splits)
    assert size.scratch_bytes == (16 * splits * 4,)
    assert [step.grid for step in size.steps] == [(16, splits, 1), (1, 1, 1)]
    report = child.run(handle, plan.key, size, repeat=True)
    assert (report.guard_violations, report.changed_inputs) == ((), ())
    assert list(report.outputs) == ["y"]
    np.testing.assert_allclose(floats(report.outputs["y"]), sums(plan), rtol=1e-4)
    assert report.repeated is not None
    np.testing.assert_array_equal(report.repeated["y"], report.outputs["y"])


def test_one_child_runs_configurations_with_other_scratch_in_turn(
    child: ChildDevice, pool: CompilePool
) -> None:
    job = row_sums()
    first, second = loaded(child, pool, job, 2), loaded(child, pool, job, 8)
    for handle, plan, size in (first, second, first):
        np.testing.assert_allclose(
            floats(child.run(handle, plan.key, size).outputs["y"]), sums(plan), rtol=1e-4
        )


def test_a_sequence_is_timed_as_one(child: ChildDevice, pool: CompilePool) -> None:
    job = row_sums(workloads=[{"dimensions": {"rows": 64, "columns": 65536}}])
    handle, plan, size = loaded(child, pool, job)
    check = TimedCheck({"y": [(0, 64)]}, (Family.DECLARED, 2000))
    timed = child.time(handle, plan.key, size, TimingPlan(CacheState.COLD, samples=4, check=check))
    assert len(timed.samples.samples_us) == 4
    assert timed.report is not None
    assert timed.report.run.guard_violations == ()
    # 16 MiB are read: no launch of the merge alone takes as long.
    assert min(timed.samples.samples_us) > 100.0
