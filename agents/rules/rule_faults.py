"""Leaves out rules that made templates of a job fail, and reports them."""

from warpsmith.domain.jobs.job import Job, RewritePolicy
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.domain.templates.declined_rule import DeclinedRule
from warpsmith.tuning.tasks import StepPayload


def without_faults(job: Job, payload: StepPayload) -> Job:
    """The job with the faulty rules forbidden."""
    deny = {*job.rewrite.deny, *(f.rule for f in payload.faults)}
    policy = RewritePolicy.model_validate({**job.rewrite.model_dump(), "deny": sorted(deny)})
    return job.model_copy(update={"rewrite": policy})


def declined(report: TemplateReport, payload: StepPayload) -> tuple[DeclinedRule, ...]:
    """The declined rules, and for faulty rules the failure of their rewrite."""
    failed = {f.rule: f.declined for f in payload.faults}
    return tuple(failed.get(d.rule, d) for d in report.declined)
