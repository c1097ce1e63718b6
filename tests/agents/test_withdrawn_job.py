"""A whole job on a real device (PoCL) whose best template is right at its gate and wrong in the end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.service import Service
from tests.agents.replies import template
from tests.agents.test_job import PROFILE, TESTS, agent_job, answered, region, replay_by_command

pytestmark = pytest.mark.slow

SLOW_SOURCE = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
    float sum = 0.0f;
    for (int k = 0; k < 64; ++k) sum += x[i] / 32.0f;
    y[i] = sum;
  }
}
"""
FAST_SOURCE = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
#if CHUNK == 1
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
    float sum = 0.0f;
    for (int k = 0; k < 64; ++k) sum += x[i] / 32.0f;
    y[i] = sum;
  }
#else
  for (int base = get_global_id(0) * CHUNK; base < n; base += get_global_size(0) * CHUNK)
    for (int k = 0; k < CHUNK; ++k) y[base + k] = 2.0f * x[base + k];
#endif
}
"""
"""It takes whole chunks only: beyond a ragged end it writes outside y, and no other shape shows it."""
MENDED_SOURCE = FAST_SOURCE.replace("y[base + k] =", "if (base + k < n) y[base + k] =")
FAST = {"CHUNK": 4, "BLOCK": 64, "PER": 1}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The embedded service, whose questions all go outside."""
    started = Service(tmp_path / "data", {"WARPSMITH_AGENT_PROVIDER": "external"}).start()
    yield started
    started.stop()


def test_a_template_that_is_withdrawn_is_mended_and_serves(service: Service) -> None:
    parameters = [{"name": "CHUNK", "values": [1, 4], "default": 1, "meaning": "elements"}]
    few = region(FAST, "BLOCK == 64", "PER == 1")
    answers: list[dict[str, Any]] = [TESTS, PROFILE, {"plan": "more elements for a thread"}]
    answers += [template(FAST_SOURCE, parameters=parameters, constraints=[]), few]
    answers += [template(MENDED_SOURCE, parameters=parameters, constraints=[]), few]
    job = agent_job(budget={"rounds": 1, "trials": 12, "seconds": 600}, rewrite={"enabled": False})
    job["kernel"]["source"] = SLOW_SOURCE
    name = service.submit(job)
    client, status = answered(service, name, answers)
    assert [r["role"] for r in client.seen] == [
        *("tester", "profiler", "planner", "templater", "tuner", "repairer", "tuner")
    ]
    asked = client.seen[5]["question"]
    assert "in the search) was withdrawn: n=65536: " in asked["failure"]
    assert "guard: " in asked["failure"] and "wrote outside y" in asked["failure"]
    assert "\nthe case: shape n=" in asked["failure"]
    assert asked["rejected"]["source"].strip() == FAST_SOURCE.strip()
    candidates = service.get(f"/v1/jobs/{name}/candidates")["items"]
    assert [c["state"] for c in candidates] == ["rejected", "searched"]
    trials = service.get(f"/v1/jobs/{name}/trials")["items"]
    mended = [t["configuration"] for t in trials if t["candidate"] == candidates[1]["id"]]
    assert mended[:2] == [FAST | {"CHUNK": 1}, FAST], "after the gate the best of the rejected one"
    result = service.get(f"/v1/jobs/{name}/result")
    (entry,) = result["dispatch"]
    assert (entry["candidate"], entry["configuration"]) == (candidates[1]["id"], FAST)
    assert result["speedup"] == status["best_speedup"] > 1.5
    assert result["reason"]["code"] == "gain"
    assert "2 candidates reached again; 7 agent steps" in replay_by_command(service, name)
