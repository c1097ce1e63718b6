"""API keys: nothing opens without one, each opens what its scopes say, and an ended one opens nothing."""

import time
from datetime import timedelta
from pathlib import Path
from secrets import randbelow
from typing import Any

import httpx2
import pytest

from api.app import create_app
from api.requests import auth
from db.api_keys import KeyLimits, KeyScope, id_of, new_key
from db.engine import utc_now
from db.repositories.keys import KeyRepository
from db.tables import ApiKeyRow
from testbed.api_service import Service, bearer, service_settings, serving
from testbed.plain_http import NO_TLS
from tests.api.jobs import body
from tests.api.operations import PUBLIC, Operation, operations
from tests.api.test_bad_input import problem_of

IDS = {
    "job_id": "no-such-job",
    "request_id": "no-such-request",
    "number": "7",
    "webhook_id": "no-such-hook",
}
NEEDED = {
    "POST /v1/jobs": KeyScope.SUBMIT,
    "POST /v1/jobs/check": KeyScope.SUBMIT,
    "GET /v1/jobs": KeyScope.READ,
    "GET /v1/jobs/{job_id}": KeyScope.READ,
    "GET /v1/jobs/{job_id}/trials": KeyScope.READ,
    "GET /v1/jobs/{job_id}/trials/{number}": KeyScope.READ,
    "GET /v1/jobs/{job_id}/points": KeyScope.READ,
    "GET /v1/jobs/{job_id}/seconds": KeyScope.READ,
    "GET /v1/jobs/{job_id}/facts": KeyScope.READ,
    "GET /v1/jobs/{job_id}/candidates": KeyScope.READ,
    "GET /v1/jobs/{job_id}/result": KeyScope.READ,
    "GET /v1/jobs/{job_id}/definition": KeyScope.READ,
    "GET /v1/jobs/{job_id}/events": KeyScope.READ,
    "GET /v1/jobs/{job_id}/stream": KeyScope.READ,
    "GET /v1/stream": KeyScope.READ,
    "POST /v1/jobs/{job_id}/cancel": KeyScope.SUBMIT,
    "GET /v1/fleet/jobs": KeyScope.ADMIN,
    "POST /v1/fleet/jobs/{job_id}/cancel": KeyScope.ADMIN,
    "GET /v1/lessons": KeyScope.READ,
    "GET /v1/registry": KeyScope.READ,
    "GET /v1/workers": KeyScope.READ,
    "POST /v1/lessons": KeyScope.SUBMIT,
    "GET /v1/webhooks": KeyScope.READ,
    "GET /v1/webhooks/{webhook_id}": KeyScope.READ,
    "POST /v1/webhooks": KeyScope.SUBMIT,
    "DELETE /v1/webhooks/{webhook_id}": KeyScope.SUBMIT,
    "POST /v1/webhooks/{webhook_id}/enable": KeyScope.SUBMIT,
    "POST /v1/webhooks/{webhook_id}/ping": KeyScope.SUBMIT,
    "GET /metrics": KeyScope.ADMIN,
}
DESCRIPTION = create_app(service_settings(Path()), with_worker=False).openapi()
GUARDED = [o for o in operations(DESCRIPTION) if o.name not in PUBLIC]


def by_name(operation: Any) -> str:
    return str(operation.name)


def test_no_route_is_open_that_is_not_meant_to_be() -> None:
    described = {o.path for o in operations(DESCRIPTION)}
    assert {p.removeprefix("GET ") for p in PUBLIC} == described & auth.PUBLIC
    for path, item in DESCRIPTION["paths"].items():
        for method, operation in item.items():
            assert ("security" in operation) is (f"{method.upper()} {path}" not in PUBLIC)


@pytest.mark.parametrize("operation", GUARDED, ids=by_name)
@pytest.mark.parametrize(
    "header",
    [
        {},
        bearer(new_key()[1]),
        bearer("x"),
        {"Authorization": "Bearer"},
        {"Authorization": "Basic dXNlcjpwYXNz"},
        {"Authorization": f"Basic {new_key()[1]}"},
    ],
    ids=["none", "unknown", "nonsense", "empty", "basic", "a key as basic"],
)
def test_without_a_good_key_nothing_opens(
    service: Service, operation: Operation, header: dict[str, str]
) -> None:
    # From an address of its own: wrong keys slow down those that follow from the same one.
    numbers = (1 + randbelow(250) for _ in range(3))
    own = httpx2.HTTPTransport(NO_TLS, local_address=f"127.{'.'.join(map(str, numbers))}")
    with httpx2.Client(base_url=service.http.base_url, headers=header, transport=own) as http:
        reply = operation.call(http, **IDS)
    problem_of(reply, 401)
    assert reply.headers["www-authenticate"] == "Bearer"


def test_the_key_is_asked_for_before_the_body_is_read(service: Service) -> None:
    with service.client(None) as http:
        problem_of(http.post("/v1/jobs", content=b"{", headers={"Content-Type": "application/json"}), 401)
        problem_of(http.get("/no-such-path"), 401)


@pytest.mark.parametrize("operation", GUARDED, ids=by_name)
def test_a_key_opens_what_its_scope_says(service: Service, operation: Operation) -> None:
    needed = NEEDED.get(operation.name, KeyScope.AGENTS)
    with service.client(service.new_key(scopes=(needed,))) as http:
        assert operation.call(http, **IDS).status_code not in (401, 403)
    others = tuple(s for s in KeyScope if s is not needed)
    with service.client(service.new_key(scopes=others)) as http:
        assert repr(needed.value) in problem_of(operation.call(http, **IDS), 403).detail


def test_what_is_stored_is_not_the_key(service: Service) -> None:
    key = service.new_key()
    with service.database.read() as session:
        row = session.get_one(ApiKeyRow, id_of(key))
        stored = [str(getattr(row, column.key)) for column in ApiKeyRow.__table__.columns]
    secret = key.rpartition(f"{row.id}_")[2]
    assert not any(secret in value for value in stored)


def test_a_key_with_another_secret_opens_nothing(service: Service) -> None:
    key = service.new_key()
    other = key[:-43] + new_key()[1][-43:]
    with service.client(other) as http:
        problem_of(http.get("/v1/jobs"), 401)


def test_an_ended_key_opens_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "REMEMBER_S", 0.2)
    kept, revoked, expired = (service.new_key() for _ in range(3))
    for key in (kept, revoked, expired):
        with service.client(key) as http:
            assert http.get("/v1/jobs").status_code == 200
    with service.database.write() as session:
        keys = KeyRepository(session)
        assert keys.revoke(str(id_of(revoked)))
        assert not keys.revoke(str(id_of(revoked)))
        keys.get(str(id_of(expired))).expires_at = utc_now() - timedelta(seconds=1)
    time.sleep(0.3)
    for key, status in ((kept, 200), (revoked, 401), (expired, 401)):
        with service.client(key) as http:
            assert http.get("/v1/jobs").status_code == status


def test_a_rotated_key_has_a_successor_and_a_grace_period(service: Service) -> None:
    with service.database.write() as session:
        keys = KeyRepository(session)
        limits = KeyLimits(open_jobs=3)
        old, _ = keys.create("ci", "team", (KeyScope.READ,), limits, utc_now() + timedelta(days=30))
        new, _ = keys.rotate(old.id, grace_s=60)
        assert (new.name, new.tenant, new.scopes, new.limits) == ("ci", "team", ("read",), limits)
        assert new.expires_at is not None and new.expires_at > utc_now() + timedelta(days=29)
        assert old.revoked_at is None
        assert old.expires_at is not None and old.expires_at < utc_now() + timedelta(seconds=61)
        last, text = keys.rotate(new.id, grace_s=0)
        assert new.revoked_at is not None
        assert keys.find(text) is last


def test_without_keys_a_service_answers_this_machine_only(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path), open_access=True) as service:
        http, port = service.http, service.http.base_url.port
        assert http.post("/v1/jobs", json=body()).status_code == 202
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "localhost"):
            assert http.get("/v1/jobs", headers={"Host": host}).status_code == 200
        for headers in (
            {"Host": "attacker.example"},
            {"Host": f"attacker.example:{port}"},
            {"Host": "127.0.0.1.attacker.example"},
            {"Host": ""},
            {"Origin": "https://attacker.example"},
            {"Origin": "null"},
        ):
            problem_of(http.get("/v1/jobs", headers=headers), 403)
            problem_of(http.post("/v1/jobs", json=body(), headers=headers), 403)
        assert http.get("/v1/jobs", headers={"Origin": f"http://127.0.0.1:{port}"}).status_code == 200
