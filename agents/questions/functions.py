"""Tools as functions of a chat model: schemas, its calls as a reply, earlier turns as messages. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.contracts import CallsReply, CallText, TemplateReply
from agents.parsing import BadReply, find_object
from warpsmith.tuning.step_facts import AgentTurn
from warpsmith.tuning.tasks import ToolName

ANSWER = "answer"
"""The function by which a model gives its answer."""
_PURPOSE: dict[ToolName, str] = {
    "compile": "Compile a new template, which becomes the next draft (d0, d1, ...), or an earlier draft.",
    "check": "Say on which inputs and shapes a draft is wrong, by how much, and the first places.",
    "time": "Time configurations of a draft beside the user's kernel.",
    "profile": "Say what bounds a configuration of a draft, with the figures behind it.",
    "history": "Say what was tried in this job and what it gave.",
}
_FIELDS: dict[ToolName, tuple[str, ...]] = {
    "compile": ("template", "draft", "configurations"),
    "check": ("draft", "configurations"),
    "time": ("draft", "configurations"),
    "profile": ("draft", "configurations"),
    "history": (),
}


@dataclass(frozen=True)
class FunctionCall:
    """A call as a model made it."""

    id: str
    name: str
    arguments: str
    """JSON, if the model kept to it."""


def functions() -> list[dict[str, Any]]:
    """The tools and the answer, as `tools` of a chat completion."""
    schema = CallText.model_json_schema()
    made = [_function(name, _PURPOSE[name], _part(schema, _FIELDS[name])) for name in _PURPOSE]
    last = "Answer with a template: a draft by its name, or a new one."
    return [*made, _function(ANSWER, last, TemplateReply.model_json_schema())]


def as_reply(calls: Sequence[FunctionCall]) -> str:
    """The calls of one message as the text of a reply. An answer beside calls of tools is left out: it was
    given before they said anything.

    Raises:
        BadReply: a function is not known, or its arguments are no object.
    """
    known = {*_PURPOSE, ANSWER}
    made = []
    for call in calls:
        if call.name not in known:
            raise BadReply(f"there is no function {call.name[:80]!r}; there are: {', '.join(sorted(known))}")
        arguments = find_object(call.arguments or "{}")
        if call.name != ANSWER:
            made.append({**arguments, "tool": call.name})
        elif len(calls) == 1:
            return json.dumps(arguments, ensure_ascii=False)
    return json.dumps({"calls": made}, ensure_ascii=False)


def of_turn(turn: AgentTurn, number: int) -> tuple[tuple[FunctionCall, ...], tuple[str, ...]]:
    """The calls of an earlier turn, and what they brought, in the same order."""
    made = find_object(turn.reply, CallsReply)["calls"]
    calls, said = [], []
    for place, (raw, call, answer) in enumerate(zip(made, turn.calls, turn.answers, strict=True)):
        arguments = {key: value for key, value in raw.items() if key != "tool"}
        text = json.dumps(arguments, ensure_ascii=False)
        calls.append(FunctionCall(f"call_{number}_{place}", call.tool, text))
        name = f"{call.draft}: " if call.draft else ""
        took = f"\n({answer.seconds:.1f} s)" if answer.seconds else ""
        said.append(f"{name}{answer.text if answer.ok else f'FAILED: {answer.text}'}{took}")
    return tuple(calls), tuple(said)


def _function(name: str, purpose: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": purpose, "parameters": parameters}}


def _part(schema: dict[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """The schema of an object with some of its fields only."""
    part: dict[str, Any] = {"type": "object", "properties": {n: schema["properties"][n] for n in fields}}
    refers = "#/$defs/" in json.dumps(part)
    return part | ({"$defs": schema["$defs"]} if refers else {}) | {"additionalProperties": False}
