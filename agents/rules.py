"""The offline provider: deterministic, no model, no network.

The templater applies the rewrite rules. The planner looks at where the best configurations of the
parent lie: when one sits at the edge of a numeric parameter, the range is carried on beyond that
edge; otherwise there is nothing more to expect and the search ends.
"""

import json
from collections.abc import Sequence

from agents.context import StepContext
from warpsmith.domain.job import RewritePolicy, RuleName
from warpsmith.domain.outcome import Measured, Outcome
from warpsmith.domain.space import Configuration, Parameter, Space
from warpsmith.rewrite.templater import make_template
from warpsmith.tuning.tasks import StepPayload, StepResult

CAUTIOUS: tuple[RuleName, ...] = ("lift_constants", "block_size", "launch_bounds", "restrict")
"""What a second attempt uses: rules that leave the loops of the kernel as they are."""
MAX_VALUE = 1 << 16


class RulesProvider:
    """Answers from rewrite rules and from the trials alone."""

    name = "rules"

    def answer(self, payload: StepPayload, context: StepContext) -> StepResult:
        """See `agents.steps.Provider`."""
        if payload.role == "planner":
            return self._plan(context)
        if payload.role == "tuner":
            return StepResult(provider=self.name, template=payload.draft, declined=payload.declined)
        if payload.role == "templater" and payload.round > 1 and context.parent is not None:
            return self._carry_on(payload.plan, context)
        return self._template(payload, context)

    def _template(self, payload: StepPayload, context: StepContext) -> StepResult:
        job = context.job
        if payload.attempt == 1:
            job = job.model_copy(update={"rewrite": _cautious(job.rewrite)})
        elif payload.attempt > 1:
            job = job.model_copy(update={"rewrite": RewritePolicy(enabled=False)})
        report = make_template(job, context.include_dirs)
        return StepResult(provider=self.name, template=report.template, declined=report.declined)

    def _plan(self, context: StepContext) -> StepResult:
        if context.parent is None:
            return StepResult(provider=self.name, stop="no candidate was measured")
        beyond = _beyond_the_edges(context.parent.space, context.trials)
        if not beyond:
            return StepResult(
                provider=self.name, stop="the best configuration lies inside every range; no gain expected"
            )
        return StepResult(provider=self.name, plan=json.dumps({"extend": beyond}))

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
        template = context.parent.model_copy(
            update={
                "space": Space(parameters=parameters, constraints=space.constraints),
                "warm_starts": () if best is None else (best,),
            }
        )
        return StepResult(provider=self.name, template=template, plan=plan)


def _extension(plan: str) -> dict[str, list[int]]:
    """Of a plan of these rules; another's plan is prose to them and says nothing."""
    try:
        extend = json.loads(plan)["extend"]
    except (ValueError, KeyError, TypeError):
        return {}
    if not isinstance(extend, dict) or not all(isinstance(v, list) for v in extend.values()):
        return {}
    whole = {name: [v for v in values if type(v) is int] for name, values in extend.items()}
    return {name: values for name, values in whole.items() if values}


def _cautious(policy: RewritePolicy) -> RewritePolicy:
    """Never more than the job allows."""
    allowed = tuple(n for n in CAUTIOUS if not policy.allow or n in policy.allow)
    enabled = policy.enabled and bool(allowed)
    return RewritePolicy(enabled=enabled, allow=allowed, deny=policy.deny)


def _best(trials: Sequence[tuple[Configuration, Outcome]]) -> Configuration | None:
    measured = [(c, o.objective) for c, o in trials if isinstance(o, Measured)]
    return min(measured, key=lambda pair: pair[1])[0] if measured else None


def _beyond_the_edges(space: Space, trials: Sequence[tuple[Configuration, Outcome]]) -> dict[str, list[int]]:
    """For every doubling parameter whose best value is its largest: the next two values."""
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


def _merged(parameter: Parameter, more: Sequence[int]) -> tuple[int | float | bool | str, ...]:
    return parameter.values + tuple(v for v in more if v not in parameter.values)
