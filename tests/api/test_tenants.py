"""Two tenants on one service: neither sees, changes, counts or disturbs anything of the other."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.app import create_app
from db.engine import Database, utc_now
from db.repositories.agent_requests import AgentRequestRepository
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.jobs import JobRepository
from db.repositories.notifications.webhooks import WebhookRepository
from db.repositories.tasks import TaskRepository
from db.tables import JobRow, TaskRow, WebhookRow
from db.views.finished_lessons import learn
from testbed.api_service import Service, service_settings
from testbed.repetitions import examples
from testbed.stages import ended, searched
from tests.api.jobs import body
from tests.api.operations import PUBLIC, Operation, operations
from tests.api.test_bad_input import problem_of
from warpsmith.domain.state import JobState, TaskKind
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.tasks import StepPayload, StepResult
from warpsmith.webhooks.models import NewWebhook

DESCRIPTION = create_app(service_settings(Path()), with_worker=False).openapi()
FLEET = {
    "GET /metrics",
    "GET /v1/workers",
    "GET /v1/stream",
    "POST /v1/jobs",
    "POST /v1/jobs/check",
    "POST /v1/lessons",
    "POST /v1/webhooks",
}
"""They name nobody's job, or make one's own; of streams see `test_streams`."""
OPERATORS = {"GET /v1/fleet/jobs", "POST /v1/fleet/jobs/{job_id}/cancel"}
"""They are there to reach beyond a tenant; `test_operator` says for whom."""
LISTS = {"GET /v1/jobs", "GET /v1/agent-requests", "GET /v1/lessons", "GET /v1/registry", "GET /v1/webhooks"}
OWNED = [o for o in operations(DESCRIPTION) if o.name not in PUBLIC | FLEET | OPERATORS]
A, B = "team-a", "team-b"
NUMBER = "0"
"""Of a trial that a searched job has."""


@dataclass(frozen=True)
class Tenant:
    """A client of a tenant, and what the tenant has."""

    name: str
    http: httpx2.Client
    jobs: tuple[str, ...]
    request_id: str
    webhook_id: str

    @property
    def secrets(self) -> list[str]:
        """Words that nobody else may ever be told."""
        return [*self.jobs, self.request_id, self.webhook_id, f"secret of {self.name}"]


@pytest.fixture(scope="module")
def tenants(service: Service) -> Iterator[dict[str, Tenant]]:
    """Each with a queued job, one that is searched, one that has ended, and an open agent request."""
    with ExitStack() as stack:
        found = {}
        for name in (A, B):
            http = stack.enter_context(service.client(service.new_key(tenant=name)))
            found[name] = _fill(service.database, name, http)
        yield found


def _fill(database: Database, tenant: str, http: httpx2.Client) -> Tenant:
    job = scale_job(name=f"secret of {tenant}")
    with database.write() as session:
        jobs = [JobRepository(session).create(job, tenant=tenant)[0].id for _ in range(3)]
        searched(session, jobs[1])
        ended(session, jobs[2])
        assert learn(session, jobs[2])
        payload = StepPayload(role="templater", round=1)
        task = TaskRepository(session).enqueue(jobs[0], TaskKind.AGENT_STEP, "agents", payload)
        words = f"secret of {tenant}"
        until = utc_now() + timedelta(hours=1)
        row = AgentRequestRepository(session).add(task, "templater", 1, words, {"q": words}, {}, until)
        answer = StepResult(provider="openai", prompt=words, reply=words)
        AgentStepRepository(session).add(jobs[0], task.id, payload, answer)
        hook = WebhookRepository(session).create(NewWebhook(url="https://example.com/"), tenant)
        return Tenant(tenant, http, tuple(jobs), row.id, hook.id)


def _call(operation: Operation, as_: Tenant, of: Tenant, job: int) -> httpx2.Response:
    known = {
        "job_id": of.jobs[job],
        "request_id": of.request_id,
        "webhook_id": of.webhook_id,
        "number": NUMBER,
    }
    assert set(operation.parameters) <= set(known), "teach this test the new parameter"
    return operation.call(as_.http, **known)


def _rows(database: Database) -> list[tuple[Any, ...]]:
    with database.read() as session:
        jobs = session.query(JobRow.id, JobRow.state, JobRow.detail).order_by(JobRow.id).all()
        tasks = session.query(TaskRow.id, TaskRow.state, TaskRow.attempt).order_by(TaskRow.id).all()
        requests = AgentRequestRepository(session).open(limit=1000)
        hooks = session.query(WebhookRow.id, WebhookRow.ping, WebhookRow.disabled_at).all()
        found = [*map(tuple, jobs), *map(tuple, tasks), *sorted(map(tuple, hooks))]
        return [*found, *((r.id, r.state, r.refusals) for r in requests)]


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(data=st.data())
def test_no_endpoint_tells_or_changes_anything_of_another_tenant(
    service: Service, tenants: dict[str, Tenant], data: st.DataObject
) -> None:
    operation = data.draw(st.sampled_from(OWNED))
    caller, owner = data.draw(st.sampled_from([(A, B), (B, A)]))
    job = data.draw(st.sampled_from([0, 1, 2]))
    before = _rows(service.database)
    reply = _call(operation, tenants[caller], tenants[owner], job)
    if operation.name in LISTS:
        assert reply.status_code == 200
    else:
        problem_of(reply, 404)
    said = {s for s in tenants[owner].secrets if s in reply.text}
    assert said <= {tenants[owner].jobs[job], tenants[owner].request_id, tenants[owner].webhook_id}, (
        "what the caller named, at most"
    )
    assert not (operation.name in LISTS and said)
    assert _rows(service.database) == before


@pytest.mark.parametrize("operation", OWNED, ids=lambda o: str(o.name))
def test_each_endpoint_works_for_the_owner_and_not_for_the_other(
    service: Service, tenants: dict[str, Tenant], operation: Operation
) -> None:
    """Every one, not a sample; and the test above would mean nothing if owners were refused as well."""
    job = 2 if "POST" in operation.name or operation.path.endswith("/result") else 1
    with service.database.write() as session:
        # One for each operation, since one of them deletes it.
        hook = WebhookRepository(session).create(NewWebhook(url="https://example.com/"), A)
    owner = replace(tenants[A], webhook_id=hook.id)
    other = _call(operation, tenants[B], owner, job)
    own = _call(operation, owner, owner, job)
    assert own.status_code in (200, 202, 204, 422), own.text
    if operation.name not in LISTS:
        assert other.status_code == 404
        nothing = dict.fromkeys(("job_id", "request_id", "webhook_id"), "nothing")
        absent = operation.call(tenants[B].http, **nothing, number=NUMBER)
        said = other.text
        for known in (owner.jobs[job], owner.request_id, owner.webhook_id):
            said = said.replace(known, "nothing")
        assert json.loads(said) == absent.json(), "one can tell a foreign id from none"


def test_lists_and_pages_hold_ones_own_jobs_alone(tenants: dict[str, Tenant]) -> None:
    for name, other in ((A, B), (B, A)):
        items, after = [], None
        while True:
            params = {"limit": "1"} | ({"after": after} if after else {})
            page = tenants[name].http.get("/v1/jobs", params=params).json()
            items += [item["id"] for item in page["items"]]
            after = page["next"]
            if after is None:
                break
        assert set(tenants[name].jobs) <= set(items)
        assert not set(tenants[other].jobs) & set(items)
        foreign = tenants[name].http.get("/v1/agent-requests", params={"job": tenants[other].jobs[0]})
        assert foreign.json()["items"] == []


def test_tenants_share_no_idempotency_keys(service: Service, tenants: dict[str, Tenant], key: str) -> None:
    header = {"Idempotency-Key": key}
    ids = set()
    for name, job in ((A, body(name="first")), (B, body(name="second"))):
        replies = [tenants[name].http.post("/v1/jobs", json=job, headers=header) for _ in range(2)]
        assert [r.status_code for r in replies] == [202, 202]
        assert replies[0].json()["id"] == replies[1].json()["id"]
        ids.add(replies[0].json()["id"])
    assert len(ids) == 2
    with service.database.read() as session:
        assert {JobRepository(session).get(i).tenant for i in ids} == {A, B}


def test_a_session_of_a_tenant_changes_nothing_of_another(
    service: Service, tenants: dict[str, Tenant]
) -> None:
    """The second wall: repositories themselves, asked for a foreign row."""
    job = tenants[A].jobs[0]
    with service.database.of(B).write() as session:
        assert not JobRepository(session).move(job, JobState.QUEUED, JobState.CANCELLED)
        TaskRepository(session).cancel_open(job)
        assert TaskRepository(session).of_job(job) == []
    with service.database.read() as session:
        assert JobRepository(session).get(job).state is JobState.QUEUED
        assert [t.state.value for t in TaskRepository(session).of_job(job)] == ["queued"]
