"""The provider `external`: the question waits in the database until it is answered over the API."""

import json
from dataclasses import dataclass
from typing import Any, Protocol

from agents.context import StepContext
from agents.contracts import StepInput, reply_schema
from agents.parsing import BadReply
from agents.providers.step_record import CannotAnswer, Record
from agents.questions.prompting import DATA, instructions, version
from agents.questions.role_inputs import question
from agents.replies.reply_acceptance import accept
from warpsmith.tuning.tasks import StepPayload, StepResult


@dataclass(frozen=True)
class Letter:
    """A question that was asked, and its state."""

    open: bool
    """True while it may be answered."""
    reply: str | None
    by: str
    """Name of the answerer, in their own words."""
    waited_s: float


class Mailbox(Protocol):
    """Access to the request of one step."""

    def look(self) -> Letter | None:
        """The question in its present state; None if it was not asked yet. A question past its deadline is
        closed."""
        ...


@dataclass(frozen=True)
class PostedQuestion:
    """A question to be asked."""

    instructions: str
    question: dict[str, Any]
    wanted: dict[str, Any]
    """JSON schema of the answer."""
    version: str


class NotYet(Exception):
    """The answer is not there yet; the step has to wait."""

    def __init__(self, asked: PostedQuestion) -> None:
        super().__init__("the step waits for an answer")
        self.asked = asked


class ExternalProvider:
    """Reads answers from a mailbox."""

    name = "external"

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """See `agents.providers.steps.Provider`.

        Raises:
            NotYet: there is no answer yet.
            CannotAnswer: the deadline passed without an answer.
        """
        letter = self._mailbox.look()
        asked = ask(payload, question(payload, context))
        if letter is None or letter.open:
            raise NotYet(asked)
        shown = json.dumps({"version": asked.version, "question": asked.question}, ensure_ascii=False)
        record = Record(model=letter.by, prompt=shown, reply=letter.reply or "")
        if letter.reply is None:
            raise CannotAnswer(f"no answer within {letter.waited_s:.0f} s", record)
        try:
            result = accept(letter.reply, self.name, payload, context)
        except BadReply as exc:
            # The reply was valid on arrival; the operator's permissions have changed since.
            raise CannotAnswer(f"the reply is no longer valid: {exc}", record) from exc
        return record.on(result).model_copy(update={"latency_s": letter.waited_s})


def ask(payload: StepPayload, asked: StepInput) -> PostedQuestion:
    """The question of a step, in the form of a request."""
    return PostedQuestion(
        instructions=instructions(payload.role, asked, DATA),
        question=asked.model_dump(mode="json"),
        wanted=reply_schema(payload.role, payload.tools, payload.ideas),
        version=version(payload.role, asked),
    )
