"""Questions to a model, or to another answerer, about fields that a job file leaves open."""

import json
from collections.abc import Callable, Sequence

from agents.parsing import BadReply, parse_reply
from agents.providers.model import Conversation, Exchange, ModelProvider
from agents.providers.model_budget import SmallPurse
from agents.providers.model_transport import OpenAITransport, ReplyForm
from agents.providers.step_record import CannotAnswer
from agents.questions.page import answer_form
from agents.questions.prompting import Prompt, closed, opening, prompt_file
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.job_files.filling_contracts import FillQuestion, FillReply
from warpsmith.settings import Settings

ROLE = "filler"
MOST_TOKENS = 1_000_000
"""Limit on the tokens of one question with its repairs."""
MOST_USD = 1.0
"""Limit on their price in USD."""
Check = Callable[[FillReply], Sequence[str]]
"""Problems of a reply, addressed to its author; none if it is right."""


def question_file(question: FillQuestion) -> str:
    """The question as JSON for whoever answers, with instructions and the schema of the reply."""
    asked = {
        "version": _version(),
        "instructions": _instructions("in the field `question`"),
        "question": json.loads(_data(question)),
        "wanted": FillReply.model_json_schema(),
    }
    return json.dumps(asked, indent=1, ensure_ascii=False) + "\n"


def reply_of(text: str) -> FillReply:
    """The reply in a text; prose around it is ignored.

    Raises:
        InvalidInput: there is none; the message is addressed to its author.
    """
    try:
        return parse_reply(text, FillReply)
    except BadReply as exc:
        raise InvalidInput("answer", str(exc)) from exc


def ask_model(question: FillQuestion, settings: Settings, check: Check) -> tuple[FillReply, str]:
    """The first reply of the operator's model that is right, and the name of the model.

    Raises:
        Unavailable: no model is configured, or none of its replies is right; the message says why.
    """
    if settings.openai_base_url is None:
        raise Unavailable(
            "no model is configured: set WARPSMITH_OPENAI_BASE_URL and WARPSMITH_OPENAI_MODEL, or write the "
            "question to a file with --question"
        )

    def accepted(text: str) -> FillReply:
        reply = parse_reply(text, FillReply)
        problems = check(reply)
        if problems:
            raise BadReply("; ".join(problems))
        return reply

    exchange = Exchange(
        role=ROLE,
        first=lambda canary, _turns: _prompt(question, canary),
        schema=FillReply.model_json_schema(),
        accept=accepted,
        about=question.job_file,
        form=ReplyForm.JSON,
    )
    key = settings.openai_api_key
    transport = OpenAITransport(settings.openai_base_url, key.get_secret_value() if key else "")
    provider = ModelProvider(settings, transport, SmallPurse(MOST_TOKENS, MOST_USD))
    try:
        reply, record = Conversation(provider, exchange).run()
    except CannotAnswer as exc:
        raise Unavailable(f"the model gave no answer of use: {exc.reason}") from exc
    finally:
        transport.close()
    return reply, record.model


def _prompt(question: FillQuestion, canary: str) -> Prompt:
    messages = opening(_instructions, _data(question), answer_form(FillReply.model_json_schema()))
    return Prompt(closed(messages, canary), _version())


def _data(question: FillQuestion) -> str:
    left_out = {"earlier", "problems"} if question.earlier is None else set()
    return question.model_dump_json(indent=1, exclude=left_out, exclude_unset=True)


def _instructions(where: str) -> str:
    return prompt_file(ROLE)[1].replace("{where}", where)


def _version() -> str:
    return f"{ROLE}-{prompt_file(ROLE)[0]}"
