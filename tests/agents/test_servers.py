"""Servers of models that answer anything: a step always has a result, and no job fails."""

import gzip
import json
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from agents.context import StepContext
from agents.providers import steps
from agents.providers.external import ExternalProvider, Letter, NotYet
from agents.providers.model import ModelProvider
from agents.providers.model_budget import SmallPurse
from agents.providers.model_transport import MAX_BODY_BYTES, MAX_COUNT, MAX_PAUSE_S, _retry_after_s
from agents.providers.steps import Panel, run_step
from db import migrate
from db.engine import Database
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.workers import WorkerRepository
from db.views.job_status import job_status
from testbed.repetitions import examples
from tests.agents.conftest import KEY, Make, settings_of
from tests.agents.model_server import Turn, completion, in_order, model_server
from tests.agents.replies import as_text, template
from tests.worker.setup_fakes import FakeSetup
from tests.worker.test_execute import SilentNotifier, handle_all, submit
from warpsmith.domain.jobs.job import AgentPolicy
from warpsmith.domain.state import JobState
from warpsmith.errors import InvalidInput
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import StepPayload
from worker.device.process_context import Context

FAR = "Fri, 31 Dec 99999 23:59:59 GMT"
HUGE = {"prompt_tokens": 10**30, "completion_tokens": 10**30, "total_tokens": 2 * 10**30}
GOOD = as_text(template())


def sent(**changes: Any) -> bytes:
    """A good completion with other fields."""
    return json.dumps(completion(Turn(GOOD)) | changes).encode()


def choice(message: Any, **more: Any) -> bytes:
    """A completion with this message."""
    return sent(choices=[{"index": 0, "message": message, "finish_reason": "stop"} | more])


def panel(url: str, mailbox: Any = None, **changes: Any) -> Panel:
    """The providers of a step that has little time, so that it waits for no server."""
    changes = {"openai_retries": 1, "openai_repairs": 0, "agent_provider": "openai"} | changes
    return Panel(settings_of(url, **changes), SmallPurse(1_000_000, 1.0), mailbox, seconds=0.4)


class Empty:
    """A mailbox of a question that was not asked."""

    def look(self) -> Letter | None:
        return None


# What a server says of its use.
COUNTS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [10**30, 2**31 - 1, 2**31, 2**63, -1, -(10**30), 1e30, "5", None, True, [], {}, float("nan")]
    ),
    st.integers(0, 2000),
)
USAGES = st.one_of(
    st.sampled_from([None, 3, "usage", [], {}]),
    st.fixed_dictionaries(
        {"prompt_tokens": COUNTS, "completion_tokens": COUNTS},
        optional={
            "total_tokens": COUNTS,
            "prompt_tokens_details": st.one_of(
                COUNTS, st.fixed_dictionaries({"cached_tokens": COUNTS, "cache_write_tokens": COUNTS})
            ),
        },
    ),
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("\ud800\0")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["error", "message", "content", "text", "type", "choices", "usage", "0"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)
MESSAGES = st.one_of(
    ANYTHING,
    st.fixed_dictionaries({"content": st.one_of(ANYTHING, st.just(GOOD))}, optional={"tool_calls": ANYTHING}),
)
CHOICES = st.one_of(
    ANYTHING,
    st.lists(st.one_of(ANYTHING, st.fixed_dictionaries({"message": MESSAGES})), min_size=1, max_size=2),
)
BODIES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"", b"[" * 100_000, b"9" * 5000, b"<!doctype html><p>{503}", sent(error={"message": FAR})]
    ),
    ANYTHING.map(lambda found: json.dumps(found).encode()),
    st.builds(lambda usage, choices: sent(usage=usage, choices=choices), USAGES, CHOICES),
    st.builds(lambda usage: sent(usage=usage), USAGES),
)
HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "Retry-After-Ms", "Content-Type", "Content-Encoding", "X-Should-Retry"]),
    st.sampled_from(
        [
            FAR,
            "nan",
            "inf",
            "-inf",
            "-5",
            "1e400",
            "abc",
            "2, 3",
            "",
            "Mon, 99",
            "text/html",
            "gzip",
            "br",
            "\xe9",
        ]
    ),
    max_size=3,
)
STATUSES = st.one_of(
    st.just(200), st.sampled_from([201, 204, 301, 304, 400, 401, 404, 429, 500, 503, 599, 999])
)


@examples(120, least=24)
@given(status=STATUSES, headers=HEADERS, body=BODIES)
def test_a_step_has_a_result_whatever_its_server_says(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    context = StepContext(job=scale_job())
    turn = Turn(status=status, headers=headers, raw=body)
    with model_server(lambda _body, _number: turn) as server:
        result = run_step(StepPayload(role="templater", round=1), context, panel(server.url))
    assert result.template is not None
    assert (result.provider, bool(result.fallback)) in (("openai", False), ("rules", True))
    assert 0 <= result.tokens < 2**27 and 0 <= result.usd < 1000
    assert result.fallback.startswith("openai: ") or not result.fallback
    result.model_dump_json().encode()
    assert "\0" not in "".join([result.fallback, result.reply, *result.notes])


ENDED_JOBS = {
    "a pause until the year 99999": Turn(status=429, headers={"Retry-After": FAR}),
    "10^30 tokens": Turn(raw=sent(usage=HUGE)),
}


@pytest.mark.parametrize("name", ENDED_JOBS)
def test_a_job_is_done_although_its_server_is_broken(name: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'test.db'}"
    migrate.upgrade(url)
    database = Database(url)
    job = scale_job(budget={"trials": 6, "seconds": 600, "tokens": 1_000_000, "usd": 1})
    job = job.model_copy(update={"agents": AgentPolicy(provider="openai")})
    with model_server(in_order(ENDED_JOBS[name])) as server:
        with database.write() as session:
            WorkerRepository(session).register("w", "host", 1, "0", ["control"], [DEVICE], {})
        settings = settings_of(server.url, data_dir=tmp_path, database_url=url, openai_retries=0)
        submitted = submit(database, job)
        handle_all(Context(settings, database, SilentNotifier(), "w", FakeSetup()))
    with database.read() as session:
        check_done(session, submitted)
    database.dispose()


def check_done(session: Session, job: str) -> None:
    """Every step has the model's answer, or the rules' with a reason and a note."""
    status = job_status(session, job)
    assert status.state is JobState.DONE, status.detail
    steps = AgentStepRepository(session).of_job(job)
    assert steps
    for step in steps:
        assert step.notes if step.provider == "openai" or step.fallback else step.role == "templater"
    assert any(s.fallback for s in steps)


def test_any_exception_of_a_provider_is_a_note(
    context: StepContext, payload: StepPayload, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(provider: ModelProvider, *_: object) -> None:
        provider.purse.reserve(provider.purse.left())
        raise ZeroDivisionError("of its own\0\ud800")

    logged: list[str] = []
    # What pytest captures is sent to another process, as a surrogate cannot be.
    monkeypatch.setattr(steps.log, "exception", lambda *_: logged.append(traceback.format_exc()))
    monkeypatch.setattr(ModelProvider, "answer", fails)
    result = run_step(payload, context, panel("http://127.0.0.1:9/v1"))
    assert result.provider == "rules" and result.template is not None
    assert result.fallback == "openai: ZeroDivisionError: of its own\\ud800"
    assert result.tokens == 1_000_000, "what it has reserved may have been spent"
    assert "Traceback" in logged[0] and "ZeroDivisionError" in logged[0]


def test_what_says_something_about_the_job_is_no_note(
    context: StepContext, payload: StepPayload, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotYet):
        run_step(payload, context, panel("http://127.0.0.1:9/v1", Empty(), agent_provider="external"))

    def refuses(*_: object) -> None:
        raise InvalidInput("kernel", "cannot be read")

    monkeypatch.setattr(ExternalProvider, "answer", refuses)
    with pytest.raises(InvalidInput):
        run_step(payload, context, panel("http://127.0.0.1:9/v1", Empty(), agent_provider="external"))


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"retry-after": FAR}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_PAUSE_S),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, MAX_PAUSE_S),
        ({"retry-after": "1e999"}, MAX_PAUSE_S),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "-inf"}, 0.0),
        ({"retry-after": "Mon, 99 Foo"}, None),
        ({"retry-after": "Fri, 31 Dec 2026 23:59:59 -99999999999999"}, None),
        ({"retry-after-ms": "abc", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "nan", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
    ids=str,
)
def test_a_pause_is_bounded_and_of_the_first_good_header(
    headers: dict[str, str], pause: float | None
) -> None:
    found = _retry_after_s(headers)
    assert found == pause or (found is not None and pause is None and 0 <= found <= MAX_PAUSE_S)


@pytest.mark.parametrize(
    "counts", [(10**30, 5), (5, MAX_COUNT + 1), (-1, 5), (2**31 - 1, 2**31 - 1)], ids=str
)
def test_a_count_beyond_all_contexts_counts_as_not_said(
    counts: tuple[int, int], provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(Turn(GOOD, usage=counts))) as server:
        result = provider(server.url).answer(payload, context)
    assert "the server does not say what it used" in result.notes[0]
    assert 0 < result.tokens <= 100_000


PARTS = {
    "one text": [{"type": "text", "text": GOOD}],
    "two texts": [{"type": "text", "text": GOOD[:9]}, {"type": "text", "text": GOOD[9:]}],
    "thoughts first": [
        {"type": "thinking", "thinking": [{"type": "text", "text": '{"rules": ["x"]}'}]},
        {"type": "reasoning", "text": '{"rules": ["x"]}'},
        {"type": "text", "text": GOOD},
    ],
    "thoughts last": [
        {"type": "output_text", "text": GOOD},
        {"type": "reasoning", "text": '{"rules": ["x"]}'},
    ],
    "plain": [GOOD],
    "no type": [{"text": GOOD}],
    "a value": [{"type": "text", "text": {"value": GOOD, "text": GOOD}}],
    "unknown": [{"type": "image_url", "image_url": {"url": "x"}}, None, 3, {"type": "text", "text": GOOD}],
    "no list": {"type": "text", "text": GOOD},
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_message_are_joined(
    name: str, provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(Turn(raw=choice({"role": "assistant", "content": PARTS[name]})))) as server:
        result = provider(server.url, openai_repairs=0).answer(payload, context)
    assert result.reply == GOOD


ERRORS = {
    "object": {"error": {"message": "overloaded", "code": 503}},
    "text": {"error": "overloaded"},
    "deeper": {"error": {"error": {"message": "overloaded"}}},
    "code only": {"error": {"code": "overloaded"}},
    "vLLM": {"object": "error", "message": "overloaded", "code": 400},
    "detail": {"detail": "overloaded"},
    "no choices": {"choices": [], "error": {"message": "overloaded"}},
    "in a choice": {"choices": [{"error": {"message": "overloaded"}, "message": {"content": ""}}]},
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_a_200_is_told_and_not_charged(
    name: str, provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(Turn(raw=json.dumps(ERRORS[name]).encode()), Turn(GOOD))) as server:
        result = provider(server.url).answer(payload, context)
    assert "overloaded" in result.notes[0] and len(result.notes) == 1
    assert (result.calls, result.tokens) == (2, 150)


def test_an_error_that_quotes_the_key_does_not_tell_it(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    words = "x" * 275 + f" your key {KEY}"
    turns = [Turn(raw=json.dumps({"error": words}).encode()), Turn(status=500, message=words), Turn(GOOD)]
    with model_server(in_order(*turns)) as server:
        result = provider(server.url, openai_retries=2).answer(payload, context)
    assert len(result.notes) == 2
    assert all("sk-" not in note for note in result.notes)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_without_end_is_read_up_to_its_limit(
    status: int, packed: bool, provider: Make, payload: StepPayload, context: StepContext
) -> None:
    large = b'{"error": "' + b"x" * (8 * MAX_BODY_BYTES)
    raw = gzip.compress(large, 1) if packed else large
    headers = {"Content-Encoding": "gzip"} if packed else {}
    with model_server(in_order(Turn(raw=raw, status=status, headers=headers), Turn(GOOD))) as server:
        started = time.process_time()
        result = provider(server.url, tokens=1_000_000).answer(payload, context)
        assert time.process_time() - started < 5
    assert "has more than 16 MiB" in result.notes[0]
    assert result.calls == 2


def test_a_packed_answer_is_read(provider: Make, payload: StepPayload, context: StepContext) -> None:
    turn = Turn(raw=gzip.compress(sent()), headers={"Content-Encoding": "gzip"})
    with model_server(in_order(turn)) as server:
        assert provider(server.url).answer(payload, context).calls == 1
