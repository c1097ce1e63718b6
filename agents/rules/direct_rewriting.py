"""The rules without a search: one further rewrite rule per round, with each parameter at its usual value.

This models agents that rewrite without searching: order and values were fixed before any measurement.
Measurement decides only from which earlier kernel the next round starts.
"""

from agents.context import StepContext
from agents.replies.fixed_template import fixed, typical
from agents.rules.rule_faults import declined, without_faults
from warpsmith.domain.jobs.job import RewritePolicy, RuleName
from warpsmith.domain.jobs.rewriter import TemplateReport, rewriter
from warpsmith.tuning.tasks import StepPayload, StepResult

NAME = "rules"


def rewrite(payload: StepPayload, context: StepContext) -> StepResult:
    """The rules of the parent and one more; all rules up to this one if it needs them."""
    if payload.role == "repairer":
        return StepResult(provider=NAME, stop="the rule of this round does not work here")
    order = _order(context)
    if payload.round > len(order):
        return StepResult(provider=NAME, stop="every rule has been tried")
    added = order[payload.round - 1]
    before = {a.rule for a in context.parent.applied} if context.parent is not None else set()
    chosen = [name for name in order if name in before or name == added]
    report = _applied(payload, context, chosen)
    if added not in {a.rule for a in report.template.applied}:
        report = _applied(payload, context, order[: payload.round])
    template = fixed(report.template, typical(report.template, context))
    return StepResult(provider=NAME, template=template, declined=declined(report, payload), plan=payload.plan)


def _order(context: StepContext) -> list[RuleName]:
    """The rules that apply, in the order in which they compose."""
    report = rewriter().make_template(context.job, context.include_dirs)
    names: list[RuleName] = []
    for applied in report.template.applied:
        if applied.rule not in names:
            names.append(applied.rule)
    return names


def _applied(payload: StepPayload, context: StepContext, names: list[RuleName]) -> TemplateReport:
    policy = RewritePolicy(allow=tuple(names), deny=context.job.rewrite.deny)
    job = context.job.model_copy(update={"rewrite": policy})
    return rewriter().make_template(without_faults(job, payload), context.include_dirs)
