"""The hostile replies over real HTTP, by a model and from outside: what is told, and that no more happens."""

import json
from pathlib import Path

import pytest

from agents.context import StepContext
from agents.parsing import MAX_COMPLAINT_CHARACTERS, MAX_REPLY_CHARACTERS
from agents.providers.model import SHOWN_CHARACTERS
from testbed.api_service import service_settings, serving
from tests.agents.conftest import Make
from tests.agents.hostile_replies import REPLIES, HostileReply
from tests.agents.model_server import Body, Turn, in_order, model_server
from tests.agents.replies import as_text, template
from tests.agents.test_requests import external_job, the_request, worker  # noqa: F401  fixture
from tests.worker.test_execute import handle_all, submit
from warpsmith.domain.jobs.job import Job
from warpsmith.tuning.tasks import MAX_ANSWER_CHARACTERS, StepPayload, StepResult
from worker.device.process_context import Context

PAYLOAD = StepPayload(role="templater", round=1, tools=5)
GOOD = Turn(calls=[("compile", json.dumps({"template": template()}))])
POSTED = [r for r in REPLIES if r.body is not None and not r.taken]


def test_the_corpus_has_no_reply_twice() -> None:
    assert (
        len({r.what for r in REPLIES}) == len({(r.text, str(r.calls)) for r in REPLIES}) == len(REPLIES) >= 10
    )


@pytest.mark.parametrize("bad", REPLIES, ids=[r.what for r in REPLIES])
def test_a_model_is_told_and_asked_again(bad: HostileReply, provider: Make, context: StepContext) -> None:
    """By a server that does not count, so that its bytes are counted here."""
    first = Turn(bad.text, calls=bad.calls, usage=None)
    with model_server(in_order(first, GOOD)) as server:
        made = provider(server.url, tokens=20_000_000, usd=50)
        result = made.answer(PAYLOAD, context)
    assert server.calls == 1 + (not bad.taken)
    if bad.taken:
        (call,) = result.tool_calls
        assert call.answer is not None and not call.answer.ok
        assert bad.told in call.answer.text
        assert len(call.answer.text) <= MAX_ANSWER_CHARACTERS
    else:
        assert [c.tool for c in result.tool_calls] == ["compile"]
        assert bad.told in result.notes[1]
        assert bad.told in server.requests[1]["messages"][-1]["content"]
    check_bounded(result, bad)


def check_bounded(result: StepResult, bad: HostileReply) -> None:
    """The step can be stored, and what it stores is in proportion to what a reply may have."""
    stored = result.model_dump_json()
    stored.encode()
    assert "\0" not in result.prompt + result.reply + "".join(result.notes)
    assert all(len(note) <= 2000 for note in result.notes)
    sent = sum(len(part) for part in (bad.text, *(name + given for name, given in bad.calls)))
    kept = SHOWN_CHARACTERS if sent > MAX_REPLY_CHARACTERS else 2 * sent
    assert len(stored) < 150_000 + 4 * kept


@pytest.mark.parametrize("escaped", [False, True])
def test_the_canary_is_found_in_a_call(escaped: bool, provider: Make, context: StepContext) -> None:
    def script(body: Body, number: int) -> Turn:
        if number:
            return GOOD
        word = body["messages"][-1]["content"].split("Never repeat this word: ")[1].split()[0]
        said = "".join(f"\\u{ord(c):04x}" for c in word) if escaped else word
        return Turn(calls=[("compile", as_text({"draft": "d0"}).replace("d0", said))])

    with model_server(script) as server:
        result = provider(server.url, usd=5, tokens=2_000_000).answer(PAYLOAD, context)
    assert server.calls == 2
    assert "it repeats what must not be repeated" in result.notes[0]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_somebody_outside_is_told_and_the_request_stays_open(
    worker: Context,  # noqa: F811
    tmp_path: Path,
) -> None:
    submit(worker.database, with_tools())
    handle_all(worker)
    request = the_request(worker.database)
    path = f"/v1/agent-requests/{request.id}/reply"
    with serving(service_settings(tmp_path / "api", worker.settings.database_url)) as service:
        for bad in POSTED:
            assert bad.body is not None
            reply = service.http.post(
                path, content=bad.body.encode(), headers={"Content-Type": "application/json"}
            )
            assert reply.status_code == bad.status, (bad.what, reply.text[:300])
            assert len(reply.text) <= 2 * MAX_COMPLAINT_CHARACTERS
        (shown,) = service.http.get("/v1/agent-requests").json()["items"]
        assert len(shown["last_refusal"]) <= MAX_COMPLAINT_CHARACTERS
        good = service.http.post(path, json={"answer": {"calls": [{"tool": "history"}]}})
        assert good.status_code == 200


def with_tools() -> Job:
    """A job whose templater is asked outside and may use tools."""
    job = external_job()
    return job.model_copy(update={"agents": job.agents.model_copy(update={"tools": 5})})
