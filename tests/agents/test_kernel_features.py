"""Features of kernels, by which cards are chosen: found in source, types and floor."""

from dataclasses import replace

import pytest

from agents.context import StepContext
from agents.questions.kernel_features import features_of
from testbed.example_jobs import load_example
from tests.agents.featured_kernels import KERNELS, featured_job
from warpsmith.domain.device import Ceilings
from warpsmith.domain.templates.outcome import TimeSummary, WorkloadTiming
from warpsmith.testing.jobs import DEVICE
from warpsmith.tuning.tasks import BaselineResult


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_each_form_have_their_features_and_no_others(name: str) -> None:
    assert features_of(StepContext(job=featured_job(name))) == {"any", *KERNELS[name].features}


def test_a_small_kernel_is_launch_bound() -> None:
    job = load_example("softmax", "opencl")
    ceilings = Ceilings(cold_bytes_per_s=4e12, hot_bytes_per_s=4e12, flops_per_s=5e13, launch_us=20.0)
    time = TimeSummary(median_us=25.0, low_us=25.0, high_us=25.0, samples=9, launches_per_sample=1)
    timings = tuple(WorkloadTiming(workload=w.key, cold=time, hot=time) for w in job.workloads)
    context = StepContext(job=job, baseline=BaselineResult(device=DEVICE, ceilings=ceilings, timings=timings))
    assert "launch_bound" in features_of(context)
    assert context.baseline is not None
    quick = context.baseline.model_copy(update={"ceilings": ceilings.model_copy(update={"launch_us": 1e-6})})
    assert "launch_bound" not in features_of(replace(context, baseline=quick))


def test_a_source_that_cannot_be_read_has_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    job = load_example("softmax", "opencl")
    renamed = job.kernel.model_copy(update={"entry": "gone"})
    assert features_of(StepContext(job=job.model_copy(update={"kernel": renamed}))) == {"any"}
    monkeypatch.setattr("warpsmith.extensions.rules.templater.STEPS", 100)
    assert features_of(StepContext(job=job)) == {"any"}
