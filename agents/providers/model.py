"""The provider `openai`: asks a model within the job's budget, and checks everything that it replies."""

import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agents.context import StepContext
from agents.contracts import strict_schema
from agents.parsing import MAX_REPLY_CHARACTERS, BadReply, too_long
from agents.providers.model_budget import Cost, Price, Purse, prompt_bound
from agents.providers.model_transport import CallFailed, Completion, ModelCall, ModelTransport, ReplyForm
from agents.providers.step_record import CannotAnswer, Record
from agents.questions.functions import as_reply, functions
from agents.questions.prompting import HIDDEN, Message, Prompt, prompt
from agents.questions.role_inputs import question
from agents.replies.reply_acceptance import accept
from warpsmith.settings import Settings
from warpsmith.tuning.tasks import StepPayload, StepResult

MIN_REPLY_TOKENS = 256
"""Reply tokens below which a call is not worth its prompt."""
MAX_WAIT_S = 30.0
"""Longest pause in seconds that a server may ask for; beyond it the step gives up."""
FIRST_PAUSE_S = 0.5
Result = TypeVar("Result")
SHOWN_CHARACTERS = 2000
"""Characters of a reply that is too long which are kept and shown to its author again."""


@dataclass
class ModelProvider:
    """Asks a model for every role.

    Args:
        purse: budget of the job; a call that might exceed it is not made.
        seconds: time limit of a step in seconds.
        alive: returns False once the step has passed to another worker, or its job has ended.
    """

    settings: Settings
    transport: ModelTransport
    purse: Purse
    seconds: float = 600.0
    alive: Callable[[], bool] = lambda: True
    sleep: Callable[[float], None] = time.sleep
    name: str = "openai"

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """See `agents.providers.steps.Provider`.

        Raises:
            CannotAnswer: the budget does not allow a call, the server fails, or its replies cannot be used.
        """
        asked = question(payload, context)

        def first(canary: str, with_turns: bool) -> Prompt:
            return prompt(payload.role, asked, canary, context.turns if with_turns else None)

        exchange = Exchange(
            role=payload.role,
            first=first,
            schema=strict_schema(payload.role, payload.ideas),
            accept=lambda text: accept(text, self.name, payload, context),
            about=context.job.kernel.text,
            functions=functions() if payload.tools else [],
            has_turns=bool(payload.tools or context.turns),
        )
        result, record = Conversation(self, exchange).run()
        return record.on(result)


@dataclass(frozen=True)
class Exchange(Generic[Result]):
    """Question to a model, and the handling of its reply."""

    role: str
    first: Callable[[str, bool], Prompt]
    """The question, given a canary and whether the server knows functions."""
    schema: dict[str, Any]
    accept: Callable[[str], Result]
    """Result of a reply; raises `BadReply`."""
    about: str
    """Text that all questions with the same beginning share."""
    form: ReplyForm = ReplyForm.SCHEMA
    """The best form that the schema allows."""
    functions: Sequence[dict[str, Any]] = ()
    has_turns: bool = False
    """True if functions or earlier turns are a part of the question."""


class Conversation(Generic[Result]):
    """Asks a model until its reply is of use."""

    def __init__(self, provider: ModelProvider, exchange: Exchange[Result]) -> None:
        self._p = provider
        self._exchange = exchange
        self._ends = time.monotonic() + provider.seconds
        self._form, self._newer = exchange.form, False
        self._functions = exchange.functions
        self._with_turns = exchange.has_turns
        """Whether the server knows functions, as far as is known, and there is need of them."""
        self._cache_key = f"warpsmith-{hashlib.sha256(exchange.about.encode()).hexdigest()[:24]}"
        self._canary = secrets.token_hex(8)
        self._record = Record(model=provider.settings.model_of(exchange.role))
        price = provider.settings.price_of(self._record.model)
        if not self._record.model or price is None:
            lacking = (
                "no model is set" if not self._record.model else "the operator set no price for the model"
            )
            raise CannotAnswer(lacking, self._record)
        self._price = Price(*price)

    def run(self) -> tuple[Result, Record]:
        """The result of the first reply that is accepted.

        Raises:
            CannotAnswer: see `ModelProvider.answer`.
        """
        asked = self._question()
        complaint = ""
        for _ in range(self._p.settings.openai_repairs + 1):
            completion, asked = self._complete(asked)
            self._record.prompt = asked.record(self._canary)
            said, problem = _said(completion)
            text = said.replace(self._canary, HIDDEN)
            self._record.reply = text
            try:
                if problem:
                    raise BadReply(problem)
                if text != said or self._canary in _unescaped(said):
                    raise BadReply("it repeats what must not be repeated")
                result = self._exchange.accept(text)
            except BadReply as exc:
                cut = "it was cut off at its limit of tokens; " if completion.cut else ""
                complaint = cut + str(exc)
                self._record.notes.append(f"call {self._record.calls}: {complaint}"[:2000])
                asked = asked.answered(text, complaint)
                continue
            return result, self._record
        raise CannotAnswer(f"no reply was of use: {complaint}"[:2000], self._record)

    def _question(self) -> Prompt:
        """The question, with earlier turns as messages if the server knows functions."""
        return self._exchange.first(self._canary, self._with_turns)

    def _complete(self, asked: Prompt) -> tuple[Completion, Prompt]:
        """A reply, with retries, and the prompt that it answers: a server may know no functions."""
        failures = 0
        while True:
            call = self._call(asked)
            try:
                return self._paid(call), asked
            except CallFailed as exc:
                knew = self._with_turns
                if exc.unsupported and self._weaken(exc.reason):
                    asked = asked if self._with_turns == knew else self._question()
                    continue
                failures += 1
                if not exc.again or failures > self._p.settings.openai_retries:
                    raise CannotAnswer(exc.reason, self._record) from exc
                self._pause(exc.retry_after_s, failures)

    def _call(self, asked: Prompt) -> ModelCall:
        """The next call, as large as the budget and the time limit allow."""
        schema = self._exchange.schema
        bound = _bound(asked.messages, self._functions, self._form, schema)
        left = self._p.purse.left()
        room = left.tokens - bound
        if self._price.reply > 0:
            usd = left.usd - self._price.most(bound, 0).usd
            room = min(room, int(usd / self._price.reply * 1e6) - 1)
        elif self._price.most(bound, 0).usd > left.usd:
            room = 0
        most = min(room, self._p.settings.openai_max_output_tokens)
        if most < MIN_REPLY_TOKENS:
            reason = f"the budget does not cover a call: {left.tokens} tokens and {left.usd:.6g} USD are left"
            raise CannotAnswer(f"{reason}, and the prompt alone may have {bound} tokens", self._record)
        seconds = self._ends - time.monotonic()
        if seconds <= 0 or not self._p.alive():
            raise CannotAnswer("the step's time is up", self._record)
        return ModelCall(
            model=self._record.model,
            messages=asked.messages,
            max_tokens=most,
            form=self._form,
            schema_name=self._exchange.role,
            schema=schema,
            timeout_s=min(self._p.settings.openai_timeout_s, seconds),
            newer=self._newer,
            functions=self._functions,
            cache_key=self._cache_key,
        )

    def _paid(self, call: ModelCall) -> Completion:
        """Make the call: its cost is reserved before and settled after it."""
        bound = _bound(call.messages, call.functions, call.form, call.schema)
        reserved = self._price.most(bound, call.max_tokens)
        if not self._p.purse.reserve(reserved):
            raise CannotAnswer("another step of this job has spent the budget", self._record)
        self._record.calls += 1
        try:
            completion = self._p.transport.complete(call)
        except CallFailed as exc:
            self._record.notes.append(f"call {self._record.calls}: {exc.reason}")
            # The cost of a lost reply is unknown; the reserved amount is the safe assumption.
            self._settle(reserved, reserved if exc.lost else Cost())
            if exc.lost:
                note = (
                    f"call {self._record.calls}: its cost is not known and counts as {reserved.tokens} tokens"
                )
                self._record.notes.append(note)
            raise
        said = completion.prompt_tokens, completion.reply_tokens
        if said[0] is None or said[1] is None:
            note = f"call {self._record.calls}: the server does not say what it used; counted by bytes"
            self._record.notes.append(note)
            said = bound, min(call.max_tokens, _bytes_of(completion))
        assert said[0] is not None and said[1] is not None
        cached = min(completion.cached_tokens, said[0])
        written = min(completion.written_tokens, said[0] - cached)
        self._record.cached_tokens += cached
        self._record.written_tokens += written
        self._settle(reserved, self._price.cost(said[0], said[1], cached, written))
        return completion

    def _settle(self, reserved: Cost, spent: Cost) -> None:
        self._p.purse.settle(reserved, spent)
        self._record.cost += spent
        if spent.tokens > reserved.tokens:
            more = f"the server used {spent.tokens} tokens where {reserved.tokens} were allowed"
            self._record.notes.append(f"call {self._record.calls}: {more}")

    def _weaken(self, reason: str) -> bool:
        """Reduce the request to features that the server supports; False if nothing can be left out."""
        if "max_completion_tokens" in reason and not self._newer:
            self._newer = True
            return True
        if "cache_key" in reason and self._cache_key:
            self._cache_key = ""
            return True
        if self._functions:
            # Without functions the reply is one of two objects, which a strict schema cannot say.
            self._with_turns, self._functions, self._form = False, (), ReplyForm.JSON
            return True
        weaker = self._form.weaker
        if weaker is not None:
            self._form = weaker
            return True
        known, self._cache_key = bool(self._cache_key), ""
        return known

    def _pause(self, wanted_s: float | None, failures: int) -> None:
        pause_s = wanted_s if wanted_s is not None else FIRST_PAUSE_S * 2 ** (failures - 1)
        if pause_s > min(MAX_WAIT_S, self._ends - time.monotonic()):
            raise CannotAnswer(f"the server asks to wait {pause_s:.0f} s", self._record)
        self._p.sleep(pause_s)


def _bound(
    messages: Sequence[Message], offered: Sequence[dict[str, Any]], form: ReplyForm, schema: dict[str, Any]
) -> int:
    """Upper bound on the tokens of the prompt, with the schema or the functions that are sent."""
    sent = [json.dumps(f) for f in offered]
    if not sent and form is ReplyForm.SCHEMA:
        sent = [json.dumps(schema)]
    called = [text for m in messages for c in m.calls for text in (c.id, c.name, c.arguments)]
    return prompt_bound([*(m.content for m in messages), *called, *sent])


def _said(completion: Completion) -> tuple[str, str]:
    """The text of a reply, and what is wrong with its size or the functions that it calls."""
    text = "\n".join(f"{c.name}({c.arguments})" for c in completion.calls) or completion.text
    if len(text) > MAX_REPLY_CHARACTERS:
        # Neither kept nor sent back: the budget pays for what is sent.
        return text[:SHOWN_CHARACTERS], too_long(text)
    try:
        text, problem = as_reply(completion.calls) if completion.calls else text, ""
    except BadReply as exc:
        problem = str(exc)
    return text, problem


def _unescaped(text: str) -> str:
    """A text without the escapes of JSON by which a plain character may be written."""
    return re.sub(r"\\u00([0-7][0-9a-fA-F])", lambda found: chr(int(found[1], 16)), text)


def _bytes_of(completion: Completion) -> int:
    called = "".join(c.name + c.arguments for c in completion.calls)
    return len(f"{completion.text}{called}".encode())
