"""The tool `check`: on which inputs and shapes configurations are wrong, and how."""

import secrets
from collections.abc import Sequence
from contextlib import closing

from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.tuning.checks.extra_cases import allowed_edge_cases, further_cases, in_case, judged
from warpsmith.tuning.session.device_session import Case
from warpsmith.tuning.tasks import ToolAnswer
from warpsmith.tuning.tools.workbench import BenchKernel, Workbench, named, refused, told
from warpsmith.tuning.trials.trial import child_words

CASES_BY_LOT = 8
"""Number of cases, beside the workloads, on which further configurations are tried."""
MOST_SHOWN = 4
"""Limit on the wrong cases of a configuration that are told."""


def check(bench: Workbench, template: Template, configurations: Sequence[Configuration]) -> ToolAnswer:
    """Configurations on the workloads and on the cases of a first check, in every element.

    The first configuration is tried on all of these cases, further ones on some by lot.

    Raises:
        InvalidInput: the job's reference cannot be used.
    """
    parts, ok = list[str](), True
    for place, configuration in enumerate(bench.in_time(configurations, parts)):
        built = bench.compile(template, configuration)
        if isinstance(built, Rejected):
            parts.append(refused(configuration, built))
            ok = False
            continue
        tried, wrong = _on_cases(bench, template, built, whole=place == 0)
        ok &= not wrong
        if not wrong:
            parts.append(f"{named(configuration)}: right on all {tried} cases that were tried")
            continue
        parts.append(
            f"{named(configuration)}: wrong on {len(wrong)} of {tried} cases that were tried, such as:"
        )
        parts += [f"  {words}" for words in wrong[:MOST_SHOWN]]
    return told(parts, ok)


def _on_cases(bench: Workbench, template: Template, built: BenchKernel, whole: bool) -> tuple[int, list[str]]:
    """Number of cases that were tried, and what is wrong on them; a fault ends the cases."""
    session = bench.session
    allowed = session.inputs.allowed(template, built.kernel)
    if not allowed:
        return 0, ["its constraints forbid it on every workload"]
    more = allowed_edge_cases(session, template, built.kernel)
    more += further_cases(session, template, built.kernel, allowed)
    if not whole:
        more = secrets.SystemRandom().sample(more, min(CASES_BY_LOT, len(more)))
    cases = [*(Case(w) for w in allowed), *more]
    tried, wrong = 0, []
    try:
        with closing(judged(session, built.kernel, built.compiled, cases)) as found:
            for case, result in found:
                tried += 1
                if isinstance(result, Rejected):
                    own = case.key in {Case(w).key for w in allowed}
                    words = (
                        f"on {case.workload.key}: {result.reason}" if own else in_case(case, result).reason
                    )
                    wrong.append(f"{result.stage.value}: {words}")
    except (ExpressionError, KernelRefused) as exc:
        wrong.append(f"launch: {exc}")
        tried += 1
    except ChildDied as exc:
        session.renew(faulted=True)
        wrong.append(f"run: it {child_words(exc)}, after {tried} cases")
        tried += 1
    finally:
        session.expected.forget_cases()
    return tried, wrong
