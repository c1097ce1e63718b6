"""Runs an agent step: asks a provider, or the rules if it cannot answer, and records everything."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from agents.context import StepContext
from agents.offline import offline_provider
from agents.providers.external import ExternalProvider, Mailbox, NotYet
from agents.providers.model import ModelProvider
from agents.providers.model_budget import Cost, Purse
from agents.providers.model_transport import OpenAITransport
from agents.providers.step_record import CannotAnswer, Record, storable
from agents.questions.role_inputs import facts
from warpsmith.domain.jobs.job import RULES, AgentRole, Job, ProviderName, Strategy
from warpsmith.errors import InvalidInput
from warpsmith.settings import Settings
from warpsmith.tuning.tasks import StepPayload, StepResult

log = logging.getLogger(__name__)


class Provider(Protocol):
    """Answers for every role."""

    name: str

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """The answer of `payload.role`.

        Raises:
            InvalidInput: the job itself makes an answer impossible.
            CannotAnswer: this provider cannot answer; the rules will.
            NotYet: the answer is not there yet.
        """
        ...


@dataclass(frozen=True)
class Panel:
    """The available providers, and the limits of their cost."""

    settings: Settings
    purse: Purse
    mailbox: Mailbox
    seconds: float
    """Time limit of a step in seconds."""
    alive: Callable[[], bool] = lambda: True

    def ask(self, name: ProviderName, payload: StepPayload, context: StepContext) -> StepResult:
        """The answer of one provider; raises as `Provider.answer` does."""
        if name == "external":
            return ExternalProvider(self.mailbox).answer(payload, context)
        url, key = self.settings.openai_base_url, self.settings.openai_api_key
        if url is None:
            raise CannotAnswer("the operator has configured no model")
        transport = OpenAITransport(url, key.get_secret_value() if key is not None else "")
        try:
            provider = ModelProvider(self.settings, transport, self.purse, self.seconds, self.alive)
            return provider.answer(payload, context)
        finally:
            transport.close()


def provider_name(job: Job, settings: Settings, role: AgentRole) -> ProviderName:
    """Provider of a role for a job, in this order: the job's choice for the role, the job's choice, the
    operator's choice for the role, the operator's choice.

    If no agent is to be asked, the rules lift the kernel's constants.
    """
    if job.strategy is Strategy.SEARCH:
        return "rules"
    return job.agents.roles.get(role) or job.agents.provider or settings.provider_of(role)


def run_step(payload: StepPayload, context: StepContext, panel: Panel | None = None) -> StepResult:
    """Ask the provider of the step and record the time that it took.

    Args:
        panel: the available providers; None: the offline rules only.

    Raises:
        InvalidInput: the job itself makes an answer impossible.
        NotYet: the answer is not there yet.
    """
    started = time.monotonic()
    job, role = context.job, payload.role
    name = RULES if panel is None else payload.provider or provider_name(job, panel.settings, role)
    if panel is None or name == RULES:
        result = offline_provider().answer(payload, context)
    else:
        ask = partial(panel.ask, name, payload, context)
        result = with_fallback(ask, name, payload, context, panel.purse)
    result = result.model_copy(update={"ask_tuner": _wants_tuner(payload, context, result, panel)})
    if role == "profiler":
        result = result.model_copy(update={"notes": (*result.notes, *_missing(context))})
    latency_s = result.latency_s or time.monotonic() - started
    return result.model_copy(update={"latency_s": latency_s})


def with_fallback(
    ask: Callable[[], StepResult],
    name: str,
    payload: StepPayload,
    context: StepContext,
    purse: Purse | None = None,
) -> StepResult:
    """The answer, or that of the rules with the reason and the cost of the failed attempt.

    No exception of a provider ends a job but those that say something about the job itself.
    """
    try:
        return ask()
    except (InvalidInput, NotYet):
        raise
    except CannotAnswer as exc:
        reason, record = exc.reason, exc.record
    except Exception as exc:
        log.exception("the provider %s failed in the step of the %s", name, payload.role)
        reason, record = f"{type(exc).__name__}: {exc}", Record(cost=purse.booked if purse else Cost())
    result = record.on(offline_provider().answer(payload, context))
    return result.model_copy(update={"fallback": storable(f"{name}: {reason}")[:4000]})


def _wants_tuner(payload: StepPayload, context: StepContext, result: StepResult, panel: Panel | None) -> bool:
    """True if a new template goes to the tuner; to the rules only if they have something to add."""
    template, job = result.template, context.job
    if payload.role not in ("templater", "repairer") or template is None or job.strategy is Strategy.SEARCH:
        return False
    if not any(len(p.values) > 1 for p in template.space.parameters):
        return False
    tuner = payload.provider or (RULES if panel is None else provider_name(job, panel.settings, "tuner"))
    if tuner != RULES:
        return not result.fallback
    said = offline_provider().region(template, context)
    return bool(said.constraints or said.warm_starts)


def _missing(context: StepContext) -> tuple[str, ...]:
    """Reasons why the facts lack measurements for the profiler, each once."""
    known = facts(context)
    kernels = [] if known is None else [known.baseline, *([known.best] if known.best is not None else [])]
    return tuple(dict.fromkeys(k.counters_missing for k in kernels if k.counters_missing))
