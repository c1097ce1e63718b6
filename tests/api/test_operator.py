"""What whoever runs the service sees: places in queues, events, and everybody's jobs."""

from typing import Any

import pytest

from db.api_keys import KeyScope
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.views.queue_places import QueuePlace
from testbed.api_service import Service
from tests.api.jobs import body
from warpsmith.domain.state import JobState, TaskKind
from warpsmith.extensions.clients.client import Client
from warpsmith.tuning.decisions.snapshot import MEASURING

QUEUE = "gpu.test"


def waiting_job(service: Service, name: str, key: str | None = None, priority: int = 0) -> str:
    """A job whose first task waits for a device, as after its first decision."""
    with service.client(key or service.key) as http:
        reply = http.post(f"/v1/jobs?priority={priority}", json=body(name=name))
    assert reply.status_code == 202
    job_id: str = reply.json()["id"]
    with service.database.write() as session:
        TaskRepository(session).enqueue(job_id, TaskKind.BASELINE, QUEUE, None)
        JobRepository(session).move(job_id, JobState.QUEUED, JobState.BASELINE, MEASURING)
    return job_id


def status_of(service: Service, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = service.http.get(f"/v1/jobs/{job_id}").json()
    return found


def test_a_job_that_waits_for_a_device_says_where_and_how_many_are_before_it(embedded: Service) -> None:
    jobs = [waiting_job(embedded, f"job {k}") for k in range(3)]
    urgent = waiting_job(embedded, "urgent", priority=5)
    for place, job_id in enumerate([urgent, *jobs], 1):
        found = status_of(embedded, job_id)
        assert (found["state"], found["queue"], found["place"]) == ("queued", QUEUE, place)
        assert found["started_at"] is None
    assert status_of(embedded, jobs[1])["detail"] == f"queued: 3rd for {QUEUE}"
    listed = {j["id"]: j["place"] for j in embedded.http.get("/v1/jobs").json()["items"]}
    assert listed == {urgent: 1, jobs[0]: 2, jobs[1]: 3, jobs[2]: 4}


def test_what_else_a_waiting_job_says_is_kept(embedded: Service) -> None:
    job_id = waiting_job(embedded, "one")
    with embedded.database.write() as session:
        JobRepository(session).set_detail(job_id, "no worker offers it")
    assert status_of(embedded, job_id)["detail"] == f"queued: 1st for {QUEUE}; no worker offers it"


def test_what_is_shown_as_queued_is_listed_as_queued(embedded: Service) -> None:
    job_id = waiting_job(embedded, "one")
    assert [j["id"] for j in embedded.http.get("/v1/jobs?state=queued").json()["items"]] == [job_id]
    assert embedded.http.get("/v1/jobs?state=baseline").json()["items"] == []


def test_other_tenants_are_counted_no_more_often_than_they_get_a_turn(embedded: Service) -> None:
    other = embedded.new_key("team-b")
    for k in range(5):
        waiting_job(embedded, f"theirs {k}", other)
    ours = waiting_job(embedded, "ours")
    assert status_of(embedded, ours)["place"] == 2


SAID = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "22nd", "101st", "113th"]


@pytest.mark.parametrize(("number", "words"), [(int(said[:-2]), said) for said in SAID])
def test_places_read_as_people_say_them(number: int, words: str) -> None:
    assert QueuePlace(QUEUE, number).words == f"queued: {words} for {QUEUE}"


def test_events_are_served_in_order_page_by_page(embedded: Service) -> None:
    job_id = waiting_job(embedded, "one")
    embedded.http.post(f"/v1/jobs/{job_id}/cancel")
    first = embedded.http.get(f"/v1/jobs/{job_id}/events?limit=2").json()
    rest = embedded.http.get(f"/v1/jobs/{job_id}/events?after={first['next']}").json()
    states = [e["data"]["state"] for e in [*first["items"], *rest["items"]]]
    assert states == ["queued", "baseline", "cancelled"]
    assert rest["next"] is None
    assert {e["kind"] for e in first["items"]} == {"state"}
    with Client(str(embedded.http.base_url), embedded.key) as client:
        assert [e.data["state"] for e in client.events(job_id)] == states


def test_events_of_no_job_are_not_found(embedded: Service) -> None:
    assert embedded.http.get("/v1/jobs/none/events").status_code == 404


def test_an_operator_lists_and_cancels_everybodys_jobs(embedded: Service) -> None:
    keys = {name: embedded.new_key(name, [KeyScope.SUBMIT, KeyScope.READ]) for name in ("team-a", "team-b")}
    jobs = {name: waiting_job(embedded, name, key) for name, key in keys.items()}
    operator = embedded.new_key("operators", [KeyScope.ADMIN])
    with Client(str(embedded.http.base_url), operator) as client:
        assert {j.id: j.tenant for j in client.jobs(tenant="*").items} == {v: k for k, v in jobs.items()}
        assert [j.id for j in client.jobs(tenant="team-b").items] == [jobs["team-b"]]
        ended = client.cancel(jobs["team-a"], tenant="team-a")
        assert (ended.state, ended.tenant) == (JobState.CANCELLED, "team-a")
        assert client.cancel(jobs["team-b"], tenant="*").state is JobState.CANCELLED


def test_whose_jobs_are_meant_has_to_be_said(embedded: Service) -> None:
    job_id = waiting_job(embedded, "a", embedded.new_key("team-a"))
    with embedded.client(embedded.new_key("operators")) as operator:
        assert operator.get("/v1/fleet/jobs").status_code == 422
        assert operator.post(f"/v1/fleet/jobs/{job_id}/cancel").status_code == 422
        assert operator.post(f"/v1/fleet/jobs/{job_id}/cancel?tenant=team-b").status_code == 404
        assert operator.post(f"/v1/jobs/{job_id}/cancel").status_code == 404, "not one of its own"
        assert operator.get("/v1/jobs").json()["items"] == []


def test_without_the_scope_admin_nobody_sees_others(embedded: Service) -> None:
    job_id = waiting_job(embedded, "a", embedded.new_key("team-a"))
    key = embedded.new_key("team-b", [KeyScope.SUBMIT, KeyScope.READ, KeyScope.AGENTS])
    with embedded.client(key) as user:
        assert user.get("/v1/fleet/jobs?tenant=*").status_code == 403
        assert user.post(f"/v1/fleet/jobs/{job_id}/cancel?tenant=*").status_code == 403


def test_ones_own_list_names_no_tenant(embedded: Service) -> None:
    waiting_job(embedded, "a")
    assert [j["tenant"] for j in embedded.http.get("/v1/jobs").json()["items"]] == [None]
