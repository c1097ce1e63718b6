"""Tools that an agent wants used: what is taken, what is answered at once, and what it is told."""

from dataclasses import replace
from typing import Any

import pytest

from agents.context import StepContext
from agents.parsing import BadReply
from agents.providers.external import ask
from agents.questions.prompting import instructions, version
from agents.questions.role_inputs import question
from agents.replies.reply_acceptance import accept
from tests.agents.replies import BROKEN_SOURCE, as_text, template
from warpsmith.tuning.step_facts import AgentTurn, Tried
from warpsmith.tuning.tasks import StepPayload, StepResult, ToolAnswer, ToolCall

PAYLOAD = StepPayload(role="templater", round=1, tools=3)
FAST = [{"name": n, "value": v} for n, v in {"CHUNK": 4, "BLOCK": 128, "PER": 1}.items()]


def calls(*texts: dict[str, Any]) -> str:
    """A reply that wants tools used."""
    return as_text({"calls": list(texts)})


def accepted(context: StepContext, *texts: dict[str, Any], payload: StepPayload = PAYLOAD) -> StepResult:
    """The result of a turn."""
    return accept(calls(*texts), "x", payload, context)


def after(context: StepContext, *made: ToolCall) -> StepContext:
    """The context of the turn after these calls."""
    said = [call.answer or ToolAnswer(text=f"what {call.tool} said") for call in made]
    return replace(context, turns=(AgentTurn("", made, said),))


def test_a_call_has_its_template_and_configurations(context: StepContext) -> None:
    found = accepted(
        context,
        {"tool": "check", "template": template()},
        {"tool": "time", "draft": "d0", "configurations": [FAST]},
        {"tool": "compile", "template": template(BROKEN_SOURCE)},
    )
    assert found.template is None
    assert [(c.id, c.tool, c.draft, c.answer) for c in found.tool_calls] == [
        ("0.0", "check", "d0", None),
        ("0.1", "time", "d0", None),
        ("0.2", "compile", "d1", None),
    ]
    first, second, third = (c.template for c in found.tool_calls)
    assert first == second != third
    assert found.tool_calls[1].configurations == ({"CHUNK": 4, "BLOCK": 128, "PER": 1},)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ({"tool": "time"}, "exactly one of draft and template"),
        ({"tool": "time", "draft": "d0", "template": template()}, "exactly one of draft and template"),
        ({"tool": "time", "draft": "d7"}, "there is no 'd7'; known: none"),
        ({"tool": "check", "template": {"source": "int x;"}}, "the entry function 'scale' is gone"),
        ({"tool": "check", "template": {"rules": ["nonsense"]}}, "'nonsense' may not be used"),
        ({"tool": "check", "template": {}}, "exactly one of rules, source and draft"),
        (
            {"tool": "time", "template": template(), "configurations": [FAST[:1]]},
            "configurations.0: must set exactly CHUNK, BLOCK, PER",
        ),
    ],
)
def test_a_call_that_cannot_be_made_says_why(text: dict[str, Any], words: str, context: StepContext) -> None:
    (call,) = accepted(context, text).tool_calls
    assert call.answer is not None
    assert not call.answer.ok
    assert words in call.answer.text
    assert call.template is None


@pytest.mark.parametrize(
    ("left", "words"), [(0, "no tool call is left; answer with a template"), (1, "1 tool calls are left")]
)
def test_no_more_calls_than_are_left(left: int, words: str, context: StepContext) -> None:
    payload = PAYLOAD.model_copy(update={"tools": left})
    with pytest.raises(BadReply, match=words):
        accepted(context, {"tool": "history"}, {"tool": "history"}, payload=payload)


@pytest.mark.parametrize("role", ["planner", "profiler", "tester", "tuner"])
def test_other_roles_have_no_tools(role: Any, context: StepContext) -> None:
    made = accept(as_text(template()), "x", StepPayload(role="templater", round=1), context).template
    payload = StepPayload(role=role, round=2, tools=3, draft=made)
    with pytest.raises(BadReply, match="calls: no such field"):
        accepted(context, {"tool": "history"}, payload=payload)


def test_an_answer_may_name_a_draft(context: StepContext) -> None:
    made = accepted(context, {"tool": "check", "template": template()}).tool_calls
    known = after(context, *made)
    found = accept(as_text({"draft": "d0", "warm_starts": [FAST]}), "x", PAYLOAD, known)
    assert found.template is not None and made[0].template is not None
    assert found.template.kernel == made[0].template.kernel
    assert found.template.warm_starts == ({"CHUNK": 4, "BLOCK": 128, "PER": 1},)
    with pytest.raises(BadReply, match="there is no 'd1'; known: d0"):
        accept(as_text({"draft": "d1"}), "x", PAYLOAD, known)
    with pytest.raises(BadReply, match="exactly one of rules, source and draft"):
        accept(as_text(template() | {"draft": "d0"}), "x", PAYLOAD, known)


def test_the_next_turn_is_told_what_was_said(context: StepContext) -> None:
    first = accepted(context, {"tool": "check", "template": template()}, {"tool": "history"}).tool_calls
    later = PAYLOAD.model_copy(update={"turn": 1, "first_turn": "t", "tools": 1})
    asked = ask(later, question(later, after(context, *first)))
    assert asked.question["tools"] == 1
    assert "CHUNK" in asked.question["drafts"]["d0"]["source"]
    assert [(c["tool"], c["draft"], c["answer"]) for c in asked.question["calls"]] == [
        ("check", "d0", "what check said"),
        ("history", "", "nothing was tried in this job yet"),
    ]
    assert set(asked.wanted["$defs"]) >= {"CallsReply", "TemplateReply"}
    assert "before you answer you may use tools" in asked.instructions.lower()


def test_without_tools_the_question_is_as_ever(context: StepContext) -> None:
    plain = StepPayload(role="templater", round=1)
    asked = question(plain, context)
    assert version("templater", asked) + ".tools-3" == version("templater", question(PAYLOAD, context))
    assert "tools" not in instructions("templater", asked, "here")
    assert "CallsReply" not in ask(plain, asked).wanted.get("$defs", {})


def test_the_history_says_what_gained_and_what_failed(context: StepContext) -> None:
    made = accept(as_text(template()), "x", PAYLOAD, context).template
    assert made is not None
    tried = (
        Tried(0, 1, made, 9, 0.5, {"CHUNK": 4, "BLOCK": 128, "PER": 1}, ""),
        Tried(1, 2, made, 1, None, None, "correctness: y is wrong"),
        Tried(2, 2, made, 3, None, None, "", "wide loads"),
    )
    (call,) = accepted(replace(context, tried=tried), {"tool": "history"}).tool_calls
    assert call.answer is not None
    assert call.answer.text.splitlines() == [
        "candidate 0, round 1 (more work for a thread): 2.00x of your kernel's speed after 9 trials, "
        "with CHUNK=4, BLOCK=128, PER=1",
        "candidate 1, round 2 (more work for a thread): rejected: correctness: y is wrong",
        "candidate 2, round 2, idea 'wide loads' (more work for a thread): 3 trials, none measured",
    ]
