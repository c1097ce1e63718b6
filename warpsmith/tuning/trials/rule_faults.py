"""Finds the rewrite rules for which a template fails, so that each costs itself and not the template."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from warpsmith.domain.jobs.job import Job, RewritePolicy
from warpsmith.domain.jobs.rewriter import rewriter, rule_names
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import RuleFault, Template

Probe = Callable[[Template, Configuration], Rejected | None]
"""Returns the rejection of a template with this configuration; None if it passes."""


def rules_at_fault(
    job: Job,
    template: Template,
    first: Rejected,
    probe: Probe,
    include_dirs: Mapping[str, Path],
    seconds: float,
) -> tuple[RuleFault, ...]:
    """The rules without which a template passes with its defaults, each with its failure.

    Bisection finds the shortest failing prefix of the rules, whose last rule is left out; this repeats until
    the rest passes. Nothing is found if the rules do not reproduce the template, if it fails without any
    rule, or if time runs out.

    Args:
        first: rejection of the unchanged template.
        seconds: time limit; a started probe is finished.
    """
    names = list(dict.fromkeys(a.rule for a in template.applied))
    if not names or not set(rule_names()).issuperset(names):
        return ()  # an agent wrote it
    ends = time.monotonic() + seconds

    def made(rules: Sequence[str]) -> Template:
        policy = RewritePolicy.model_validate({"enabled": bool(rules), "allow": rules})
        return rewriter().make_template(job.model_copy(update={"rewrite": policy}), include_dirs).template

    def failure(rules: Sequence[str]) -> Rejected | None:
        part = made(rules)
        defaults = part.space.defaults
        return probe(part, {n: template.space.defaults.get(n, v) for n, v in defaults.items()})

    if made(names).kernel != template.kernel or failure(()) is not None:
        return ()
    faults: list[RuleFault] = []
    failed: Rejected | None = first
    while failed is not None and names:
        holds, fails = 0, len(names)
        while fails - holds > 1:
            if time.monotonic() > ends:
                return tuple(faults)
            middle = (holds + fails) // 2
            found = failure(names[:middle])
            holds, fails, failed = (middle, fails, failed) if found is None else (holds, middle, found)
        faults.append(RuleFault(rule=names.pop(fails - 1), stage=failed.stage, reason=failed.reason))
        failed = failure(names) if time.monotonic() < ends else None
    return tuple(faults)
