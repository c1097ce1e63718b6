"""Sequences of launches on a device: buffers, scratch, order, and what is looked at."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import floats
from tests.sequence_jobs import row_sums
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import CacheState, Job
from warpsmith.domain.jobs.launch_size import LaunchSize, launch_size
from warpsmith.domain.jobs.plan import (
    Compiled,
    Family,
    TimedCheck,
    TimingPlan,
    WorkloadPlan,
    plan_workload,
)
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import ParameterValue
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.sandbox.hosts.device_host import ChildDevice
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.trials.first_trial import run_gate
from warpsmith.tuning.winners.finalists import Finalist
from warpsmith.tuning.winners.verify import ComparisonPlan, verify_winners
from warpsmith.verify.inputs import draw_inputs


@pytest.fixture
def child(opencl_info: DeviceInfo) -> Iterator[ChildDevice]:
    """An opened device."""
    opened = ChildOpener(opencl_info).open()
    yield opened
    opened.close()


def built(child: ChildDevice, pool: CompilePool, job: Job, splits: int = 2) -> Compiled:
    """The binary of a configuration."""
    kernel = Template(kernel=job.kernel, space=job.space).configured({"SPLITS": splits})
    compiled = pool.submit(kernel, child.info).result(HANGS_S)
    assert isinstance(compiled, Compiled), compiled
    assert compiled.entries == ("partials", "merge")
    return compiled


def loaded(
    child: ChildDevice, pool: CompilePool, job: Job, splits: int = 2
) -> tuple[int, WorkloadPlan, LaunchSize]:
    """A configuration of a job, loaded, with the plan of the first workload prepared."""
    kernel = Template(kernel=job.kernel, space=job.space).configured({"SPLITS": splits})
    plan = plan_workload(job.kernel, job.workloads[0], dict(job.space.defaults), seed=3)
    child.prepare(plan)
    size = launch_size(kernel, job.workloads[0], child.info)
    return child.load(built(child, pool, job, splits)), plan, size


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


STALE = {"if (lid == 0) partial[": "if (lid == 0 && split == 0) partial["}
"""The merge reads what only an earlier launch, or nobody, has written."""
AT_HAND = "__local float sums[BLOCK];"
MEMO = {
    AT_HAND: f"{AT_HAND}\n"
    "  const float kept = partial[get_group_id(0) * SPLITS + get_group_id(1)];\n"
    "  if (kept > 1.0f && kept < 1e6f) return;\n"
}
"""Takes what the last launch left for its own result if it looks like one."""
MARK = "partial[(get_num_groups(0) + get_group_id(0)) * SPLITS + get_group_id(1)]"
KEYED = {
    AT_HAND: f"{AT_HAND}\n  if ({MARK} == x[get_group_id(0) * (size_t)columns]) return;\n",
    "] = sums[0];": f"] = sums[0], {MARK} = from[0];",
}
"""Keeps beside each result by which input it knows it again, in scratch that has room for it."""


@pytest.fixture(scope="module")
def ports(opencl_info: DeviceInfo, pool: CompilePool) -> SessionPorts:
    return SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner())


@pytest.fixture(scope="module")
def baseline(ports: SessionPorts) -> BaselineResult:
    """The example as it is."""
    session = DeviceSession(row_sums(), ports)
    found = measure_baseline(session)
    session.close()
    assert found.refused == ""
    return found


def tried(
    ports: SessionPorts,
    baseline: BaselineResult,
    template: Template,
    values: Mapping[str, ParameterValue],
    job: Job | None = None,
) -> Outcome:
    """What becomes of a configuration as the first trial of a template."""
    session = DeviceSession(job or row_sums(), ports)
    try:
        session.baseline.learn(baseline)
        kernel = template.configured({**template.space.defaults, **values})
        times = {t.workload: time_us(session.job, t) or 0.0 for t in baseline.timings}
        return run_gate(session, template, kernel, session.compile(kernel), times)
    finally:
        session.close()


@pytest.mark.parametrize("splits", [1, 4])
def test_a_right_sequence_is_measured(ports: SessionPorts, baseline: BaselineResult, splits: int) -> None:
    template = make_template(row_sums()).template
    found = tried(ports, baseline, template, {"SPLITS": splits, "WS_BLOCK_0": 32, "WS_ITEMS_1": 2})
    assert isinstance(found, Measured), found


CHEATS = {
    "a merge that reads what was not written": (STALE, ("rows", "SPLITS")),
    "a first launch that keeps its results": (MEMO, ("rows", "SPLITS")),
    "a first launch that knows its inputs again": (KEYED, ("2 * rows", "SPLITS")),
}
"""How the source differs, and the shape of the scratch."""


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_sequence_that_cheats_is_refused(ports: SessionPorts, baseline: BaselineResult, cheat: str) -> None:
    replaced, shape = CHEATS[cheat]
    honest, cheating = (with_shape(job, list(shape)) for job in (row_sums(), row_sums(replaced=replaced)))
    template = Template(kernel=cheating.kernel, space=honest.space)
    found = tried(ports, baseline, template, {}, honest)
    assert isinstance(found, Rejected)
    assert found.stage is Stage.CORRECTNESS


def with_shape(job: Job, shape: list[str]) -> Job:
    """The job with other scratch."""
    data = job.model_dump(mode="json")
    data["kernel"]["arguments"][1]["shape"] = shape
    return Job.model_validate(data)


def test_scratch_has_guards(child: ChildDevice, pool: CompilePool) -> None:
    own = "  if (lid == 0) partial["
    behind = {own: f"  if (lid == 0 && row == 15) partial[32] = 1.0f;\n{own}"}
    handle, plan, size = loaded(child, pool, row_sums(replaced=behind))
    assert child.run(handle, plan.key, size).guard_violations == ("partial",)


def test_a_right_sequence_is_faster_or_kept(ports: SessionPorts, baseline: BaselineResult) -> None:
    job = row_sums()
    template = make_template(job).template
    found = []
    for splits in (2, 4):
        configuration = {**template.space.defaults, "SPLITS": splits, "WS_BLOCK_0": 32}
        outcome = tried(ports, baseline, template, configuration)
        assert isinstance(outcome, Measured), outcome
        found.append(Finalist("c", template, configuration, outcome))
    plan = ComparisonPlan(4, baseline.aa_widths)
    result = verify_winners(job, ports, found, plan, lambda: True, baseline)
    assert result.speedup >= 1.0
    assert {c.workload for c in result.choices} == {w.key for w in job.workloads}


def test_no_launch_reads_what_an_earlier_one_left_in_scratch(child: ChildDevice, pool: CompilePool) -> None:
    honest, plan, size = loaded(child, pool, row_sums())
    child.run(honest, plan.key, size)
    stale = child.load(built(child, pool, row_sums(replaced=STALE)))
    got = floats(child.run(stale, plan.key, size).outputs["y"])
    assert np.count_nonzero(np.isclose(got, sums(plan), rtol=1e-3)) == 0


def test_a_repeated_launch_finds_a_part_of_its_scratch_spoiled(child: ChildDevice, pool: CompilePool) -> None:
    handle, plan, size = loaded(child, pool, with_shape(row_sums(replaced=KEYED), ["2 * rows", "SPLITS"]))
    for _ in range(3):
        report = child.run(handle, plan.key, size, repeat=True)
        np.testing.assert_allclose(floats(report.outputs["y"]), sums(plan), rtol=1e-4)
        assert report.repeated is not None
        assert not np.array_equal(report.repeated["y"], report.outputs["y"])


def test_a_timed_launch_finds_a_part_of_its_scratch_spoiled(child: ChildDevice, pool: CompilePool) -> None:
    handle, plan, size = loaded(child, pool, with_shape(row_sums(replaced=KEYED), ["2 * rows", "SPLITS"]))
    check = TimedCheck({"y": [(0, 16)]}, redraw=False)
    timed = child.time(handle, plan.key, size, TimingPlan(CacheState.HOT, 4, check=check, apart=False))
    assert timed.report is not None
    got = floats(timed.report.run.outputs["y"])
    assert not np.allclose(got, sums(plan), rtol=1e-3)


def test_a_timed_launch_that_is_looked_at_has_inputs_that_none_had_before(
    child: ChildDevice, pool: CompilePool
) -> None:
    handle, plan, size = loaded(child, pool, row_sums(replaced=MEMO))
    child.run(handle, plan.key, size)
    check = TimedCheck({"y": [(0, 16)]}, (Family.DECLARED, 2000))
    for _ in range(5):
        timed = child.time(handle, plan.key, size, TimingPlan(CacheState.HOT, 4, check=check))
        assert timed.report is not None
        assert timed.report.other
        got = floats(timed.report.run.outputs["y"])
        assert not np.allclose(got, sums(replace(plan, variant=2000)), rtol=1e-3)
