"""The provider `openai`: asks a model within the job's budget, and checks everything that it replies."""

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.context import StepContext
from agents.contracts import strict_schema
from agents.model_budget import Cost, Price, Purse, prompt_bound
from agents.model_transport import Call, CallFailed, Completion, Form, Transport
from agents.parsing import BadReply
from agents.prompting import HIDDEN, Message, Prompt, prompt
from agents.reply_acceptance import accept
from agents.role_inputs import question
from agents.step_record import NoAnswer, Record
from warpsmith.domain.job import AgentRole
from warpsmith.settings import Settings
from warpsmith.tuning.tasks import StepPayload, StepResult

MIN_REPLY_TOKENS = 256
"""Reply tokens below which a call is not worth its prompt."""
MAX_WAIT_S = 30.0
"""Longest pause in seconds that a server may ask for; beyond it the step gives up."""
FIRST_PAUSE_S = 0.5


@dataclass
class ModelProvider:
    """Asks a model for every role.

    Args:
        purse: budget of the job; a call that might exceed it is not made.
        seconds: time limit of a step in seconds.
        alive: returns False once the step has passed to another worker, or its job has ended.
    """

    settings: Settings
    transport: Transport
    purse: Purse
    seconds: float = 600.0
    alive: Callable[[], bool] = lambda: True
    sleep: Callable[[float], None] = time.sleep
    name: str = "openai"

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """See `agents.steps.Provider`.

        Raises:
            NoAnswer: the budget does not allow a call, the server fails, or its replies cannot be used.
        """
        return _Step(self, payload, context).run()


class _Step:
    """One step: a conversation."""

    def __init__(self, provider: ModelProvider, payload: StepPayload, context: StepContext) -> None:
        self._p = provider
        self._payload = payload
        self._context = context
        self._ends = time.monotonic() + provider.seconds
        self._form, self._newer = Form.SCHEMA, False
        self._record = Record(model=provider.settings.model_of(payload.role))
        price = provider.settings.price_of(self._record.model)
        if not self._record.model or price is None:
            lacking = (
                "no model is set" if not self._record.model else "the operator set no price for the model"
            )
            raise NoAnswer(lacking, self._record)
        self._price = Price(*price)

    def run(self) -> StepResult:
        role: AgentRole = self._payload.role
        canary = secrets.token_hex(8)
        asked = prompt(role, question(self._payload, self._context), canary)
        complaint = ""
        for _ in range(self._p.settings.openai_repairs + 1):
            self._record.prompt = asked.record(canary)
            completion = self._complete(asked)
            text = completion.text.replace("\0", "").replace(canary, HIDDEN)
            self._record.reply = text
            try:
                if text != completion.text.replace("\0", ""):
                    raise BadReply("it repeats what must not be repeated")
                result = accept(text, self._p.name, self._payload, self._context)
            except BadReply as exc:
                cut = "it was cut off at its limit of tokens; " if completion.cut else ""
                complaint = cut + str(exc)
                self._record.notes.append(f"call {self._record.calls}: {complaint}"[:2000])
                asked = asked.answered(text, complaint)
                continue
            return self._record.on(result)
        raise NoAnswer(f"no reply was of use: {complaint}"[:2000], self._record)

    def _complete(self, asked: Prompt) -> Completion:
        """One reply, with retries."""
        failures = 0
        while True:
            call = self._call(asked)
            try:
                return self._paid(call)
            except CallFailed as exc:
                if exc.unsupported and self._weaken(exc.reason):
                    continue
                failures += 1
                if not exc.again or failures > self._p.settings.openai_retries:
                    raise NoAnswer(exc.reason, self._record) from exc
                self._pause(exc.retry_after_s, failures)

    def _call(self, asked: Prompt) -> Call:
        """The next call, as large as the budget and the time limit allow."""
        schema = strict_schema(self._payload.role)
        bound = _bound(asked.messages, self._form, schema)
        left = self._p.purse.left()
        room = left.tokens - bound
        if self._price.reply > 0:
            usd = left.usd - self._price.cost(bound, 0).usd
            room = min(room, int(usd / self._price.reply * 1e6) - 1)
        elif self._price.cost(bound, 0).usd > left.usd:
            room = 0
        most = min(room, self._p.settings.openai_max_output_tokens)
        if most < MIN_REPLY_TOKENS:
            reason = f"the budget does not cover a call: {left.tokens} tokens and {left.usd:.6g} USD are left"
            raise NoAnswer(f"{reason}, and the prompt alone may have {bound} tokens", self._record)
        seconds = self._ends - time.monotonic()
        if seconds <= 0 or not self._p.alive():
            raise NoAnswer("the step's time is up", self._record)
        return Call(
            model=self._record.model,
            messages=asked.messages,
            max_tokens=most,
            form=self._form,
            schema_name=self._payload.role,
            schema=schema,
            timeout_s=min(self._p.settings.openai_timeout_s, seconds),
            newer=self._newer,
        )

    def _paid(self, call: Call) -> Completion:
        """Make the call: its cost is reserved before and settled after it."""
        bound = _bound(call.messages, call.form, call.schema)
        reserved = self._price.cost(bound, call.max_tokens)
        if not self._p.purse.reserve(reserved):
            raise NoAnswer("another step of this job has spent the budget", self._record)
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
            said = bound, min(call.max_tokens, len(completion.text.encode()))
        assert said[0] is not None and said[1] is not None
        self._settle(reserved, self._price.cost(said[0], said[1]))
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
        weaker = self._form.weaker
        if weaker is None:
            return False
        self._form = weaker
        return True

    def _pause(self, wanted_s: float | None, failures: int) -> None:
        pause_s = wanted_s if wanted_s is not None else FIRST_PAUSE_S * 2 ** (failures - 1)
        if pause_s > min(MAX_WAIT_S, self._ends - time.monotonic()):
            raise NoAnswer(f"the server asks to wait {pause_s:.0f} s", self._record)
        self._p.sleep(pause_s)


def _bound(messages: Sequence[Message], form: Form, schema: dict[str, Any]) -> int:
    """Upper bound on the tokens of the prompt, schema included."""
    sent = [json.dumps(schema)] if form is Form.SCHEMA else []
    return prompt_bound([m.content for m in messages] + sent)
