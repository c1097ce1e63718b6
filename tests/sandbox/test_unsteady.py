"""A kernel of the user's whose runs differ: sums by float atomics, in whatever order the device takes."""

import pytest

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Measured, Rejected
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.first_trial import run_gate

ADD = """
inline void add(volatile __global float* p, float v) {
  union { unsigned bits; float value; } old, next;
  do {
    old.value = *p;
    next.value = old.value + v;
  } while (atomic_cmpxchg((volatile __global unsigned*)p, old.bits, next.bits) != old.bits);
}
__kernel void sum(__global const float* x, __global float* y, int rows, int columns) {
  int column = get_global_id(0) % columns;
  float part = 0.0f;
  for (int row = get_global_id(0) / columns; row < rows; row += 64) part += x[row * columns + column];
"""
HONEST = ADD + "  add(&y[column], part);\n}\n"
STOPS_AT_A_LARGE_SUM = ADD + "  if (fabs(y[column]) < 50.0f) add(&y[column], part);\n}\n"
"""Wrong if a sum becomes large. A different second launch: tests/unit/tuning/test_defences.py."""
REFERENCE = """
def reference(inputs, dims):
    return {"y": inputs["y"] + inputs["x"].sum(axis=0)}
"""


def job_of(source: str) -> Job:
    arguments = [
        {"name": "x", "dtype": "float32", "role": "input", "shape": ["rows", "columns"]},
        {"name": "y", "dtype": "float32", "role": "inout", "shape": ["columns"]},
        {"name": "rows", "dtype": "int32", "role": "scalar", "value": "rows"},
        {"name": "columns", "dtype": "int32", "role": "scalar", "value": "columns"},
    ]
    launch = {"grid": ["columns"], "block": [64]}
    return scale_job(
        kernel={
            "backend": "opencl", "source": source, "entry": "sum", "arguments": arguments, "launch": launch
        },
        workloads=[{"dimensions": {"rows": 1024, "columns": 96}}],
        reference={"kind": "numpy", "source": REFERENCE},
        tolerances={"y": {"rtol": 1e-4, "atol": 2e-3}},
        parameters=[],
    )  # fmt: skip


@pytest.fixture
def ports(opencl_info: DeviceInfo, pool: CompilePool) -> SessionPorts:
    return SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner())


def test_it_is_tuned_and_what_is_wrong_is_refused(ports: SessionPorts) -> None:
    job = job_of(HONEST)
    session = DeviceSession(job, ports)
    baseline = measure_baseline(session)
    session.close()
    assert baseline.refused == ""
    apart = max(c.spread for c in baseline.cases)
    assert bool(apart) == any("differ" in note for note in baseline.notes)
    times = {t.workload: time_us(job, t) or 0.0 for t in baseline.timings}
    alike = tuple(c.model_copy(update={"spread": 0.0}) for c in baseline.cases)
    lucky = baseline.model_copy(update={"cases": alike})
    for source, found, passes in (
        (HONEST, baseline, True),
        (HONEST, lucky, True),
        (STOPS_AT_A_LARGE_SUM, baseline, False),
    ):
        session = DeviceSession(job, ports)
        session.baseline.learn(found)
        template = Template(kernel=job.kernel.model_copy(update={"source": source}))
        configured = template.configured({})
        outcome = run_gate(session, template, configured, session.compile(configured), times)
        session.close()
        assert isinstance(outcome, Measured if passes else Rejected), outcome
