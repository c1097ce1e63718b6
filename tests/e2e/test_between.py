"""Shapes between workloads, through the whole service: what was not run there is not served there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.service import Service, ended
from tests.agents.replies import template
from tests.e2e.test_tool_conversation import answer, open_request
from warpsmith.http_models import JobResult
from warpsmith.report.shape_lookup import Lookup
from warpsmith.testing.jobs import scale_job

SMALL, LARGE = 1 << 16, 1 << 17
SLOW = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0))
    for (volatile int r = 0; r < 60; r++) y[i] = 2.0f * x[i];
}
"""
HONEST = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = 2.0f * x[i];
}
"""
# Right on both workloads, and on all shapes that are not divisible by 16 as they are.
WRONG_BETWEEN = HONEST.replace("2.0f", f"(n % 16 == 0 && n > {SMALL} && n < {LARGE} ? 3.0f : 2.0f)")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    started = Service(tmp_path / "data", {"WARPSMITH_REMEMBERS": "false"}).start()
    yield started
    started.stop()


def tuned(service: Service, source: str) -> JobResult:
    """The result of a job whose templater answers with this source."""
    job: dict[str, Any] = scale_job().model_dump(mode="json", exclude_unset=True)
    job["kernel"]["source"] = SLOW
    job["workloads"] = [{"dimensions": {"n": n}} for n in (SMALL, LARGE)]
    job["budget"] = {"rounds": 1, "trials": 2, "seconds": 600}
    job["strategy"] = "direct"
    job["agents"] = {"provider": "rules", "roles": {"templater": "external"}}
    id_ = service.submit(job)
    asked = open_request(service, lambda r: r["job"] == id_)
    answer(service, asked, template(source, parameters=[], constraints=[]))
    assert service.wait(id_, ended)["state"] == "done", service.logs()
    return JobResult.model_validate(service.get(f"/v1/jobs/{id_}/result"))


def test_only_what_was_run_between_workloads_is_served_there(service: Service) -> None:
    honest = tuned(service, HONEST)
    assert honest.speedup is not None
    assert honest.speedup > 1.5
    assert len(honest.between) == 2
    for shape in honest.between:
        assert SMALL < shape.dimensions["n"] < LARGE
        assert shape.speedup > 1
    table = Lookup(honest)
    between = range(SMALL + 16, LARGE, 160)
    assert all(table.pick({"n": n}) is not None for n in between)

    wrong = tuned(service, WRONG_BETWEEN)
    table = Lookup(wrong)
    assert not wrong.between
    assert all(table.pick({"n": n}) is None for n in (SMALL, LARGE, *between))
    assert wrong.reason is not None
    assert "withdrawn" in wrong.reason.sentence
    assert "between the workloads, at n=" in wrong.reason.sentence
