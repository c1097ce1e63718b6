"""Sequences of launches on a GPU: one graph, scratch of the configuration, and the defences."""

import pytest

from tests.gpu.test_arguments import baseline_of
from tests.sequence_jobs import row_sums
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.first_trial import run_gate

LARGE = [{"dimensions": {"rows": 16, "columns": 1 << 20}}]


def tried(job: Job, template: Template, info: DeviceInfo, pool: CompilePool, **values: int) -> Outcome:
    """What becomes of a configuration as the first trial of a template."""
    baseline = baseline_of(job, info, pool)
    assert baseline.refused == ""
    session = DeviceSession(job, SessionPorts(ChildOpener(info), pool, ReferenceRunner()))
    try:
        session.baseline.learn(baseline)
        kernel = template.configured({**template.space.defaults, **values})
        times = {t.workload: time_us(job, t) or 0.0 for t in baseline.timings}
        return run_gate(session, template, kernel, session.compile(kernel), times)
    finally:
        session.close()


def test_a_sequence_with_more_splits_is_right_and_faster(info: DeviceInfo, pool: CompilePool) -> None:
    job = row_sums(Backend.CUDA, workloads=LARGE)
    found = tried(job, make_template(job).template, info, pool, SPLITS=32)
    assert isinstance(found, Measured), found
    # Two blocks share a row of 4 MiB before, and most of the device is idle.
    assert found.objective < 0.5


@pytest.mark.parametrize(
    "changed",
    [
        {"if (lid == 0) partial[": "if (lid == 0 && split == 0) partial["},
        {
            "__shared__ float sums[BLOCK];": "__shared__ float sums[BLOCK];\n"
            "  const float kept = partial[blockIdx.x * SPLITS + blockIdx.y];\n"
            "  if (kept > 1.0f && kept < 1e9f) return;\n"
        },
    ],
    ids=["stale", "memo"],
)
def test_what_an_earlier_launch_left_in_scratch_is_no_result(
    info: DeviceInfo, pool: CompilePool, changed: dict[str, str]
) -> None:
    job = row_sums(Backend.CUDA, workloads=LARGE)
    cheat = row_sums(Backend.CUDA, changed)
    found = tried(job, Template(kernel=cheat.kernel, space=job.space), info, pool)
    assert isinstance(found, Rejected)
    assert found.stage is Stage.CORRECTNESS
