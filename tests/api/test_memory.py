"""A job too large for every device of the fleet is refused when it is submitted."""

from pathlib import Path
from typing import Any

import pytest

from db.identifiers import new_id
from db.repositories.workers import WorkerRepository
from testbed.api_service import Service, service_settings, serving
from tests.api.jobs import body, changed
from warpsmith.testing.jobs import DEVICE

GB = 10**9


def sized(n: int) -> dict[str, Any]:
    """The documented example with `n` elements in each of its two buffers."""
    return changed("workloads", [{"dimensions": {"n": n}}])


def register(service: Service, memory_bytes: int, host_bytes: int) -> None:
    limits = DEVICE.limits.model_copy(update={"total_memory_bytes": memory_bytes})
    device = DEVICE.model_copy(update={"limits": limits, "host_memory_bytes": host_bytes})
    with service.database.write() as session:
        WorkerRepository(session).register(new_id(), "host", 1, "0", ["gpu"], [device], {})


@pytest.mark.parametrize("n", [3_000_000_000, 100_000_000_000])
def test_a_job_of_24_or_800_gb_is_refused_with_both_figures(embedded: Service, n: int) -> None:
    register(embedded, 8 * GB, 64 * GB)
    reply = embedded.http.post("/v1/jobs", json=sized(n))
    assert reply.status_code == 422
    (error,) = reply.json()["errors"]
    assert error["field"] == "workloads.0.dimensions"
    holds = f"n={n} (x alone is {n * 4 // GB} GB): the job holds {n * 16 // GB} GB on the device"
    assert holds in error["message"]
    assert "and opencl-test-1 has 8 GB" in error["message"]
    assert embedded.http.get("/v1/jobs").json()["items"] == []


def test_a_job_that_fits_is_taken(embedded: Service) -> None:
    register(embedded, 8 * GB, 64 * GB)
    assert embedded.http.post("/v1/jobs", json=sized(100_000_000)).status_code == 202


def test_without_a_worker_nothing_is_known_and_the_job_is_taken(embedded: Service) -> None:
    assert embedded.http.post("/v1/jobs", json=sized(3_000_000_000)).status_code == 202


def test_the_operators_cap_holds_without_a_worker(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path, job_memory_mb=1024)) as service:
        assert service.http.post("/v1/jobs", json=body()).status_code == 202
        reply = service.http.post("/v1/jobs", json=sized(3_000_000_000))
        assert reply.status_code == 422
        assert "the operator permits a job 1.07 GB (WARPSMITH_JOB_MEMORY_MB)" in reply.text


def test_a_job_that_was_taken_before_comes_back_whatever_fits_now(embedded: Service) -> None:
    key = {"Idempotency-Key": "k"}
    first = embedded.http.post("/v1/jobs", json=sized(3_000_000_000), headers=key)
    register(embedded, 8 * GB, 64 * GB)
    again = embedded.http.post("/v1/jobs", json=sized(3_000_000_000), headers=key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
