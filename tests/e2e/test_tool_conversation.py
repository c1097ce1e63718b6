"""A conversation with tools through real processes: killed in a tool, and cancelled in one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from testbed.deadlines import stretched
from testbed.plain_http import NO_TLS
from testbed.service import Service, ended
from tests.agents.replies import template
from tests.agents.test_job import replay_by_command
from tests.e2e.tuning import descendants, still_there
from warpsmith.testing.jobs import scale_job

pytestmark = pytest.mark.slow
HANGS = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (volatile long k = 0; k < 1000000000000L; k++) {}
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = 2.0f * x[i] * CHUNK;
}
"""
WANTED = [
    {"tool": "check", "template": template(HANGS)},
    {"tool": "compile", "template": template()},
]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The embedded service, with short leases, so that a killed worker is replaced soon."""
    run_s = str(stretched(4))
    settings = {"WARPSMITH_LEASE_S": "3", "WARPSMITH_RENEW_S": "1", "WARPSMITH_RUN_TIMEOUT_S": run_s}
    started = Service(tmp_path / "data", settings).start()
    yield started
    started.stop()


def begun(service: Service) -> tuple[str, dict[str, Any]]:
    """A job whose templater has just been asked, and the question."""
    job = scale_job().model_dump(mode="json", exclude_unset=True)
    job["workloads"] = [{"dimensions": {"n": 256}}]
    job["budget"] = {"rounds": 1, "trials": 1, "seconds": 600}
    job["rewrite"] = {"enabled": False}
    job["agents"] = {"provider": "rules", "roles": {"templater": "external"}, "tools": 4}
    return service.submit(job), open_request(service, lambda r: True)


def open_request(service: Service, which: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The open question that is meant, once it is there."""
    page = service.wait_for("/v1/agent-requests", lambda p: [r for r in p["items"] if which(r)])
    return next(r for r in page["items"] if which(r))


def answer(service: Service, request: dict[str, Any], what: dict[str, Any]) -> None:
    """Answer a question, which takes it."""
    url = f"{service.url}/v1/agent-requests/{request['id']}/reply"
    reply = httpx2.post(url, json={"answer": what}, timeout=30, verify=NO_TLS)
    assert reply.status_code == 200, reply.text


def at_work(service: Service, job: str) -> list[int]:
    """The processes of the service once the hanging draft is on the device."""
    service.wait(job, lambda s: "tools for the templater" in s["detail"])
    family: list[int] = []

    def runs(page: Any) -> bool:
        family[:] = [pid for p in service.processes for pid in [p.pid, *descendants(p.pid)]]
        return any("device_child" in line for line in still_there(family))

    service.wait_for("/v1/workers", runs)
    return family


def test_a_conversation_survives_a_kill_in_a_tool_and_a_cancel_ends_one(service: Service) -> None:
    job, first = begun(service)
    answer(service, first, {"calls": WANTED})
    at_work(service, job)
    service.kill()
    service.start()
    second = open_request(service, lambda r: r["job"] == job and r["id"] != first["id"])
    said = second["question"]["calls"]
    assert [(c["tool"], c["draft"], c["ok"]) for c in said] == [
        ("check", "d0", False),
        ("compile", "d1", True),
    ]
    assert "ran past its deadline" in said[0]["answer"]
    assert second["question"]["tools"] == 2
    answer(service, second, {"draft": "d1"})
    status = service.wait(job, ended)
    assert (status["state"], status["trials_done"]) == ("done", 1), status["detail"] + service.logs()
    assert "candidates reached again" in replay_by_command(service, job)

    other, question = begun(service)
    answer(service, question, {"calls": WANTED})
    at_work(service, other)
    assert httpx2.post(f"{service.url}/v1/jobs/{other}/cancel", timeout=30, verify=NO_TLS).status_code in (
        200,
        202,
    )
    assert service.wait(other, ended)["state"] == "cancelled"
    assert service.get("/v1/agent-requests")["items"] == []
    tools = [s for s in service.get(f"/v1/jobs/{other}/agent-steps")["items"] if s["role"] == "templater"]
    assert len(tools) == 1, "no turn follows"
