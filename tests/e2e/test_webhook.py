"""A webhook hears of a job through every process of the service: embedded, and on Postgres and Redis."""

import json
from pathlib import Path

import httpx2
import pytest

from testbed.deadlines import comes_true
from testbed.plain_http import NO_TLS
from testbed.receivers import receiving
from testbed.service import Service, ended
from warpsmith.extensions.clients.client import Client
from warpsmith.http_models import EventView
from warpsmith.testing.jobs import scale_job
from warpsmith.webhooks import verify

pytestmark = pytest.mark.slow
HERE = {"WARPSMITH_WEBHOOK_PRIVATE": "127.0.0.1/32"}


@pytest.mark.parametrize("mode", ["embedded", "full"])
def test_every_event_of_a_job_arrives_in_order(
    request: pytest.FixtureRequest, tmp_path: Path, mode: str
) -> None:
    settings = dict(HERE)
    if mode == "full":
        settings["WARPSMITH_DATABASE_URL"] = request.getfixturevalue("postgres_url")
        settings["WARPSMITH_BROKER_URL"] = request.getfixturevalue("redis_url")
    service = Service(tmp_path / "data", settings).start()
    try:
        with receiving(503) as receiver:
            made = httpx2.post(
                f"{service.url}/v1/webhooks",
                json={"url": receiver.url},
                headers=service.headers,
                timeout=30,
                verify=NO_TLS,
            )
            assert made.status_code == 201, made.text
            secret = made.json()["secret"]
            job = scale_job().model_dump(mode="json", exclude_unset=True)
            job["budget"] = {"trials": 3, "seconds": 600}
            job_id = service.submit(job)
            service.wait(job_id, ended)
            told = service.get(f"/v1/jobs/{job_id}/events")["items"]
            # The first attempt is refused.
            assert comes_true(lambda: len(receiver.got) == 1 + len(told), 60, 0.2), service.logs()
        for received in receiver.got:
            verify(secret, received.headers, received.body)
        heard = [json.loads(received.body) for received in receiver.got]
        assert heard[0]["id"] == heard[1]["id"]
        assert [h["id"] for h in heard[1:]] == [e["id"] for e in told]
        (end,) = [h for h in heard if h["kind"] == "state" and h["data"]["state"] == "done"]
        assert end["status"]["state"] == "done"
        key = service.headers.get("Authorization", "").removeprefix("Bearer ")
        with Client(service.url, key or None) as client:
            streamed = [t.id for t in client.stream(job_id) if isinstance(t, EventView)]
        assert streamed == [e["id"] for e in told]
    finally:
        service.stop()
