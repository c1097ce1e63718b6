"""The offline provider: deterministic, without model or network.

The tester asks for shapes around the kernel's own block. The profiler names the bottleneck from the facts.
The templater takes the template that gained on the same kernel in an earlier job, or applies the rewrite
rules, and the tuner keeps to the limits of the device. The planner starts
with the first hypothesis of the profile. Later it looks at the parent's best configurations. If one lies at
the edge of a numeric parameter, the range is extended beyond that edge, and values that never worked are
removed; otherwise the search ends.
"""

import json
from collections.abc import Sequence

from agents.context import StepContext
from agents.contracts import TunerReply
from agents.questions.remembered import known_template
from agents.questions.role_inputs import facts
from agents.replies.fixed_template import typical
from agents.rules import conclusions, direct_rewriting, search_region
from agents.rules.rule_faults import declined, without_faults
from warpsmith.domain.jobs.job import RULES, RewritePolicy, RuleName, Strategy
from warpsmith.domain.jobs.rewriter import rewriter
from warpsmith.domain.templates.outcome import Measured, Outcome
from warpsmith.domain.templates.space import Configuration, Parameter, Space
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.tasks import Profile, StepPayload, StepResult

CAUTIOUS: tuple[RuleName, ...] = ("lift_constants", "block_size", "launch_bounds", "restrict")
"""Rules of a second attempt: they leave the kernel's loops unchanged."""
LIFTING: tuple[RuleName, ...] = ("lift_constants",)
"""Rules of a search without agents: they lift numbers that the user wrote."""
MAX_VALUE = 1 << 16


class RulesProvider:
    """Answers from rewrite rules and from the trials alone."""

    name = RULES

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """See `agents.providers.steps.Provider`."""
        direct = context.job.strategy is Strategy.DIRECT
        if payload.role == "tester":
            return StepResult(provider=self.name, cases=conclusions.test_plan(context))
        if payload.role == "profiler":
            return StepResult(provider=self.name, profile=conclusions.profile(context))
        if payload.role == "planner":
            return self._plan(payload, context)
        if payload.role == "tuner":
            return search_region.bounded(payload, context)
        if direct:
            return direct_rewriting.rewrite(payload, context)
        if payload.role == "templater" and payload.round > 1 and context.parent is not None:
            return self._carry_on(payload.plan, context)
        known = known_template(context) if payload.role == "templater" and payload.attempt == 0 else None
        if known is not None and context.job.strategy is Strategy.TEMPLATE:
            template, job_id = known
            note = f"the template of job {job_id}, which gained on this kernel"
            return StepResult(provider=self.name, template=template, notes=(note,))
        return self._template(payload, context)

    def region(self, draft: Template, context: StepContext) -> TunerReply:
        """See `agents.offline.OfflineProvider`."""
        return search_region.region(draft, context)

    def profile(self, context: StepContext) -> Profile:
        """See `agents.offline.OfflineProvider`."""
        return conclusions.profile(context)

    def _template(self, payload: StepPayload, context: StepContext) -> StepResult:
        job = context.job
        if payload.attempt == 1:
            job = job.model_copy(update={"rewrite": _cautious(job.rewrite)})
        elif payload.attempt > 1:
            job = job.model_copy(update={"rewrite": RewritePolicy(enabled=False)})
        elif job.strategy is Strategy.SEARCH:
            job = job.model_copy(update={"rewrite": _only(job.rewrite, LIFTING)})
        report = rewriter().make_template(without_faults(job, payload), context.include_dirs)
        template = report.template
        if job.strategy is Strategy.TEMPLATE:
            template = _started(template, typical(template, context))
        return StepResult(provider=self.name, template=template, declined=declined(report, payload))

    def _plan(self, payload: StepPayload, context: StepContext) -> StepResult:
        if payload.round == 1 or context.job.strategy is Strategy.DIRECT:
            return StepResult(provider=self.name, plan=conclusions.plan_in_words(payload.profile))
        if context.parent is None:
            return StepResult(provider=self.name, stop="no candidate was measured")
        beyond = _beyond_the_edges(context.parent.space, context.trials)
        if not beyond:
            return StepResult(
                provider=self.name, stop="the best configuration lies inside every range; no gain expected"
            )
        gain = _expected_gain(beyond, context)
        return StepResult(provider=self.name, plan=json.dumps({"extend": beyond}), expected_gain=gain)

    def _carry_on(self, plan: str, context: StepContext) -> StepResult:
        assert context.parent is not None
        extend = _extension(plan) or _beyond_the_edges(context.parent.space, context.trials)
        if not extend:
            return StepResult(provider=self.name, stop="the rules have nothing to add to this plan")
        space = context.parent.space
        parameters = tuple(
            p.model_copy(update={"values": _merged(p, extend.get(p.name, ()))}) for p in space.parameters
        )
        best = _best(context.trials)
        wider = Space(parameters=parameters, constraints=space.constraints)
        template = context.parent.model_copy(
            update={
                "space": conclusions.narrowed(wider, facts(context)),
                "warm_starts": () if best is None else (best,),
            }
        )
        return StepResult(provider=self.name, template=template, plan=plan)


def _extension(plan: str) -> dict[str, list[int]]:
    """The extension in a plan of these rules; empty for the plan of another provider, which is prose."""
    try:
        extend = json.loads(plan)["extend"]
    except (ValueError, KeyError, TypeError):
        return {}
    if not isinstance(extend, dict) or not all(isinstance(v, list) for v in extend.values()):
        return {}
    whole = {name: [v for v in values if type(v) is int] for name, values in extend.items()}
    return {name: values for name, values in whole.items() if values}


def _cautious(policy: RewritePolicy) -> RewritePolicy:
    return _only(policy, CAUTIOUS)


def _only(policy: RewritePolicy, names: Sequence[RuleName]) -> RewritePolicy:
    """A policy with these rules, restricted to those that the job allows."""
    allowed = tuple(n for n in names if not policy.allow or n in policy.allow)
    enabled = policy.enabled and bool(allowed)
    return RewritePolicy(enabled=enabled, allow=allowed, deny=policy.deny)


def _best(trials: Sequence[tuple[Configuration, Outcome]]) -> Configuration | None:
    measured = [(c, o.objective) for c, o in trials if isinstance(o, Measured)]
    return min(measured, key=lambda pair: pair[1])[0] if measured else None


def _beyond_the_edges(space: Space, trials: Sequence[tuple[Configuration, Outcome]]) -> dict[str, list[int]]:
    """The next two values of every doubling parameter whose best value is its largest."""
    best = _best(trials)
    beyond: dict[str, list[int]] = {}
    if best is None:
        return beyond
    for parameter in space.parameters:
        values = [v for v in parameter.values if isinstance(v, int) and not isinstance(v, bool)]
        if len(values) < len(parameter.values) or len(values) < 3:
            continue
        top = max(values)
        doubles = top // 2 in values and top % 2 == 0
        if doubles and best.get(parameter.name) == top and top * 4 <= MAX_VALUE:
            beyond[parameter.name] = [top * 2, top * 4]
    return beyond


def _expected_gain(beyond: dict[str, list[int]], context: StepContext) -> float | None:
    """Gain of the last doubling of these parameters; None if the search did not measure both values."""
    known = facts(context)
    gains = []
    for effect in known.effects if known is not None else ():
        top = beyond.get(effect.parameter, [0])[0] // 2
        last, before = effect.best.get(str(top)), effect.best.get(str(top // 2))
        if top and last and before:
            gains.append(before / last)
    return max(gains, default=None)


def _started(template: Template, first: Configuration) -> Template:
    """The template with a configuration to try first, if it differs from the defaults."""
    same = first == template.space.defaults or first in template.warm_starts
    return template if same else template.model_copy(update={"warm_starts": (*template.warm_starts, first)})


def _merged(parameter: Parameter, more: Sequence[int]) -> tuple[int | float | bool | str, ...]:
    return parameter.values + tuple(v for v in more if v not in parameter.values)
