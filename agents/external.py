"""The provider `external`: the question waits in the database until somebody answers it over the API."""

import json
from dataclasses import dataclass
from typing import Any, Protocol

from agents.context import StepContext
from agents.contracts import StepInput, reply_schema
from agents.parsing import BadReply
from agents.prompting import instructions, version
from agents.reply_acceptance import accept
from agents.role_inputs import question
from agents.step_record import NoAnswer, Record
from warpsmith.tuning.tasks import StepPayload, StepResult

DATA = "in the field `question` of the request"
"""Where an external answerer finds the data."""


@dataclass(frozen=True)
class Letter:
    """A question that was asked, and what became of it."""

    open: bool
    """It may still be answered."""
    reply: str | None
    by: str
    """Who answered, in their own words."""
    waited_s: float


class Mailbox(Protocol):
    """The request of one step."""

    def look(self) -> Letter | None:
        """The question as it stands; None before it was asked. One past its deadline is closed."""
        ...


@dataclass(frozen=True)
class Question:
    """What is to be asked."""

    instructions: str
    question: dict[str, Any]
    wanted: dict[str, Any]
    """JSON schema of the answer."""
    version: str


class NotYet(Exception):
    """The answer has still to come; the step is to wait."""

    def __init__(self, asked: Question) -> None:
        super().__init__("the step waits for an answer")
        self.asked = asked


class ExternalProvider:
    """Reads answers from a mailbox."""

    name = "external"

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """See `agents.steps.Provider`.

        Raises:
            NotYet: nobody has answered so far.
            NoAnswer: nobody has answered in time.
        """
        letter = self._mailbox.look()
        asked = ask(payload, question(payload, context))
        if letter is None or letter.open:
            raise NotYet(asked)
        shown = json.dumps({"version": asked.version, "question": asked.question}, ensure_ascii=False)
        record = Record(model=letter.by, prompt=shown, reply=letter.reply or "")
        if letter.reply is None:
            raise NoAnswer(f"nobody answered within {letter.waited_s:.0f} s", record)
        try:
            result = accept(letter.reply, self.name, payload, context)
        except BadReply as exc:
            # It was good on arrival; what the operator permits has changed since.
            raise NoAnswer(f"the reply is of no use any more: {exc}", record) from exc
        return record.on(result).model_copy(update={"latency_s": letter.waited_s})


def ask(payload: StepPayload, asked: StepInput) -> Question:
    """The question of a step as a request shows it."""
    return Question(
        instructions=instructions(payload.role, asked, DATA),
        question=asked.model_dump(mode="json"),
        wanted=reply_schema(payload.role),
        version=version(payload.role, asked),
    )
