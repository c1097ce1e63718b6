"""Lists of jobs by label, name, device and time; names and cursors that nothing stands behind are refused."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from db.repositories.jobs import JobRepository
from testbed.api_service import Service
from testbed.stages import searched
from tests.api.jobs import body, changed
from tests.api.test_bad_input import problem_of
from warpsmith.testing.jobs import DEVICE, scale_job


def posted(http: httpx2.Client, **changes: Any) -> str:
    """Id of a new job."""
    reply = http.post("/v1/jobs", json=body(**changes))
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def listed(http: httpx2.Client, **params: Any) -> set[str]:
    """Ids of the first page."""
    reply = http.get("/v1/jobs", params=params)
    assert reply.status_code == 200, reply.text
    return {item["id"] for item in reply.json()["items"]}


def test_jobs_are_found_by_all_labels_that_are_asked_for(http: httpx2.Client, key: str) -> None:
    a = posted(http, labels={"run": key, "model": "a=b"[:1]})
    b = posted(http, labels={"run": key, "model": 'b "c" %'})
    posted(http, labels={"model": "a"})
    assert listed(http, label=f"run={key}") == {a, b}
    assert listed(http, label=[f"run={key}", "model=a"]) == {a}
    assert listed(http, label=[f"run={key}", 'model=b "c" %']) == {b}
    assert listed(http, label=f"run={key}x") == set()
    assert http.get(f"/v1/jobs/{a}").json()["labels"] == {"run": key, "model": "a"}


def test_jobs_are_found_by_part_of_their_name_and_nothing_in_it_is_a_wildcard(
    http: httpx2.Client, key: str
) -> None:
    a, b = posted(http, name=f"Softmax {key}"), posted(http, name=f"soft_max {key}")
    assert listed(http, name=f"softMAX {key[:4]}") == {a}
    assert listed(http, name=f"t_max {key}") == {b}
    assert listed(http, name=f"%{key}") == set()


def test_jobs_are_found_by_the_time_of_their_submission(http: httpx2.Client, key: str) -> None:
    start = datetime.now(UTC)
    found = posted(http, name=f"timed {key}")
    zone = (datetime.now(UTC) + timedelta(minutes=1)).isoformat().replace("+00:00", "Z")
    assert listed(http, name=key, created_from=start.isoformat()) == {found}
    assert listed(http, name=key, created_before=zone) == {found}
    assert listed(http, name=key, created_before=start.isoformat()) == set()
    reply = http.get("/v1/jobs", params={"created_from": "2026-01-01T00:00:00"})
    assert problem_of(reply, 422).errors[0].field == "query.created_from"
    assert "time zone" in problem_of(reply, 422).errors[0].message


def test_jobs_are_found_by_the_device_class_that_they_ran_on(service: Service, key: str) -> None:
    http = service.http
    sent = scale_job(name=f"ran {key}").model_dump(mode="json", exclude_unset=True)
    ran = http.post("/v1/jobs", json=sent).json()["id"]
    posted(http, name=f"waits {key}")
    with service.database.write() as session:
        searched(session, ran)
    assert listed(http, name=key, device=DEVICE.device_class) == {ran}
    assert listed(http, name=key, device="another") == set()


@pytest.mark.parametrize(
    ("path", "query", "field", "words"),
    [
        ("/v1/jobs", "naem=x", "query.naem", "did you mean 'name'?"),
        ("/v1/jobs", "label=x", "query.label.0", ""),
        ("/v1/jobs", "label=a=1&label=a=2", "query.label", "two values"),
        ("/v1/jobs", "after=zzz", "query.after", "no `next` of a page"),
        ("/v1/workers", "all=1", "query.all", "takes no query"),
        ("/v1/agent-requests", "after=zzz", "query.after", "no `next` of a page"),
        ("/healthz", "x=1", "query.x", "takes no query"),
    ],
)
def test_a_query_that_would_filter_nothing_is_refused(
    http: httpx2.Client, path: str, query: str, field: str, words: str
) -> None:
    problem = problem_of(http.get(f"{path}?{query}"), 422)
    assert problem.errors[0].field == field
    assert words in problem.errors[0].message


def test_a_page_of_trials_begins_after_a_trial_that_there_is(service: Service) -> None:
    http = service.http
    job_id = http.post("/v1/jobs", json=scale_job().model_dump(mode="json", exclude_unset=True)).json()["id"]
    with service.database.write() as session:
        searched(session, job_id)
    path = f"/v1/jobs/{job_id}/trials"
    first = http.get(path, params={"limit": 2}).json()
    assert len(http.get(path, params={"after": first["next"]}).json()["items"]) == 3
    assert problem_of(http.get(path, params={"after": 99}), 422).errors[0].field == "query.after"


def test_a_job_can_be_read_back_and_submitted_again(service: Service) -> None:
    http, name = service.http, secrets.token_hex(4)
    job_id = posted(http, name=name, labels={"a": "1"})
    definition = http.get(f"/v1/jobs/{job_id}/definition").json()
    assert (definition["name"], definition["labels"]) == (name, {"a": "1"})
    again = http.post("/v1/jobs", json=definition).json()["id"]
    with service.database.read() as session:
        jobs = JobRepository(session)
        assert jobs.get(again).spec_hash == jobs.get(job_id).spec_hash


@pytest.mark.parametrize("labels", [{"": "x"}, {"a b": "x"}, {"a": "x=y"}, {"a": "x" * 121}])
def test_a_label_that_could_not_be_asked_for_is_refused(http: httpx2.Client, labels: dict[str, str]) -> None:
    problem = problem_of(http.post("/v1/jobs", json=changed("labels", labels)), 422)
    assert problem.errors[0].field.startswith("labels")


def test_a_poll_of_what_has_not_changed_brings_nothing(service: Service) -> None:
    http = service.http
    sent = scale_job().model_dump(mode="json", exclude_unset=True)
    submitted = http.post("/v1/jobs", json=sent)
    path = submitted.headers["Location"]
    assert int(submitted.headers["Retry-After"]) >= 1
    first = http.get(path)
    assert int(first.headers["Retry-After"]) >= 1
    same = http.get(path, headers={"If-None-Match": f'"other", {first.headers["ETag"]}'})
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["ETag"] == first.headers["ETag"]
    with service.database.write() as session:
        searched(session, path.rsplit("/", 1)[1])
    later = http.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert later.status_code == 200
    assert later.json()["state"] == "searching"
    running = http.get(path, headers={"If-None-Match": later.headers["ETag"]})
    assert running.status_code == 304, "only the time that is left differs"
    http.post(f"{path}/cancel")
    assert "Retry-After" not in http.get(path).headers
