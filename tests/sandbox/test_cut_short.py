"""Hopeless configurations end early on a real device (PoCL), checked and timed by real children."""

import pytest

from testbed.fakes import ListSink
from testbed.repetitions import nightly
from tests.unit.tuning.test_tuning_loops import Listed
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.templates.outcome import CutShort, Measured
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.timing import drift
from warpsmith.tuning.trials import pruner
from warpsmith.tuning.trials.slice import SliceLimits, run_slice

FEW, MANY = range(1, 9), range(60, 76, 1 if nightly() else 2)
"""How often a configuration repeats its work."""
SOURCE = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (volatile int again = 0; again < AGAIN; again++)
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = 2.0f * x[i];
}
"""


@pytest.mark.slow
def test_what_is_many_times_slower_does_not_run_on_every_workload(
    opencl_info: DeviceInfo, pool: CompilePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "BY_CHANCE", 0.0)
    monkeypatch.setattr(drift, "TOLERATED", 1e9)
    fields = scale_job().model_dump(mode="json", exclude_unset=True)
    fields["kernel"] |= {"source": SOURCE, "launch": {"grid": ["n // 64"], "block": [64]}}
    fields["parameters"] = [{"name": "AGAIN", "values": [*FEW, *MANY], "default": 1}]
    fields["workloads"] = [{"dimensions": {"n": n}} for n in (262144, 65536, 131072)]
    job = scale_job(**fields)
    session = DeviceSession(job, SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner()))
    try:
        baseline = measure_baseline(session)
        assert not baseline.refused
        sink, searcher = ListSink(), Listed([{"AGAIN": n} for n in (*FEW[1:], *MANY)])
        limits = SliceLimits(seconds=300, trials=100, compile_ahead=2)
        run_slice(session, session.inputs.user_template, baseline, searcher, sink, limits)
    finally:
        session.close()
    cut = {int(c["AGAIN"]): o for c, o in sink.trials if isinstance(o, CutShort)}
    whole = {int(c["AGAIN"]): o for c, o in sink.trials if isinstance(o, Measured)}
    assert len(cut) + len(whole) == len(FEW) + len(MANY)
    assert len(cut) >= 5
    assert 1 in whole
    for again, outcome in cut.items():
        # A few repetitions may be hopeless beside one, by little.
        assert outcome.estimate > (1.5 if again in MANY else 1.0)
        assert {t.workload for t in outcome.timings} | set(outcome.skipped) == {w.key for w in job.workloads}
