"""A cancelled job ends within two seconds, whatever it was doing, with everything that it had started."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from db.repositories.jobs import JobRepository
from db.views.job_status import job_status
from testbed.child_processes import descendants
from testbed.deadlines import stretched
from tests.sandbox.test_compile_child import BOMBS
from tests.worker.test_execute import handle_all
from tests.worker.test_memory import context, pocl  # noqa: F401  fixtures
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.testing.jobs import scale_job
from worker.device.process_context import Context

pytestmark = pytest.mark.alone

END_S = 2.0
BEGIN_S = 60.0
ELEMENTS = 1 << 21
DRAWN = 60
"""Inputs of that size: half a second to draw for every case, of which a baseline has several."""

FOREVER = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (volatile long k = 0; k < 1000000000000L; k++) {}
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = 2.0f * x[i];
}
"""


def with_source(source: str, entry: str = "scale") -> Job:
    job = scale_job()
    return job.model_copy(update={"kernel": job.kernel.model_copy(update={"source": source, "entry": entry})})


def in_a_draw() -> Job:
    fields = scale_job().model_dump(mode="json", exclude_unset=True)
    names = [f"x{k}" for k in range(DRAWN)]
    inputs = [{"name": name, "dtype": "float32", "role": "input", "shape": ["n"]} for name in names]
    fields["kernel"]["arguments"][:1] = inputs
    parameters = ", ".join(f"__global const float* {name}" for name in names)
    fields["kernel"]["source"] = f"__kernel void scale({parameters}, __global float* y, const int n) {{}}"
    fields["reference"]["source"] = "def reference(inputs, dims):\n    return {'y': inputs['x0']}\n"
    return Job.model_validate(fields | {"workloads": [{"dimensions": {"n": ELEMENTS}}]})


def running(module: str) -> bool:
    return module in descendants().values()


DATABASES = ["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)]
"""What ends a job is the worker's; `tests/service` cancels on both."""


def wait_for(what: Callable[[], bool], seconds: float) -> float:
    began = time.monotonic()
    while not what():
        left = f"after {seconds:.2f} s these run: {descendants()}"
        assert time.monotonic() - began < seconds, left
        time.sleep(0.01)
    return time.monotonic() - began


STAGES: dict[str, tuple[Callable[[], Job], str, float]] = {
    # what the job is, which child is at work, seconds after which that child is in the middle of it
    "a draw": (in_a_draw, "reference_child", 0.7),
    "a compilation": (lambda: with_source(BOMBS["opencl-macros"][1], "f"), "compile_child", 0.7),
    "a long kernel": (lambda: with_source(FOREVER), "device_child", 3.0),
}


@pytest.mark.parametrize("database_url", DATABASES, indirect=True)
@pytest.mark.parametrize("stage", STAGES)
def test_a_job_cancelled_in_the_middle_of(stage: str, context: Context, record_property: Any) -> None:  # noqa: F811
    make, child, settle_s = STAGES[stage]
    with context.database.write() as session:
        job_id = JobRepository(session).create(make())[0].id
    before = descendants().keys()
    worker = threading.Thread(target=handle_all, args=(context,))
    worker.start()
    try:
        wait_for(lambda: running(child), BEGIN_S)
        time.sleep(settle_s)
        assert running(child), "it ended by itself"
        began, end_s = time.monotonic(), stretched(END_S)
    finally:
        with context.database.write() as session:
            JobRepository(session).cancel(job_id)
    wait_for(lambda: not descendants().keys() - before, end_s)
    wait_for(lambda: not worker.is_alive(), began + end_s - time.monotonic())
    record_property("ended_after_s", time.monotonic() - began)
    print(f"{stage}: ended after {time.monotonic() - began:.2f} s")
    with context.database.read() as session:
        assert job_status(session, job_id).state is JobState.CANCELLED


@pytest.mark.parametrize("database_url", DATABASES, indirect=True)
def test_the_next_job_finds_the_worker_well(context: Context) -> None:  # noqa: F811
    test_a_job_cancelled_in_the_middle_of("a compilation", context, lambda *_: None)
    with context.database.write() as session:
        small = scale_job(workloads=[{"dimensions": {"n": 4096}}], budget={"trials": 1, "seconds": 600})
        job_id = JobRepository(session).create(small)[0].id
    handle_all(context)
    with context.database.read() as session:
        status = job_status(session, job_id)
        assert status.state is JobState.DONE, status.detail
