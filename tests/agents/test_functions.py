"""A model with functions: what it is offered, what it called, and what it is told next, over real HTTP."""

import json
from dataclasses import replace

import pytest

from agents.context import StepContext
from agents.providers.step_record import CannotAnswer
from agents.questions.functions import FunctionCall, as_reply, functions, of_turn
from agents.replies.reply_acceptance import accept
from tests.agents.conftest import Make
from tests.agents.model_server import Body, in_order, model_server
from tests.agents.model_server import Turn as Reply
from tests.agents.replies import as_text, template
from warpsmith.tuning.step_facts import AgentTurn
from warpsmith.tuning.tasks import StepPayload, StepResult, ToolAnswer

PAYLOAD = StepPayload(role="templater", round=1, tools=5)
COMPILE = ("compile", json.dumps({"template": template()}))
TIME = ("time", json.dumps({"draft": "d0"}))
SAID = ["compiles; 12 registers", "2.00x of your kernel's speed"]


def later(context: StepContext, result: StepResult) -> tuple[StepPayload, StepContext]:
    """The next turn, after tools that said `SAID`."""
    answers = [ToolAnswer(text=text) for text in SAID]
    turn = AgentTurn(result.reply, result.tool_calls, answers)
    payload = PAYLOAD.model_copy(update={"turn": 1, "first_turn": "t", "tools": 5 - len(result.tool_calls)})
    return payload, replace(context, turns=(turn,))


def test_functions_are_called_and_answered_by_their_ids(provider: Make, context: StepContext) -> None:
    with model_server(in_order(Reply(calls=[COMPILE, TIME]))) as server:
        result = provider(server.url).answer(PAYLOAD, context)
        (first,) = server.requests
    assert [f["function"]["name"] for f in first["tools"]] == [
        *("compile", "check", "time", "profile", "history", "answer")
    ]
    assert "response_format" not in first
    assert [(c.tool, c.draft, c.answer) for c in result.tool_calls] == [
        ("compile", "d0", None),
        ("time", "d0", None),
    ]
    assert result.template is None

    payload, known = later(context, result)
    with model_server(in_order(Reply(calls=[("answer", '{"draft": "d0"}')]))) as server:
        answer = provider(server.url).answer(payload, known)
        (second,) = server.requests
    assert answer.template is not None and not answer.tool_calls
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    made, *told = second["messages"][2:]
    assert [c["id"] for c in made["tool_calls"]] == [m["tool_call_id"] for m in told]
    assert [json.loads(c["function"]["arguments"]) for c in made["tool_calls"]] == [
        json.loads(COMPILE[1]),
        json.loads(TIME[1]),
    ]
    assert told[0]["content"].splitlines()[1:-1] == [f"d0: {SAID[0]}"]
    mark = told[1]["content"].split()[2]
    data, rest = told[1]["content"].split(f"\nEND DATA {mark}\n\n")
    assert data == f"BEGIN DATA {mark}\nd0: {SAID[1]}"
    assert rest.startswith("Tool calls left: 3, in ")
    assert first["prompt_cache_key"] == second["prompt_cache_key"]


def test_a_conversation_begins_alike_in_every_turn(provider: Make, context: StepContext) -> None:
    """So that a server that keeps prompts reads only what is new."""
    with model_server(in_order(Reply(calls=[COMPILE, TIME]))) as server:
        made = provider(server.url)
        payload, known = later(context, made.answer(PAYLOAD, context))
        made.answer(payload, known)
    first, second = (request["messages"][:2] for request in server.requests)
    assert first[0] == second[0]
    assert first[1]["content"].split("\n\nNever repeat")[0] == second[1]["content"]


def test_without_calls_left_no_function_is_offered(provider: Make, context: StepContext) -> None:
    with model_server(in_order(Reply(calls=[COMPILE, TIME]))) as server:
        result = provider(server.url).answer(PAYLOAD, context)
    payload, known = later(context, result)
    payload = payload.model_copy(update={"tools": 0})
    with model_server(in_order(Reply(as_text({"draft": "d0"})))) as server:
        answer = provider(server.url).answer(payload, known)
        (request,) = server.requests
    assert answer.template is not None
    assert "tools" not in request
    assert request["response_format"]["type"] == "json_schema"
    assert "Tool calls left: 0, in 0 seconds." in request["messages"][-1]["content"]


def test_a_server_without_functions_is_asked_in_text(provider: Make, context: StepContext) -> None:
    def script(body: Body, number: int) -> Reply:
        if "tools" in body:
            return Reply(status=400, message="tools are not supported")
        return Reply(as_text({"calls": [{"tool": "compile", "template": template()}]}))

    with model_server(script) as server:
        result = provider(server.url).answer(PAYLOAD, context)
    assert [(c.tool, c.draft) for c in result.tool_calls] == [("compile", "d0")]
    last = server.requests[-1]
    assert last["response_format"]["type"] == "json_object"
    assert "CallsReply" in last["messages"][1]["content"]


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([("run_shell", "{}")], "there is no function 'run_shell'; there are: answer, check, compile"),
        ([("time", "now")], "holds no JSON object"),
        ([("time", '{"draft": "d0", "shell": "x"}')], "calls.0.shell: no such field"),
        ([("history", "{}")] * 6, "5 tool calls are left"),
        ([("", "")], "there is no function ''"),
    ],
)
def test_a_call_that_makes_no_sense_goes_back_with_the_reason(
    calls: list[tuple[str, str]], words: str, provider: Make, context: StepContext
) -> None:
    with model_server(in_order(Reply(calls=calls), Reply(calls=[COMPILE]))) as server:
        result = provider(server.url).answer(PAYLOAD, context)
    assert len(result.tool_calls) == 1
    assert words in result.notes[0]
    assert words in server.requests[1]["messages"][-1]["content"]


def test_nonsense_without_end_is_given_up(provider: Make, context: StepContext) -> None:
    with model_server(in_order(Reply(calls=[("run_shell", "{}")]))) as server, pytest.raises(CannotAnswer):
        provider(server.url).answer(PAYLOAD, context)


def test_an_answer_beside_calls_waits_for_what_they_say(context: StepContext) -> None:
    both = [*(call_of(*c) for c in (COMPILE, TIME)), call_of("answer", as_text(template()))]
    assert [c["tool"] for c in json.loads(as_reply(both))["calls"]] == ["compile", "time"]
    assert json.loads(as_reply(both[2:])) == template()


def call_of(name: str, arguments: str) -> FunctionCall:
    """A call as a server reports it."""
    return FunctionCall("x", name, arguments)


def test_a_turn_that_was_answered_from_outside_can_be_continued_by_a_model(context: StepContext) -> None:
    reply = as_text({"calls": [{"tool": "history"}]})
    made = accept(reply, "external", PAYLOAD, context).tool_calls
    calls, said = of_turn(AgentTurn(reply, made, [made[0].answer or ToolAnswer(text="")]), 0)
    assert [(c.name, c.arguments) for c in calls] == [("history", "{}")]
    assert said == ("nothing was tried in this job yet",)


def test_what_a_function_takes_is_what_a_call_may_say() -> None:
    names = {f["function"]["name"]: set(f["function"]["parameters"]["properties"]) for f in functions()}
    assert names["compile"] == {"template", "draft", "configurations"}
    assert names["history"] == set()
    assert "warm_starts" in names["answer"]


def test_kept_tokens_have_their_own_prices(provider: Make, context: StepContext) -> None:
    reply = Reply(as_text(template()), usage=(1000, 50), kept=(600, 300))
    with model_server(in_order(reply)) as server:
        made = provider(server.url, openai_prices="m=1/2/0.1/1.25")
        result = made.answer(StepPayload(role="templater", round=1), context)
    assert (result.tokens, result.cached_tokens, result.written_tokens) == (1050, 600, 300)
    assert result.usd == pytest.approx((100 * 1 + 600 * 0.1 + 300 * 1.25 + 50 * 2) / 1e6)
    assert made.purse.booked.usd == pytest.approx(result.usd)


def test_the_dearest_rate_is_set_aside(provider: Make, context: StepContext) -> None:
    """A call whose prompt may all be written must fit at that price."""
    with model_server(in_order(Reply(as_text(template())))) as server:
        dear = provider(server.url, usd=0.01, openai_prices="m=0/0/0/1000")
        with pytest.raises(CannotAnswer, match="the budget does not cover a call"):
            dear.answer(StepPayload(role="templater", round=1), context)
    assert server.calls == 0
