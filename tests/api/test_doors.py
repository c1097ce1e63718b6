"""What strangers send to exhaust the service: it stops none of the others, and each is told why it ends."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api import connections
from api.requests import auth, limits
from db.api_keys import new_key
from db.engine import Database
from db.repositories.jobs import JobRepository
from testbed.api_service import Service, service_settings, serving
from testbed.deadlines import HANGS_S, comes_true, stretched
from tests.api.jobs import body, changed
from tests.api.test_bad_input import JSON, problem_of
from warpsmith.domain.jobs import job as jobs
from warpsmith.domain.jobs.effort import MAX_PARTS
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.plain_data import MAX_DEPTH, MAX_VALUES
from warpsmith.domain.source_text import MAX_NESTING


def full_of_expressions(workloads: int, values: int) -> dict[str, Any]:
    """A job with so many workloads and, in a struct, so many expressions."""
    job = body(workloads=[{"dimensions": {"n": 1024 + i}} for i in range(workloads)])
    job["kernel"]["arguments"] += [
        {
            "name": f"s{i}",
            "role": "struct",
            "fields": [{"name": "v", "dtype": "int32", "count": values, "values": ["n+1-n*2//2"] * values}],
        }
        for i in range(2)
    ]
    return job


def test_a_body_full_of_expressions_is_refused_before_any_is_evaluated(http: httpx2.Client) -> None:
    began = time.monotonic()
    (error,) = problem_of(http.post("/v1/jobs", json=full_of_expressions(64, 4000)), 422).errors
    assert (error.field, str(MAX_PARTS) in error.message) == ("workloads", True)
    assert time.monotonic() - began < stretched(3)


def test_others_are_answered_while_a_job_is_checked(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        begun.set()
        go_on.wait(HANGS_S)

    monkeypatch.setattr(jobs, "check_effort", wait)
    with service.client(service.key) as other:
        thread = threading.Thread(target=other.post, args=("/v1/jobs",), kwargs={"json": body()})
        thread.start()
        try:
            assert begun.wait(HANGS_S)
            assert service.http.get("/v1/jobs?limit=1").status_code == 200
        finally:
            go_on.set()
            thread.join()


def test_a_stored_job_is_not_checked_again(embedded: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    made = embedded.http.post("/v1/jobs", json=body())

    def never(*_: object) -> None:
        raise AssertionError("checked again")

    posted = Job.model_validate(body())
    monkeypatch.setattr(jobs, "check_effort", never)
    found = embedded.http.get(f"{made.headers['location']}/definition")
    assert found.json()["kernel"]["launch"]["grid"] == ["ceil_div(n, BLOCK)"]
    assert _stored(embedded.database, made.json()["id"]) == posted


def _stored(database: Database, job_id: str) -> Job:
    with database.read() as session:
        return JobRepository(session).get(job_id, with_spec=True).spec


def test_whoever_may_not_submit_is_told_before_the_job_is_read(service: Service) -> None:
    with service.client(service.new_key(open_jobs=1)) as http:
        assert http.post("/v1/jobs", json=body()).status_code == 202
        assert http.post("/v1/jobs", json={"no": "job"}).status_code == 429


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[]] * (MAX_VALUES + 1), "more than"),
        (json.loads("[" * 900 + "]" * 900), f"deeper than {MAX_DEPTH}"),
        ("(" * 2000 + "1" + ")" * 2000, "1 to 500 characters"),
        ("-" * 400 + "1", "parts"),
    ],
)
def test_what_is_too_deep_or_too_much_is_refused_with_its_field(
    http: httpx2.Client, value: Any, words: str
) -> None:
    (error,) = problem_of(http.post("/v1/jobs", json=changed("kernel.launch.grid", [value])), 422).errors
    assert words in error.message


def test_a_body_that_json_itself_cannot_read_is_no_fault_of_ours(http: httpx2.Client) -> None:
    content = b"[" * 100_000 + b"]" * 100_000
    problem_of(http.post("/v1/jobs", content=content, headers=JSON), 400)


@pytest.mark.parametrize("brackets", ["()", "{}", "[]"])
def test_a_source_with_deep_brackets_is_refused(http: httpx2.Client, brackets: str) -> None:
    opening, closing = brackets[0], brackets[1]
    source = "__kernel void scale() {\n" + opening * 2000 + closing * 2000 + "}"
    (error,) = problem_of(http.post("/v1/jobs", json=changed("kernel.source", source)), 422).errors
    assert error.field == "kernel.source"
    assert error.message == f"brackets are nested deeper than {MAX_NESTING} in line 2"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("kernel.files", {"a.h": "int a;\0"}, "kernel.files.a.h"),
        ("kernel.files", {"a\0.h": ""}, "kernel.files"),
        ("reference", {"kind": "numpy", "source": "def reference(): \0"}, "reference.source"),
        ("parameters.0.meaning", "\0", "parameters.0.meaning"),
        ("constraints", [{"expression": "BLOCK > 1", "reason": "a\0"}], "constraints.0.reason"),
    ],
)
def test_no_text_has_a_nul(http: httpx2.Client, path: str, value: Any, field: str) -> None:
    (error,) = problem_of(http.post("/v1/jobs", json=changed(path, value)), 422).errors
    assert (error.field, "NUL" in error.message) == (field, True)


def test_so_many_wrong_fields_are_answered_at_once(http: httpx2.Client) -> None:
    began = time.monotonic()
    job = body() | {f"nmae{i}": 1 for i in range(20_000)}
    assert len(problem_of(http.post("/v1/jobs", json=job), 422).errors) <= 100
    assert time.monotonic() - began < stretched(5)


def test_nobody_can_use_up_the_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "PUBLIC_PER_S", 1.0)
    with serving(service_settings(tmp_path)) as service, service.client(None) as http:
        assert 429 in [http.get("/openapi.json").status_code for _ in range(8)]
        assert {http.get("/healthz").status_code for _ in range(40)} == {200}
        assert {http.get("/readyz").status_code for _ in range(40)} == {503}, "there is no worker"


def test_wrong_keys_in_a_row_are_slowed_and_lock_nobody_out(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path)) as service:
        assert service.http.get("/v1/jobs").status_code == 200
        replies = []
        for _ in range(60):
            with service.client(new_key()[1]) as guessing:
                replies.append(guessing.get("/v1/jobs"))
        statuses = [r.status_code for r in replies]
        assert statuses[: int(auth.WRONG_AT_ONCE)] == [401] * int(auth.WRONG_AT_ONCE)
        # How many get through is how long the sixty take: one more every two seconds.
        slowed = [r for r in replies if r.status_code == 429]
        assert len(slowed) >= 20
        assert all(int(r.headers["retry-after"]) >= 1 for r in slowed)
        assert service.http.get("/v1/jobs").status_code == 200


@contextlib.contextmanager
def half_sent(service: Service, count: int, text: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have sent a part of a request."""
    address = (str(service.http.base_url.host), int(service.http.base_url.port or 0))
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(address)) for _ in range(count)]
        for each in opened:
            with contextlib.suppress(OSError):
                each.sendall(text)
            each.setblocking(False)
        yield opened


def ended(connection: socket.socket) -> bool:
    """Whether the other side has closed it."""
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def all_ended(opened: list[socket.socket]) -> bool:
    return all(map(ended, opened))


def test_half_sent_headers_are_waited_for_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADERS_S", 0.3)
    half = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
    with serving(service_settings(tmp_path)) as service:
        for text in (b"", half):
            with half_sent(service, 20, text) as opened:
                assert comes_true(lambda: all_ended(opened), 4.0), text
        monkeypatch.setattr(connections, "HEADERS_S", 60.0)
        with half_sent(service, 5, half + b"\r\n") as opened:
            for each in opened:
                each.setblocking(True)
                assert each.recv(8) == b"HTTP/1.1"
                each.setblocking(False)
            monkeypatch.setattr(connections, "HEADERS_S", 0.3)
            for each in opened:
                each.sendall(half)
            assert comes_true(lambda: all_ended(opened), 4.0)
        assert service.http.get("/healthz").status_code == 200


def test_half_sent_bodies_are_waited_for_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_S", 0.3)
    with serving(service_settings(tmp_path)) as service:

        def slowly() -> Iterator[bytes]:
            yield b"{"
            time.sleep(stretched(2.0))
            yield b"}"

        reply = service.http.post("/v1/jobs", content=slowly(), headers=JSON)
        problem_of(reply, 408)


def test_there_are_only_so_many_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 5)
    with serving(service_settings(tmp_path)) as service, half_sent(service, 12, b"GET") as opened:
        assert comes_true(lambda: sum(map(ended, opened)) >= 7, 5.0)
