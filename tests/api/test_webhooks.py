"""Routes of webhooks, and deliveries of what was made over them."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from api.routes import webhooks
from db.api_keys import KeyScope
from db.repositories.jobs import JobRepository
from db.repositories.notifications.webhooks import WebhookRepository
from db.tables import WebhookRow
from testbed.api_service import Service
from testbed.receivers import receiving
from tests.api.clients import KINDS, ask
from tests.api.test_bad_input import problem_of
from warpsmith.errors import InvalidInput, NotFound
from warpsmith.system.addresses import Allowed
from warpsmith.testing.jobs import scale_job
from warpsmith.webhooks import verify
from warpsmith.webhooks.sending import WebhookSender
from worker.deliver import deliver

PUBLIC = "https://93.184.216.34/hook"
HERE = WebhookSender(Allowed.of("127.0.0.1"))


@pytest.fixture
def tenant() -> str:
    return f"team-{secrets.token_hex(4)}"


@pytest.fixture
def http(service: Service, tenant: str) -> Iterator[httpx2.Client]:
    with service.client(service.new_key(tenant=tenant)) as made:
        yield made


def test_made_shown_without_its_secret_and_deleted(http: httpx2.Client) -> None:
    reply = http.post("/v1/webhooks", json={"url": PUBLIC, "kinds": ["state", "settled"]})
    made = reply.json()
    assert (reply.status_code, reply.headers["Location"]) == (201, f"/v1/webhooks/{made['id']}")
    assert made["secret"].startswith("whsec_")
    shown = http.get(reply.headers["Location"])
    assert shown.json() == {k: v for k, v in made.items() if k != "secret"}
    assert (shown.json()["url"], shown.json()["kinds"]) == (PUBLIC, ["state", "settled"])
    listed = http.get("/v1/webhooks")
    assert listed.json() == {"items": [shown.json()]}
    assert made["secret"] not in shown.text + listed.text
    assert http.delete(reply.headers["Location"]).status_code == 204
    problem_of(http.get(reply.headers["Location"]), 404)
    problem_of(http.delete(reply.headers["Location"]), 404)


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "url", "is missing"),
        ({"url": "http://127.0.0.1:8765/"}, "url", "not on the public internet"),
        ({"url": "http://169.254.169.254/latest"}, "url", "not on the public internet"),
        ({"url": "http://no-such-host.invalid/"}, "url", "not on the public internet"),
        ({"url": "ftp://93.184.216.34/"}, "url", "https or http"),
        ({"url": "https://me:word@93.184.216.34/"}, "url", "no user and password"),
        ({"url": PUBLIC, "kinds": ["everything"]}, "kinds.0", "should be"),
        ({"url": PUBLIC, "job": "none"}, "job", "no job none"),
        ({"url": PUBLIC, "secret": "whsec_mine"}, "secret", "no such field"),
    ],
)
def test_what_cannot_be_one_is_refused(
    http: httpx2.Client, body: dict[str, Any], field: str, words: str
) -> None:
    (error,) = problem_of(http.post("/v1/webhooks", json=body), 422).errors
    assert error.field == field
    assert words in error.message
    assert http.get("/v1/webhooks").json() == {"items": []}


def test_a_tenant_has_twenty(http: httpx2.Client, service: Service) -> None:
    for _ in range(webhooks.MOST):
        assert http.post("/v1/webhooks", json={"url": PUBLIC}).status_code == 201
    assert "20" in problem_of(http.post("/v1/webhooks", json={"url": PUBLIC}), 409).detail
    with service.client(service.new_key(tenant=f"team-{secrets.token_hex(4)}")) as other:
        assert other.post("/v1/webhooks", json={"url": PUBLIC}).status_code == 201
    first = http.get("/v1/webhooks").json()["items"][0]["id"]
    http.delete(f"/v1/webhooks/{first}")
    assert http.post("/v1/webhooks", json={"url": PUBLIC}).status_code == 201


def test_a_job_of_ones_own_that_has_not_ended(http: httpx2.Client, service: Service, tenant: str) -> None:
    with service.database.write() as session:
        own = JobRepository(session).create(scale_job(), tenant=tenant)[0].id
        foreign = JobRepository(session).create(scale_job(), tenant="another-team")[0].id
    assert http.post("/v1/webhooks", json={"url": PUBLIC, "job": own}).json()["job"] == own
    (error,) = problem_of(http.post("/v1/webhooks", json={"url": PUBLIC, "job": foreign}), 422).errors
    assert (error.field, error.message) == ("job", f"no job {foreign}")
    http.post(f"/v1/jobs/{own}/cancel")
    reply = http.post("/v1/webhooks", json={"url": PUBLIC, "job": own})
    assert "has ended" in problem_of(reply, 409).detail


def test_looking_up_slow_hosts_leaves_room_for_others(http: httpx2.Client) -> None:
    for _ in range(webhooks.LOOK_UPS):
        assert webhooks._looking_up.acquire(blocking=False)
    try:
        problem_of(http.post("/v1/webhooks", json={"url": PUBLIC}), 429)
    finally:
        for _ in range(webhooks.LOOK_UPS):
            webhooks._looking_up.release()
    assert http.post("/v1/webhooks", json={"url": PUBLIC}).status_code == 201


def test_a_job_is_told_to_a_receiver(http: httpx2.Client, service: Service, tenant: str) -> None:
    """From a submission over the API to the end of the job, with a pause that a user ends."""
    with receiving(500, 410) as receiver:
        made = http.post("/v1/webhooks", json={"url": PUBLIC, "kinds": ["state"]}).json()
        with service.database.write() as session:
            row = session.get(WebhookRow, made["id"])
            assert row is not None
            row.url = receiver.url
        where = f"/v1/webhooks/{made['id']}"
        with service.database.write() as session:
            job = JobRepository(session).create(scale_job(), tenant=tenant)[0].id
        deliver(service.database, HERE, made["id"])
        seen = http.get(where).json()
        assert (seen["failures"], seen["last_status"], seen["last_error"]) == (1, 500, "HTTP 500")
        assert http.post(f"{where}/enable").json()["failures"] == 0
        deliver(service.database, HERE, made["id"])
        assert http.get(where).json()["disabled_reason"] == "the receiver answered 410 Gone"
        assert http.post(f"{where}/ping").status_code == 202
        assert http.get(where).json()["pinging"] is True
        deliver(service.database, HERE, made["id"])
        pinged = http.get(where).json()
        assert (pinged["pinging"], pinged["last_status"], pinged["last_error"]) == (False, 204, "")
        assert http.post(f"{where}/enable").json()["disabled_at"] is None
        http.post(f"/v1/jobs/{job}/cancel")
        deliver(service.database, HERE, made["id"])
    bodies = [json.loads(r.body) for r in receiver.got]
    assert [b.get("data", {}).get("state") for b in bodies] == [
        "queued",
        "queued",
        None,
        "queued",
        "cancelled",
    ]
    assert bodies[-1]["status"] == http.get(f"/v1/jobs/{job}").json()
    for received in receiver.got:
        verify(made["secret"], received.headers, received.body)


def test_a_key_that_only_reads_makes_none(service: Service, tenant: str) -> None:
    with service.client(service.new_key(tenant=tenant, scopes=(KeyScope.READ,))) as reader:
        problem_of(reader.post("/v1/webhooks", json={"url": PUBLIC}), 403)
        assert reader.get("/v1/webhooks").status_code == 200
    with service.database.read() as session:
        assert [w for w in WebhookRepository(session).all() if w.tenant == tenant] == []


@pytest.mark.parametrize("kind", KINDS)
def test_clients_do_all_of_it(kind: str, service: Service, tenant: str) -> None:
    url, key = str(service.http.base_url), service.new_key(tenant=tenant)
    made = ask(kind, url, key, "create_webhook", PUBLIC, ["task"])
    assert made.secret.startswith("whsec_")
    assert [w.id for w in ask(kind, url, key, "webhooks").items] == [made.id]
    assert ask(kind, url, key, "ping_webhook", made.id).pinging
    assert ask(kind, url, key, "enable_webhook", made.id).disabled_at is None
    assert ask(kind, url, key, "webhook", made.id).kinds == ("task",)
    assert ask(kind, url, key, "delete_webhook", made.id) is None
    with pytest.raises(NotFound):
        ask(kind, url, key, "webhook", made.id)
    with pytest.raises(InvalidInput, match="public internet"):
        ask(kind, url, key, "create_webhook", "http://10.0.0.1/")
