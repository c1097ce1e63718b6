"""Submitting: stored before the reply, once per idempotency key, whatever becomes of the broker."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from db.repositories.jobs import JobRepository
from db.repositories.outbox import OutboxRepository
from testbed.api_service import Service, service_settings, serving
from testbed.servers import free_port
from tests.api.jobs import body, changed
from warpsmith.domain.jobs.job import Job


def test_a_job_is_accepted_and_found_at_its_location(http: httpx2.Client) -> None:
    reply = http.post("/v1/jobs", json=body(name="first one"))
    assert reply.status_code == 202
    status = reply.json()
    assert reply.headers["location"] == f"/v1/jobs/{status['id']}"
    assert status["state"] == "queued"
    assert status["name"] == "first one"
    assert status["trials_budget"] == 20
    assert status["workloads"] == [
        {"workload": "n=65536", "baseline_us": None, "best_us": None, "speedup": None}
    ]
    assert http.get(reply.headers["location"]).json() == status


def test_what_is_stored_is_what_was_sent(service: Service) -> None:
    sent = changed(
        "kernel.source", "// grüße 中文 \U0001f600 <script>alert(1)</script>\n" + body()["kernel"]["source"]
    )
    reply = service.http.post("/v1/jobs", json=sent)
    assert reply.status_code == 202
    with service.database.read() as session:
        row = JobRepository(session).get(reply.json()["id"], with_spec=True)
        assert row.spec == Job.model_validate(sent)
        assert row.spec.kernel.source == sent["kernel"]["source"]


def test_an_accepted_job_has_been_announced(service: Service) -> None:
    assert service.http.post("/v1/jobs", json=body()).status_code == 202
    with service.database.read() as session:
        assert not OutboxRepository(session).any_waiting()
    assert list((service.settings.data_dir / "broker" / "messages").iterdir())


def test_a_broker_that_is_away_costs_nothing(tmp_path: Path) -> None:
    away = f"redis://127.0.0.1:{free_port()}/0"
    with serving(
        service_settings(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", away), migrated=True
    ) as service:
        reply = service.http.post("/v1/jobs", json=body())
        assert reply.status_code == 202
        assert service.http.get(reply.headers["location"]).json()["state"] == "queued"
        with service.database.read() as session:
            assert OutboxRepository(session).any_waiting()


def test_the_same_key_and_body_give_the_same_job(http: httpx2.Client, key: str) -> None:
    first = http.post("/v1/jobs", json=body(), headers={"Idempotency-Key": key})
    reordered = dict(reversed(body().items()))
    second = http.post("/v1/jobs", json=reordered, headers={"Idempotency-Key": key})
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] == second.json()["id"]
    assert first.headers["location"] == second.headers["location"]


def test_without_a_key_every_request_is_a_job(http: httpx2.Client) -> None:
    first, second = (http.post("/v1/jobs", json=body()).json()["id"] for _ in range(2))
    assert first != second


def test_a_key_used_with_another_body_is_refused(http: httpx2.Client, key: str) -> None:
    first = http.post("/v1/jobs", json=body(), headers={"Idempotency-Key": key})
    other = http.post("/v1/jobs", json=changed("budget.trials", 21), headers={"Idempotency-Key": key})
    assert first.status_code == 202
    assert other.status_code == 422
    assert other.headers["content-type"] == "application/problem+json"
    assert other.json()["title"] == "Idempotency-Key reused"
    assert "use a new key" in other.json()["detail"]


def test_simultaneous_requests_with_one_key_make_one_job(http: httpx2.Client, key: str) -> None:
    def post(_: int) -> httpx2.Response:
        return http.post("/v1/jobs", json=body(), headers={"Idempotency-Key": key})

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(post, range(16)))
    assert {r.status_code for r in replies} == {202}
    assert len({r.json()["id"] for r in replies}) == 1


@pytest.mark.parametrize(("bad", "message"), [("k" * 201, "at most 200"), ("", "at least 1")])
def test_a_bad_key_is_named(http: httpx2.Client, bad: str, message: str) -> None:
    reply = http.post("/v1/jobs", json=body(), headers={"Idempotency-Key": bad})
    assert reply.status_code == 422
    (error,) = reply.json()["errors"]
    assert error["field"] == "header.Idempotency-Key"
    assert message in error["message"]
