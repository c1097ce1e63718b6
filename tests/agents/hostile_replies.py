"""Replies and calls that are malformed or oversized. Each says what comes of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.agents.replies import as_text, template
from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES

HUGE = "9" * 4000
DEEP = 50_000
LONE = "\ud800"


@dataclass(frozen=True)
class HostileReply:
    """What somebody sends in place of an answer."""

    what: str
    happened: str
    told: str
    """A part of what its author is told."""
    text: str = ""
    """The reply of a model; empty: it calls functions."""
    calls: Sequence[tuple[str, str]] = ()
    """The functions, with their arguments."""
    body: str | None = None
    """The same as the JSON that somebody outside posts; None: it cannot be posted."""
    status: int = 422
    """Of that post."""
    taken: bool = False
    """Whether the turn is taken, and the call alone answered with what is wrong."""


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    """One call, by a model and from outside."""
    return {
        "calls": [(tool, json.dumps(arguments))],
        "body": json.dumps({"answer": {"calls": [{"tool": tool} | arguments]}}),
    }


def _configured(value: Any) -> list[list[dict[str, Any]]]:
    """One configuration with this value of a parameter."""
    chosen = {"CHUNK": value, "BLOCK": 128, "PER": 1}
    return [[{"name": name, "value": value} for name, value in chosen.items()]]


REPLIES = [
    HostileReply(
        what="a reply of 2 MB",
        happened="Refused by its length; 2,000 characters of it are kept. The API reads no body so large.",
        told="the reply has 2000000 characters; at most 1048576",
        text="x" * 2_000_000,
        body=json.dumps({"answer": {"source": "x" * 2_000_000}}),
        status=413,
    ),
    HostileReply(
        what="a call of 2 MB",
        happened="Refused like a reply.",
        told="at most 1048576",
        calls=[("compile", json.dumps({"template": template("x" * 2_000_000)}))],
    ),
    HostileReply(
        what="10,000 calls",
        happened="Refused before one is made.",
        told="calls: Tuple should have at most 8 items",
        calls=[("history", "{}")] * 10_000,
        body=json.dumps({"answer": {"calls": [{"tool": "history"}] * 10_000}}),
    ),
    HostileReply(
        what="nesting without end",
        happened="Refused; nothing recurses into it.",
        told="nested",
        calls=[("compile", '{"template": ' * DEEP + "{}" + "}" * DEEP)],
        body='{"answer": ' + '{"template": ' * 80 + "{}" + "}" * 80 + "}",
    ),
    HostileReply(
        what="half a character and a NUL, as they are",
        happened="The character becomes its escape, which is refused; NULs are left out.",
        told="not valid Unicode",
        text='{"source": "' + LONE + '\0"}',
    ),
    HostileReply(
        what="half a character in a function's name",
        happened="The name is quoted with its escape.",
        told="there is no function",
        calls=[(LONE + "compile\0", "{}")],
    ),
    HostileReply(
        what="half a character, escaped",
        happened="Refused with its reason.",
        told="not valid Unicode",
        **_call("compile", draft=LONE),
    ),
    HostileReply(
        what="a NUL, escaped",
        happened="Refused with its place.",
        told="NUL",
        **_call("compile", draft="\0"),
    ),
    HostileReply(
        what="a source one character too long",
        happened="The turn is refused with the field.",
        told=f"calls.0.template.source: String should have at most {MAX_SOURCE_BYTES} characters",
        **_call("compile", template=template("x" * (MAX_SOURCE_BYTES + 1))),
    ),
    HostileReply(
        what="a source too long in bytes",
        happened="The call is answered with why it was not done.",
        told="not done: source: ",
        taken=True,
        **_call("compile", template=template("\u20ac" * (MAX_SOURCE_BYTES // 2))),
    ),
    HostileReply(
        what="a configuration that is not in the space",
        happened="The call is answered with why it was not done.",
        told="configurations.0: 3 is no value of CHUNK",
        taken=True,
        **_call("time", template=template(), configurations=_configured(3)),
    ),
    HostileReply(
        what="an integer of 4,000 digits",
        happened="The same; the answer is shortened.",
        told="configurations.0: 9999",
        taken=True,
        **_call("time", template=template(), configurations=_configured(int(HUGE))),
    ),
    HostileReply(
        what="an integer of 40,000 digits",
        happened="Refused: no such number is read.",
        told="a number too long",
        calls=[("time", '{"draft": ' + HUGE * 10 + "}")],
        body='{"answer": {"calls": [{"tool": "time", "draft": ' + HUGE * 10 + "}]}}",
        status=400,
    ),
    HostileReply(
        what="a value of half a megabyte",
        happened="The answer says that it is no value, and is shortened.",
        told="configurations.0: 'zzz",
        taken=True,
        **_call("time", template=template(), configurations=_configured("z" * 500_000)),
    ),
    HostileReply(
        what="a draft named like a file",
        happened="Drafts are looked up by name in the conversation alone.",
        told="draft: there is no '../../etc'; known: none",
        taken=True,
        **_call("check", draft="../../etc"),
    ),
    HostileReply(
        what="a field twice",
        happened="The last one counts, as in all JSON.",
        told="there is no 'd9'",
        taken=True,
        calls=[("check", '{"draft": "d0", "draft": "d9"}')],
        body='{"answer": {"calls": [{"tool": "check", "draft": "d0", "draft": "d9"}]}}',
    ),
    HostileReply(
        what="arguments that are no object",
        happened="Refused: a function takes an object.",
        told="holds no JSON object",
        calls=[("check", '["d0"]')],
        body='{"answer": ["d0"]}',
    ),
    HostileReply(
        what="a function that nobody offered",
        happened="Refused; its name is quoted up to 80 characters.",
        told="there is no function 'run_shellrun_shell",
        calls=[("run_shell" * 10_000, "{}")],
    ),
    HostileReply(
        what="a tool that nobody offered",
        happened="Refused with the field.",
        told="calls.0.tool",
        text=as_text({"calls": [{"tool": "run_shell"}]}),
        body=json.dumps({"answer": {"calls": [{"tool": "run_shell"}]}}),
    ),
    HostileReply(
        what="an answer and calls in one",
        happened="Refused: one or the other.",
        told="source: no such field",
        text=as_text(template() | {"calls": [{"tool": "history"}]}),
        body=json.dumps({"answer": template() | {"calls": [{"tool": "history"}]}}),
    ),
]
