"""Rules that made templates of a job fail are left out of those that follow, and said to be."""

from warpsmith.domain.job import Job, RewritePolicy
from warpsmith.rewrite.templater import TemplateReport
from warpsmith.tuning.tasks import StepPayload


def without_faults(job: Job, payload: StepPayload) -> Job:
    """The job, with the rules forbidden that made its templates fail."""
    deny = {*job.rewrite.deny, *(f.rule for f in payload.faults)}
    policy = RewritePolicy.model_validate({**job.rewrite.model_dump(), "deny": sorted(deny)})
    return job.model_copy(update={"rewrite": policy})


def declined(report: TemplateReport, payload: StepPayload) -> tuple[str, ...]:
    """What was declined; of rules at fault, what their rewrite did."""
    words = {f.rule: f.words for f in payload.faults}
    return tuple(words.get(d.split(":", 1)[0], d) for d in report.declined)
