"""`Client` and `AsyncClient` against the service: the same requests, answers and errors."""

import asyncio
import inspect
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, assert_type

import pytest

from testbed.api_service import Service
from testbed.deadlines import HANGS_S, comes_true
from testbed.servers import free_port
from testbed.stages import BEST, ended
from tests.api.clients import KINDS, ask
from tests.api.jobs import body
from tests.api.operations import lesson
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput, NotFound, TimedOut, Unavailable, WarpsmithError
from warpsmith.extensions.clients.client import AsyncClient, Client
from warpsmith.extensions.clients.client.call import Call, Pages
from warpsmith.extensions.clients.client.calls import ClientMethods, stream_path
from warpsmith.extensions.clients.client.event_stream import Told
from warpsmith.extensions.clients.client.patience import StatusPoll, StatusWait
from warpsmith.extensions.clients.client.request import Request
from warpsmith.http_models import EventView, JobLesson, JobStatus, TrialView
from warpsmith.testing.jobs import scale_job

GOLDEN = Path(__file__).parents[1] / "golden" / "openapi.json"
LESSON = JobLesson.model_validate({"job": "elsewhere", "lesson": lesson()})
ARGUMENTS: dict[str, Any] = {
    "job": scale_job(),
    "job_id": "J",
    "number": 7,
    "request_id": "R",
    "answer": {},
    "lesson": LESSON,
    "url": "https://example.com/hook",
    "webhook_id": "W",
}
"""An argument of each name that a call must have."""


class Asker:
    """One kind of client of one service."""

    def __init__(self, kind: str, service: Service) -> None:
        self.kind, self.service, self.key = kind, service, service.key

    def __call__(self, method: str, *args: Any, **named: Any) -> Any:
        return ask(self.kind, str(self.service.http.base_url), self.key, method, *args, **named)


@pytest.fixture(params=KINDS)
def asked(request: pytest.FixtureRequest, embedded: Service) -> Asker:
    return Asker(request.param, embedded)


def finisher(service: Service) -> Callable[[JobStatus], None]:
    """Brings a job to its end as soon as it is seen waiting."""

    def see(status: JobStatus) -> None:
        if status.state is JobState.QUEUED:
            with service.database.write() as session:
                ended(session, status.id)

    return see


def calls() -> dict[str, Call[Any, Any] | Pages[Any, Any]]:
    """All calls by name."""
    return {n: c for n, c in vars(ClientMethods).items() if isinstance(c, Call | Pages)}


def request_of(name: str, **more: Any) -> Request[Any]:
    """The request of a call with an argument for everything that it must have."""
    made = getattr(ClientMethods, name)
    needed = [p.name for p in inspect.signature(made).parameters.values() if p.default is p.empty]
    request: Request[Any] = made(None, **{n: ARGUMENTS[n] for n in needed if n != "self"}, **more)
    return request


def test_every_operation_of_the_api_has_a_call() -> None:
    operations = {
        (method.upper(), path.format(job_id="J", request_id="R", number=7, webhook_id="W"))
        for path, found in json.loads(GOLDEN.read_text())["paths"].items()
        for method in found
    }
    requests = [request_of(name) for name in calls()]
    requests += [request_of(name, tenant="*") for name in ("jobs", "cancel")]
    asked_for = {(r.method, r.path) for r in requests} | {("GET", "/readyz")}
    asked_for |= {("GET", stream_path(job_id)) for job_id in (None, "J")}
    assert operations == asked_for


@pytest.mark.parametrize("name", sorted(calls()))
def test_a_call_of_a_client_says_what_it_does(name: str) -> None:
    for client in (Client("http://127.0.0.1:1"), AsyncClient("http://127.0.0.1:1")):
        method = getattr(client, name)
        assert inspect.getdoc(method)
        assert "self" in inspect.signature(getattr(type(client), name)).parameters


def test_both_clients_have_the_same_methods() -> None:
    def names(client: type) -> dict[str, list[str]]:
        public = [n for n in dir(client) if not n.startswith("_")]
        return {n: list(inspect.signature(getattr(client, n)).parameters) for n in public}

    assert names(Client) == names(AsyncClient)


def test_the_types_of_both_clients_are_known() -> None:
    """What matters here is that the type checker agrees."""
    client, other = Client("http://127.0.0.1:1"), AsyncClient("http://127.0.0.1:1")
    assert_type(client.trials("J"), Iterator[TrialView])
    assert_type(other.trials("J"), AsyncIterator[TrialView])
    with pytest.raises(Unavailable):
        assert_type(client.status("J"), JobStatus)

    async def status() -> None:
        assert_type(await other.status("J"), JobStatus)

    with pytest.raises(Unavailable):
        asyncio.run(status())
    with pytest.raises(TypeError):
        client.status(job="J")  # type: ignore[call-arg]


def test_a_job_is_submitted_once_read_and_cancelled(asked: Asker) -> None:
    job = scale_job()
    status = asked("submit", job, "once", priority=3)
    assert (status.name, status.state) == ("scale", JobState.QUEUED)
    assert asked("submit", job, "once", priority=3).id == status.id
    assert asked("definition", status.id) == job
    assert [j.id for j in asked("jobs").items] == [status.id]
    assert asked("status", status.id).id == status.id
    assert asked("cancel", status.id).state is JobState.CANCELLED
    assert [e.data["state"] for e in asked("events", status.id)] == ["queued", "cancelled"]


def test_every_page_of_a_list_is_read(asked: Asker) -> None:
    ids = [asked.service.http.post("/v1/jobs", json=body(name=f"job {i}")).json()["id"] for i in range(60)]
    asked.service.http.post("/v1/jobs", json=body(name="another"))
    assert len(asked("jobs", name="job ").items) == 50
    assert [j.id for j in asked("all_jobs", name="job ")] == sorted(ids, reverse=True)
    assert [j.id for j in asked("all_jobs", after=ids[2])] == [ids[1], ids[0]]


def test_the_next_page_replaces_where_the_first_began() -> None:
    request = request_of("jobs", after="first", device="mine").after("second")
    assert sorted(request.params) == [("after", "second"), ("device", "mine")]


def test_a_page_is_asked_for_when_it_is_needed(embedded: Service) -> None:
    for i in range(51):
        embedded.http.post("/v1/jobs", json=body(name=f"job {i}"))
    sent: list[Request[Any]] = []

    class Watched(Client):
        def send(self, request: Request[Any]) -> Any:
            sent.append(request)
            return super().send(request)

    with Watched(str(embedded.http.base_url), embedded.key) as client:
        found = client.all_jobs()
        assert sent == []
        for _ in range(50):
            next(found)
        assert len(sent) == 1
        assert len(list(found)) == 1
        assert len(sent) == 2


def test_the_result_of_a_job_has_its_trials(asked: Asker) -> None:
    job_id = asked("submit", scale_job()).id
    with pytest.raises(InvalidInput, match="has not ended"):
        asked("result_of", job_id)
    with asked.service.database.write() as session:
        ended(session, job_id)
    found = asked("result_of", job_id)
    assert found.evidence == asked("result", job_id)
    assert [t["number"] for t in found.trials] == [t.number for t in asked("trials", job_id)]
    assert len(found.trials) == 5
    assert found.kernel_for(n=4096).configuration == BEST
    assert not found.kernel_for(n=1001).is_tuned
    (candidate,) = asked("candidates", job_id).items
    assert candidate.round == 1
    assert asked("agent_steps", job_id).items == ()


def test_one_call_tunes(asked: Asker) -> None:
    found = asked("tune", scale_job(), "key", on_status=finisher(asked.service))
    assert (found.state, found.speedup, found.has_gain) == (JobState.DONE, pytest.approx(2**0.5), True)
    assert asked("tune", scale_job(), "key").id == found.id


def test_a_wait_shows_every_status_and_ends_with_the_job(asked: Asker) -> None:
    job_id = asked("submit", scale_job()).id
    seen: list[JobState] = []
    finish = finisher(asked.service)

    def see(status: JobStatus) -> None:
        seen.append(status.state)
        finish(status)

    assert asked("wait", job_id, see, every_s=0.01).state is JobState.DONE
    assert seen == [JobState.QUEUED, JobState.DONE]


def test_a_wait_ends_after_its_time_and_the_job_goes_on(asked: Asker) -> None:
    job_id = asked("submit", scale_job()).id
    words = rf"job {job_id} has not ended in 0\.05 s; it goes on \(queued\): wait for it again, or cancel it"
    with pytest.raises(TimedOut, match=words) as caught:
        asked("wait", job_id, timeout_s=0.05)
    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(TimedOut):
        asked("tune", scale_job(), timeout_s=0)
    assert {j.state for j in asked("jobs").items} == {JobState.QUEUED}


def test_many_jobs_are_awaited_at_once(embedded: Service) -> None:
    finish = finisher(embedded)

    async def tuned() -> list[float | None]:
        async with AsyncClient(str(embedded.http.base_url), embedded.key) as client:
            jobs = [scale_job(name=f"job {i}") for i in range(4)]
            found = await asyncio.gather(*(client.tune(job, on_status=finish) for job in jobs))
            assert sorted(r.job.name for r in found) == [j.name for j in jobs]
            return [r.speedup for r in found]

    assert asyncio.run(asyncio.wait_for(tuned(), HANGS_S)) == [pytest.approx(2**0.5)] * 4


# The service and its operators.


def test_the_state_of_the_service(asked: Asker) -> None:
    assert asked("health").status == "ok"
    assert "no worker is alive" in asked("ready")
    assert asked("workers").items == ()
    assert "warpsmith_jobs" in asked("metrics")


def test_an_operator_sees_and_cancels_jobs_of_all(asked: Asker) -> None:
    job_id = asked("submit", scale_job()).id
    assert [(j.id, j.tenant) for j in asked("all_jobs", tenant="*")] == [(job_id, "default")]
    assert asked("cancel", job_id, tenant="default").tenant == "default"


# What goes wrong.


@pytest.mark.parametrize(
    ("method", "arguments", "error", "words"),
    [
        ("status", ("none",), NotFound, "none"),
        ("trials", ("none",), NotFound, "none"),
        ("status", ("a/b?c",), NotFound, ""),
        ("reply", ("none", {}), NotFound, "none"),
        ("status", ("x" * 65,), InvalidInput, "64 characters"),
        ("submit", (scale_job(), None, 11), InvalidInput, "query.priority"),
    ],
)
def test_a_refusal_is_an_error_of_the_package(
    asked: Asker, method: str, arguments: tuple[Any, ...], error: type[WarpsmithError], words: str
) -> None:
    with pytest.raises(error) as caught:
        asked(method, *arguments)
    assert words in str(caught.value)


def test_a_refusal_names_its_field(asked: Asker) -> None:
    kernel = scale_job().kernel.model_copy(update={"options": ("-o/x",)})
    with pytest.raises(InvalidInput) as caught:
        asked("submit", scale_job().model_copy(update={"kernel": kernel}))
    assert caught.value.field.startswith("kernel.options")


def test_a_wrong_key_is_named(asked: Asker) -> None:
    asked.key = "ws_wrong"
    with pytest.raises(InvalidInput) as caught:
        asked("workers")
    assert caught.value.field == "API key"


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_that_is_away_is_named(kind: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unavailable, match=rf"{url} does not answer: "):
        ask(kind, url, None, "workers")
    assert ask(kind, url, None, "ready") == f"{url} does not answer: [Errno 111] Connection refused"


def test_another_server_is_told_apart(asked: Asker) -> None:
    request = Request(Job.model_validate_json, "GET", "/healthz")
    with pytest.raises(Unavailable, match="does not answer as Warpsmith does: HTTP 200"):
        asked("send", request)


def test_a_stream_tells_a_job_to_its_end(asked: Asker) -> None:
    job_id = asked("submit", scale_job()).id
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(told_of, asked, job_id)
        time.sleep(0.5)
        asked("cancel", job_id)
        found = told.result()
    states = [t.state.value if isinstance(t, JobStatus) else t.data["state"] for t in found]
    assert states == ["queued", "queued", "cancelled", "cancelled"]
    assert [isinstance(t, JobStatus) for t in found] == [True, False, True, False]
    last = [t.id for t in found if isinstance(t, EventView)][-1]
    assert told_of(asked, job_id, last) == []
    assert [t.id for t in told_of(asked, job_id, last - 1) if isinstance(t, EventView)] == [last]


def told_of(asked: Asker, job_id: str, after: int | None = None) -> list[Told]:
    """All that a stream tells, by either client."""
    url = str(asked.service.http.base_url)
    if asked.kind == "Client":
        with Client(url, asked.key) as client:
            return list(client.stream(job_id, after))

    async def listen() -> list[Told]:
        async with AsyncClient(url, asked.key) as client:
            return [told async for told in client.stream(job_id, after)]

    return asyncio.run(listen())


def test_a_stream_of_no_job(asked: Asker) -> None:
    with pytest.raises(NotFound):
        told_of(asked, "nothing")


def test_a_wait_hears_of_the_end_at_once(asked: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    polls: list[StatusPoll] = []
    poll = StatusWait.poll

    def counted(patience: StatusWait, *longest_s: float) -> StatusPoll:
        polls.append(poll(patience, *longest_s))
        return polls[-1]

    monkeypatch.setattr(StatusWait, "poll", counted)
    job_id = asked("submit", scale_job()).id
    with ThreadPoolExecutor(1) as pool:
        waited = pool.submit(asked, "wait", job_id, every_s=0.0)
        assert comes_true(lambda: len(polls) > 1, HANGS_S)
        time.sleep(0.5)
        made = len(polls)
        asked("cancel", job_id)
        assert waited.result().state is JobState.CANCELLED
    assert len(polls) == made, "the poll that waited was told"
