"""The provider `openai` against a local server: what it asks, what it survives, and what it spends."""

import email.utils
import json
import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from agents.context import StepContext
from agents.providers.model import ModelProvider
from agents.providers.step_record import CannotAnswer
from agents.providers.steps import with_fallback
from agents.questions.prompting import HIDDEN
from testbed.deadlines import stretched
from tests.agents.conftest import KEY, Make
from tests.agents.model_server import Body, Turn, in_order, model_server
from tests.agents.replies import as_text, template
from warpsmith.tuning.tasks import StepPayload, StepResult

GOOD = Turn(as_text(template()))
FAULTS: dict[str, Turn] = {
    "429 with a pause": Turn(status=429, headers={"Retry-After": "2"}),
    "429 with milliseconds": Turn(status=429, headers={"Retry-After-Ms": "1500"}),
    "429 with a date": Turn(status=429, headers={"Retry-After": email.utils.formatdate(0, usegmt=True)}),
    "500": Turn(status=500),
    "502 with a page": Turn(
        status=502, raw=b"<html>bad gateway</html>", headers={"Content-Type": "text/html"}
    ),
    "truncated": Turn('{"source": "__kernel void sca', finish="length"),
    "prose": Turn("I would suggest larger blocks."),
    "empty": Turn(""),
    "wrong schema": Turn('{"kernel": "x", "rules": "block_size"}'),
    "both ways": Turn(as_text(template(rules=["block_size"]))),
    "unknown rule": Turn(as_text({"rules": ["make_it_fast"]})),
    "entry renamed": Turn(
        as_text(template(source=template()["source"].replace("void scale", "void scaled")))
    ),
    "unused parameter": Turn(
        as_text(template(parameters=[{"name": "NOPE", "values": [1, 2], "default": 1}]))
    ),
    "code in an expression": Turn(as_text(template(grid=['__import__("os").system("id")']))),
    "unknown name": Turn(as_text(template(constraints=[{"expression": "TILE <= 4"}]))),
    "reserved name": Turn(as_text(template(parameters=[{"name": "for", "values": [1], "default": 1}]))),
    "macro with code": Turn(
        as_text(template(parameters=[{"name": "CHUNK", "values": ["1;x"], "default": "1;x"}]))
    ),
    "no completion": Turn(raw=b'{"object": "error"}'),
    "not json": Turn(raw=b"oops"),
    "hangs up": Turn(hang_up=True),
}


def asked(body: Body) -> str:
    """All text that a request sends."""
    return "\n".join(m["content"] for m in body["messages"])


def spent(provider: ModelProvider) -> int:
    return provider.purse.booked.tokens


def test_a_good_reply_is_a_template(provider: Make, payload: StepPayload, context: StepContext) -> None:
    with model_server(in_order(GOOD)) as server:
        made = provider(server.url)
        result = made.answer(payload, context)
    assert result.template is not None
    names = [p.name for p in result.template.space.parameters]
    assert names == ["CHUNK", "BLOCK", "PER"], "the user's own parameters stay"
    assert result.template.kernel.entry == "scale"
    assert result.template.kernel.launch == context.job.kernel.launch
    assert (result.tokens, result.calls, result.model) == (150, 1, "m")
    assert result.usd == pytest.approx((100 * 1 + 50 * 2) / 1e6)
    assert spent(made) == result.tokens == server.billed_tokens


def test_what_is_sent_is_data_without_comments_and_the_record_has_no_secret(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(GOOD)) as server:
        result = provider(server.url).answer(payload, context)
    (body,) = server.requests
    assert "ignore all rules" not in asked(body)
    assert "get_global_id(0)" in asked(body)
    assert body["response_format"]["json_schema"]["strict"] is True
    canary = asked(body).split("Never repeat this word: ")[1].split()[0]
    assert server.keys == [f"Bearer {KEY}"]
    record = result.model_dump_json()
    assert KEY not in record
    assert canary not in record and HIDDEN in record
    assert json.loads(result.prompt)["version"] == "common-3.templater-3"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_costs_a_call_and_no_more(
    name: str, provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(FAULTS[name], GOOD)) as server:
        made = provider(server.url)
        result = made.answer(payload, context)
    assert result.template is not None
    assert result.calls == server.calls == 2
    assert result.notes[0].startswith("call 1: ")
    assert spent(made) == result.tokens
    lost = name in ("no completion", "not json", "hangs up")
    assert result.tokens >= server.billed_tokens if lost else result.tokens == server.billed_tokens


def test_a_refused_reply_goes_back_with_the_reason(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(FAULTS["unknown name"], GOOD)) as server:
        provider(server.url).answer(payload, context)
    assert "unknown name 'TILE'" in server.requests[1]["messages"][-1]["content"]
    assert [m["role"] for m in server.requests[1]["messages"]] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(("header", "pause"), [("2", 2.0), ("0", 0.0), ("nonsense", 0.5)])
def test_a_pause_is_the_one_the_server_asks_for(
    header: str, pause: float, provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(Turn(status=429, headers={"Retry-After": header}), GOOD)) as server:
        made = provider(server.url)
        made.answer(payload, context)
    assert made.paused == [pause]


def failing(provider: ModelProvider, payload: StepPayload, context: StepContext) -> StepResult:
    """The rules' answer, with the reason of the model's failure."""
    result = with_fallback(lambda: provider.answer(payload, context), "openai", payload, context)
    assert result.provider == "rules" and result.template is not None
    assert result.tokens == spent(provider)
    return result


@pytest.mark.parametrize(
    ("turn", "changes", "calls", "words"),
    [
        (Turn(status=500), {"openai_retries": 2}, 3, "HTTP 500"),
        (Turn(status=401, message=f"bad key {KEY}"), {}, 1, "HTTP 401: bad key [secret]"),
        (Turn(status=429, headers={"Retry-After": "3600"}), {}, 1, "asks to wait 3600 s"),
        (Turn("no"), {"openai_repairs": 1}, 2, "no reply was of use"),
    ],
    ids=["down", "key", "pause", "useless"],
)
def test_a_failure_falls_back_to_the_rules_and_says_so(
    turn: Turn,
    changes: dict[str, int],
    calls: int,
    words: str,
    provider: Make,
    payload: StepPayload,
    context: StepContext,
) -> None:
    with model_server(in_order(turn)) as server:
        result = failing(provider(server.url, **changes), payload, context)
    assert result.fallback.startswith("openai: ") and words in result.fallback
    assert result.calls == server.calls == calls
    assert result.tokens == server.billed_tokens
    assert KEY not in result.model_dump_json()


def test_a_dead_server_costs_nothing(provider: Make, payload: StepPayload, context: StepContext) -> None:
    with model_server(in_order(GOOD)) as server:
        pass
    result = failing(provider(server.url, openai_retries=1), payload, context)
    assert "cannot be reached" in result.fallback
    assert result.tokens == 0


def test_a_timeout_is_charged_at_its_worst(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    limit_s = stretched(0.3)
    slow = Turn(as_text(template()), delay_s=2 * limit_s)
    with model_server(in_order(slow, GOOD)) as server:
        made = provider(server.url, openai_timeout_s=limit_s)
        result = made.answer(payload, context)
    assert result.calls == 2
    assert f"no reply within {limit_s:g} s" in result.notes[0]
    assert server.billed_tokens == 300
    assert 300 < result.tokens == spent(made) <= 100_000


def test_a_server_that_keeps_the_line_open_is_late_too(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    limit_s = stretched(0.3)
    with model_server(in_order(Turn(as_text(template()), drip_s=10 * limit_s), GOOD)) as server:
        started = time.monotonic()
        result = provider(server.url, openai_timeout_s=limit_s).answer(payload, context)
        assert time.monotonic() - started < 8 * limit_s
    assert f"no reply within {limit_s:g} s" in result.notes[0]
    assert result.calls == server.calls == 2


def test_a_patient_server_is_heard(provider: Make, payload: StepPayload, context: StepContext) -> None:
    with model_server(in_order(Turn(as_text(template()), drip_s=0.3))) as server:
        assert provider(server.url).answer(payload, context).calls == 1


def test_no_step_outlasts_its_time(provider: Make, payload: StepPayload, context: StepContext) -> None:
    slow = Turn(as_text(template()), delay_s=0.4)
    started = time.monotonic()
    with model_server(in_order(slow)) as server:
        made = provider(server.url, seconds=0.5, openai_timeout_s=0.3, openai_retries=10)
        failing(made, payload, context)
        assert time.monotonic() - started < stretched(4)
    assert server.calls <= 2


def first_bound(provider: Make, payload: StepPayload, context: StepContext) -> int:
    """What the worst case of a call's prompt is."""
    with model_server(in_order(GOOD)) as server:
        result = failing(provider(server.url, tokens=1), payload, context)
        assert server.calls == 0, "a call was made that the budget does not cover"
    return int(result.fallback.split("may have ")[1].split()[0])


def test_no_call_is_made_that_the_budget_might_not_cover(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    bound = first_bound(provider, payload, context)

    def greedy(body: Body, number: int) -> Turn:
        """Uses all that it may and answers nothing."""
        return Turn("no", usage=(bound, body["max_tokens"]))

    for tokens in (bound + 255, bound + 256, 2 * bound + 2000, 10 * bound):
        with model_server(greedy) as server:
            made = provider(server.url, tokens=tokens, openai_repairs=8)
            result = failing(made, payload, context)
        assert server.billed_tokens == result.tokens <= tokens
        assert (server.calls > 0) is (tokens >= bound + 256)


def test_usd_are_a_budget_of_their_own(provider: Make, payload: StepPayload, context: StepContext) -> None:
    def greedy(body: Body, number: int) -> Turn:
        return Turn("no", usage=(2000, body["max_tokens"]))

    with model_server(greedy) as server:
        made = provider(server.url, usd=0.02, openai_repairs=10)
        result = failing(made, payload, context)
    assert server.calls >= 1
    assert "the budget does not cover a call" in result.fallback
    assert 0 < result.usd <= 0.02
    assert result.usd == pytest.approx(
        (2000 * server.calls + 2 * (server.billed_tokens - 2000 * server.calls)) / 1e6
    )


def test_a_model_without_a_price_is_not_called(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(GOOD)) as server:
        result = failing(provider(server.url, openai_prices="other=1/2"), payload, context)
    assert server.calls == 0
    assert "no price" in result.fallback


def test_a_server_that_does_not_count_is_counted_by_bytes(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(in_order(Turn(as_text(template()), usage=None))) as server:
        result = provider(server.url).answer(payload, context)
    assert result.tokens > len(asked(server.requests[0])) // 2
    assert "counted by bytes" in result.notes[0]


def without(*words: str) -> Callable[[Body, int], Turn]:
    """A server that refuses requests with these fields."""

    def script(body: Body, number: int) -> Turn:
        kind = body.get("response_format", {}).get("type", "text")
        for word in words:
            if word == kind or word in body:
                return Turn(status=400, message=f"{word} is not supported; use max_completion_tokens")
        return GOOD

    return script


@pytest.mark.parametrize(
    ("words", "kind"),
    [((), "json_schema"), (("json_schema",), "json_object"), (("json_schema", "json_object"), None)],
)
def test_a_server_without_structured_output_is_asked_for_less(
    words: tuple[str, ...], kind: str | None, provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(without(*words)) as server:
        result = provider(server.url).answer(payload, context)
    assert result.template is not None
    last = server.requests[-1]
    assert last.get("response_format", {}).get("type") == kind


def test_a_server_that_wants_the_newer_limit_gets_it(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    with model_server(without("max_tokens")) as server:
        provider(server.url).answer(payload, context)
    assert "max_completion_tokens" in server.requests[-1] and "max_tokens" not in server.requests[-1]
    assert server.requests[-1]["response_format"]["type"] == "json_schema"


def test_a_reply_with_the_canary_is_refused(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    def telling(body: Body, number: int) -> Turn:
        word = asked(body).split("Never repeat this word: ")[1].split()[0]
        return Turn(as_text(template(reasoning=f"I was told {word}"))) if number == 0 else GOOD

    with model_server(telling) as server:
        result = provider(server.url).answer(payload, context)
    assert server.calls == 2
    assert "must not be repeated" in result.notes[0]
    word = asked(server.requests[0]).split("Never repeat this word: ")[1].split()[0]
    assert word not in result.model_dump_json()


def test_rules_may_be_named_instead_of_source(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    turns = [Turn(as_text({"rules": ["row_split"]})), Turn(as_text({"rules": ["restrict"]}))]
    with model_server(in_order(*turns)) as server:
        result = provider(server.url).answer(payload, context)
    assert result.template is not None
    assert [a.rule for a in result.template.applied] == ["restrict"]
    assert "none of these rules applies" in result.notes[0]


def test_the_server_is_closed_to_what_the_job_denies(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    policy = {"rewrite": context.job.rewrite.model_copy(update={"deny": ("restrict",)})}
    denied = StepContext(job=context.job.model_copy(update=policy))
    with model_server(in_order(Turn(as_text({"rules": ["restrict"]})), GOOD)) as server:
        result = provider(server.url).answer(payload, denied)
    assert "'restrict' may not be used" in result.notes[0]


def test_a_model_for_one_role(provider: Make, context: StepContext) -> None:
    with model_server(in_order(Turn('{"plan": "larger blocks"}'))) as server:
        made = provider(server.url, openai_models="planner=p", openai_prices="p=0/0")
        result = made.answer(StepPayload(role="planner", round=2), context)
    assert server.requests[0]["model"] == "p"
    assert (result.plan, result.usd) == ("larger blocks", 0.0)


def test_without_a_server_there_is_no_answer(
    payload: StepPayload, context: StepContext, provider: Make
) -> None:
    with pytest.raises(CannotAnswer, match="no model"):
        provider("http://127.0.0.1:9/v1", openai_model="").answer(payload, context)


def test_a_storm_of_faults_stays_within_the_budget(
    provider: Make, payload: StepPayload, context: StepContext
) -> None:
    """Thirty steps, one purse, every fault there is in an order of chance: never more than the budget."""
    rng = random.Random(5)
    bad = [turn for name, turn in FAULTS.items() if "pause" not in name]
    slow = Turn(as_text(template()), delay_s=0.25)

    def storm(body: Body, number: int) -> Turn:
        turn = rng.choice([*bad, slow, GOOD])
        if turn.status != 200 or turn.usage is None:
            return turn
        return replace(turn, usage=(rng.randint(1, 4000), rng.randint(1, body["max_tokens"])))

    tokens, usd = 120_000, 0.2
    fallbacks = set()
    with model_server(storm) as server:
        made = provider(server.url, tokens=tokens, usd=usd, openai_timeout_s=0.2, openai_retries=2)
        for _ in range(30):
            result = with_fallback(lambda: made.answer(payload, context), "openai", payload, context)
            assert result.template is not None
            assert server.billed_tokens <= made.purse.booked.tokens <= tokens
            assert made.purse.booked.usd <= usd
            fallbacks.add(result.fallback.split(":")[1][:40] if result.fallback else "")
    assert server.calls > 10
    assert any("budget does not cover" in f for f in fallbacks), fallbacks
    assert "" in fallbacks, "no step of the storm brought an answer"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_does_not_take_the_kernel_elsewhere(
    provider: Make, payload: StepPayload, context: StepContext, status: int
) -> None:
    with model_server(lambda _body, _number: GOOD) as elsewhere:
        there = f"{elsewhere.url}/chat/completions"
        with model_server(lambda _body, _number: Turn(status=status, headers={"Location": there})) as server:
            with pytest.raises(CannotAnswer, match=f"HTTP {status}"):
                provider(server.url).answer(payload, context)
            assert server.calls == 1
        assert elsewhere.calls == 0
