"""Server-sent events and long polls over real HTTP, on SQLite and on Postgres."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import event

from api.live.broadcaster import Broadcaster
from db.repositories.events import EventRepository
from db.repositories.jobs import JobRepository
from testbed.api_service import Service, bearer, service_settings, serving
from testbed.deadlines import HANGS_S, comes_true
from testbed.plain_http import NO_TLS
from testbed.servers import fresh_database
from warpsmith.domain.state import JobState
from warpsmith.testing.jobs import scale_job

PATIENCE_S = 20.0
WATCHERS = 100


@dataclass(frozen=True)
class Message:
    """One server-sent event."""

    name: str
    id: str
    data: Any


def messages(response: httpx2.Response) -> Iterator[Message]:
    """The messages of a stream, as they arrive."""
    name, ident, data = "message", "", ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if not line and data:
            yield Message(name, ident, json.loads(data))
            name, ident, data = "message", "", ""
        elif field == "event":
            name = value
        elif field == "id":
            ident = value
        elif field == "data":
            data += value


@contextmanager
def streaming(http: httpx2.Client, path: str, last: str | None = None) -> Iterator[Iterator[Message]]:
    headers = {} if last is None else {"Last-Event-ID": last}
    with http.stream("GET", path, headers=headers, timeout=HANGS_S) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield messages(response)


def new_job(service: Service, tenant: str = "default") -> str:
    with service.database.write() as session:
        return JobRepository(session).create(scale_job(), tenant=tenant)[0].id


def note(service: Service, job_id: str, number: int) -> None:
    with service.database.write() as session:
        EventRepository(session).add(job_id, "task", {"number": number})


def cancel(service: Service, job_id: str) -> None:
    with service.database.write() as session:
        JobRepository(session).cancel(job_id)


def test_a_job_from_its_first_event_to_its_end(service: Service) -> None:
    job_id = new_job(service)
    with streaming(service.http, f"/v1/jobs/{job_id}/stream") as found:
        first = [next(found), next(found)]
        assert [(m.name, m.data.get("state") or m.data["data"]["state"]) for m in first] == [
            ("status", "queued"),
            ("state", "queued"),
        ]
        assert first[1].data["job"] == job_id and first[1].id == str(first[1].data["id"])
        note(service, job_id, 1)
        assert next(found).data["data"] == {"number": 1}
        cancel(service, job_id)
        rest = list(found)
    assert [m.data["data"]["state"] for m in rest if m.name == "state"] == ["cancelled"]


def test_who_has_everything_of_an_ended_job_is_told_to_stay_away(service: Service) -> None:
    job_id = new_job(service)
    cancel(service, job_id)
    with streaming(service.http, f"/v1/jobs/{job_id}/stream") as found:
        last = list(found)[-1].id
    again = service.http.get(f"/v1/jobs/{job_id}/stream", headers={"Last-Event-ID": last})
    assert (again.status_code, again.content) == (204, b"")


def test_nothing_is_missed_or_told_twice_over_connections(service: Service) -> None:
    job_id, total = new_job(service), 60

    def write() -> None:
        for number in range(total):
            note(service, job_id, number)
            time.sleep(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    seen: list[int] = []
    last: str | None = None
    while len(seen) < total:
        with streaming(service.http, f"/v1/jobs/{job_id}/stream", last) as found:
            for _ in range(7):
                message = next(found)
                if message.name != "status":
                    last = message.id
                if message.name == "task":
                    seen.append(message.data["data"]["number"])
                if len(seen) == total:
                    break
    writer.join()
    assert seen == list(range(total))


def test_all_jobs_of_a_tenant_and_no_others(service: Service) -> None:
    with streaming(service.client(service.new_key("apart")), "/v1/stream") as found:
        theirs, ours = new_job(service), new_job(service, "apart")
        cancel(service, theirs)
        cancel(service, ours)
        heard = []
        for message in found:
            heard.append(message.data["id" if message.name == "status" else "job"])
            if message.name == "state" and message.data["data"]["state"] == "cancelled":
                break
    assert set(heard) == {ours}


def test_a_tenant_that_comes_back_is_told_how_its_jobs_stand(service: Service) -> None:
    job_id = new_job(service, "returning")
    with service.database.read() as session:
        last = EventRepository(session).last_id(job_id)
    cancel(service, job_id)
    with streaming(service.client(service.new_key("returning")), "/v1/stream", str(last)) as found:
        first = [next(found), next(found)]
    assert [(m.name, m.data.get("state") or m.data["data"]["state"]) for m in first] == [
        ("status", "cancelled"),
        ("state", "cancelled"),
    ]


@pytest.mark.parametrize("path", ["/v1/jobs/{}/stream", "/v1/jobs/{}?wait=5", "/v1/jobs/{}/events?wait=5"])
def test_a_job_of_others_is_none(service: Service, path: str) -> None:
    theirs = new_job(service, "others")
    assert service.http.get(path.format(theirs)).status_code == 404


def test_a_key_without_the_right_and_a_bad_id(service: Service) -> None:
    job_id = new_job(service)
    path = f"/v1/jobs/{job_id}/stream"
    assert httpx2.get(f"{service.http.base_url}{path}", verify=NO_TLS).status_code == 401
    refused = service.http.get(path, headers={"Last-Event-ID": "twelve"})
    assert refused.status_code == 422
    assert "Last-Event-ID" in refused.json()["errors"][0]["field"]


def test_a_status_that_is_waited_for(service: Service) -> None:
    job_id = new_job(service)
    now = service.http.get(f"/v1/jobs/{job_id}")
    known = {"If-None-Match": now.headers["ETag"]}
    began_s = time.monotonic()
    same = service.http.get(f"/v1/jobs/{job_id}", params={"wait": 0.5}, headers=known)
    assert (same.status_code, time.monotonic() - began_s >= 0.5) == (304, True)
    threading.Timer(0.3, cancel, (service, job_id)).start()
    changed = service.http.get(f"/v1/jobs/{job_id}", params={"wait": PATIENCE_S}, headers=known)
    assert changed.json()["state"] == "cancelled"
    ended = service.http.get(f"/v1/jobs/{job_id}", params={"wait": PATIENCE_S})
    assert ended.json()["state"] == "cancelled", "one that has ended is waited for by nobody"


def test_events_that_are_waited_for(service: Service) -> None:
    job_id = new_job(service)
    first = service.http.get(f"/v1/jobs/{job_id}/events", params={"wait": PATIENCE_S}).json()["items"]
    threading.Timer(0.3, note, (service, job_id, 7)).start()
    query = {"wait": PATIENCE_S, "after": first[-1]["id"]}
    found = service.http.get(f"/v1/jobs/{job_id}/events", params=query).json()["items"]
    assert [e["data"] for e in found] == [{"number": 7}]


@pytest.mark.parametrize("wait", ["-1", "61", "soon"])
def test_a_wait_that_cannot_be(service: Service, wait: str) -> None:
    refused = service.http.get(f"/v1/jobs/{new_job(service)}", params={"wait": wait})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "query.wait"


def test_many_watchers_cost_one_statement_a_look(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    after_looks: list[int] = []
    look = Broadcaster._look

    def counted(broadcaster: Broadcaster, *watched: set[str]) -> Any:
        found = look(broadcaster, *watched)
        after_looks.append(len(statements))
        return found

    def settled() -> bool:
        last = after_looks[-4:]
        return len(last) == 4 and all(b - a == 1 for a, b in pairwise(last))

    monkeypatch.setattr(Broadcaster, "_look", counted)
    with serving(service_settings(tmp_path, postgres_url), migrated=True) as service:
        job_id = new_job(service)
        with service.database.write() as session:
            JobRepository(session).move(job_id, JobState.QUEUED, JobState.BASELINE)
            JobRepository(session).move(job_id, JobState.BASELINE, JobState.PLANNING)
        arrived = threading.Barrier(WATCHERS + 1)
        heard: list[str] = []

        def watch() -> None:
            with (
                httpx2.Client(
                    base_url=service.http.base_url, headers=bearer(service.key), verify=NO_TLS
                ) as http,
                streaming(http, f"/v1/jobs/{job_id}/stream") as found,
            ):
                for message in found:
                    if message.data.get("data", {}).get("state") == "planning":
                        arrived.wait()
                heard.append(message.data.get("state") or message.data["data"]["state"])

        threads = [threading.Thread(target=watch) for _ in range(WATCHERS)]
        for thread in threads:
            thread.start()
        arrived.wait()
        event.listen(service.database.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
        # First each looks once for what was there before it.
        assert comes_true(settled, HANGS_S), after_looks
        asked = statements[after_looks[-4] : after_looks[-1]]
        cancel(service, job_id)
        for thread in threads:
            thread.join()
    assert heard == ["cancelled"] * WATCHERS
    assert all("FROM job" in statement for statement in asked)


def test_another_process_goes_on_where_one_has_stopped(postgres_session: str, tmp_path: Path) -> None:
    with fresh_database(postgres_session) as url:
        settings = service_settings(tmp_path, url)
        with serving(settings, migrated=True) as service:
            job_id = new_job(service)
            with streaming(service.http, f"/v1/jobs/{job_id}/stream") as found:
                next(found)
                last = next(found).id
                threading.Timer(0.2, note, (service, job_id, 1)).start()
                assert next(found).data["data"] == {"number": 1}
        with serving(settings) as service:
            cancel(service, job_id)
            with streaming(service.http, f"/v1/jobs/{job_id}/stream", last) as found:
                told = [m.data["data"] for m in found if m.name != "status"]
    assert [t.get("number", t.get("state")) for t in told] == [1, "cancelled"]


def test_a_service_that_stops_ends_its_streams(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path)) as service:
        job_id = new_job(service)
        ended = threading.Event()

        def watch() -> None:
            with (
                service.client(service.key) as client,
                streaming(client, f"/v1/jobs/{job_id}/stream") as found,
            ):
                begun.set()
                for _ in found:
                    pass
            ended.set()

        begun = threading.Event()
        watching = threading.Thread(target=watch)
        watching.start()
        assert begun.wait(HANGS_S)
        began_s = time.monotonic()
    assert ended.wait(PATIENCE_S)
    assert time.monotonic() - began_s < PATIENCE_S / 2
    watching.join()
