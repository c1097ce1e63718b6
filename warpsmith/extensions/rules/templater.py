"""From a user's kernel to a template, by the rewrite rules alone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.rewriter import TemplateReport
from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES, Kernel
from warpsmith.domain.templates.declined_rule import EVERY_RULE, DeclineCode, DeclinedRule, not_permitted
from warpsmith.domain.templates.space import Space
from warpsmith.domain.templates.template import Template
from warpsmith.extensions.rules.analysis.kernel_traits import traits_of
from warpsmith.extensions.rules.analysis.launch.launch_names import numbered
from warpsmith.extensions.rules.analysis.launch.other_entries import disturbed
from warpsmith.extensions.rules.bodies.body_variants import compose
from warpsmith.extensions.rules.catalogue import ALL_RULES, LAST_RULES, RULES, Declined, Draft, Rule
from warpsmith.extensions.rules.preparation.dead_branches import without_dead_branches
from warpsmith.extensions.rules.preparation.foreign_platforms import without_foreign_platforms
from warpsmith.extensions.rules.preparation.hip_coordinates import with_coordinates_of_cuda
from warpsmith.source.tree.included_headers import Library, included, inline_header_of
from warpsmith.source.tree.syntax_tree import entry_name
from warpsmith.source.tree.work_limit import TooMuchWork, limited_work
from warpsmith.source.tree.written_out import written_out

STEPS = 10_000_000
"""Default of the steps that all rules take together, some seconds; ordinary kernels take 1 % of it."""
TOO_MUCH = (RecursionError, TooMuchWork)


def make_template(
    job: Job, include_dirs: Mapping[str, Path] | None = None, steps: int = STEPS
) -> TemplateReport:
    """Apply every rule that the job's policy allows and that can prove its precondition.

    The user's own parameters and constraints are always kept. With the template's defaults, the kernel
    behaves as the user's kernel.

    Args:
        include_dirs: permitted include folders by name, for kernels whose entry is in a header.
        steps: limit on the steps through syntax trees; rules that would take more decline.
    """
    if not job.kernel.backend.language.is_c_text:
        # Its parameters are in the source already, and Triton's own compiler does what the rules do.
        own = Template(kernel=job.kernel, space=job.space)
        refused = DeclinedRule(
            rule=EVERY_RULE, code=DeclineCode.BACK_END, reason="rules read CUDA and OpenCL"
        )
        return TemplateReport(template=own, declined=(refused,))
    with limited_work(steps):
        return _made(job, include_dirs)


def _made(job: Job, include_dirs: Mapping[str, Path] | None) -> TemplateReport:
    library = _library(job.kernel, include_dirs)
    template = Template(kernel=_inlined(job.kernel, library), space=job.space)
    declined: list[DeclinedRule] = []
    for n in range(len(job.kernel.steps)):
        try:
            template, refused = _of_launch(job, template, n, included(template.kernel.text, library))
            declined += refused
        except TOO_MUCH as exc:
            declined.append(DeclinedRule(rule=EVERY_RULE, code=DeclineCode.LIMIT, reason=_too_much(exc)))
    return TemplateReport(template=template, declined=tuple(declined))


def kernel_traits(job: Job, include_dirs: Mapping[str, Path] | None = None) -> frozenset[str]:
    """Forms of a job's first kernel, see `Trait`; empty where its source does not tell.

    Args:
        include_dirs: as of `make_template`.
    """
    try:
        with limited_work(STEPS):
            return frozenset(trait.value for trait in traits_of(first_draft(job, include_dirs).facts))
    except (LookupError, *TOO_MUCH):
        return frozenset()


def first_draft(job: Job, include_dirs: Mapping[str, Path] | None = None) -> Draft:
    """The first launch of a job as the first rule gets it.

    Args:
        include_dirs: as of `make_template`.
    """
    library = _library(job.kernel, include_dirs)
    kernel = _inlined(job.kernel, library)
    return _written_out(_live(_draft(job, kernel.of_step(0), included(kernel.text, library))))[0]


def _library(kernel: Kernel, include_dirs: Mapping[str, Path] | None) -> Library:
    known = include_dirs or {}
    folders = tuple(known[name] for name in kernel.includes if name in known)
    return Library(folders, kernel.files, kernel.include_dirs)


def _draft(job: Job, kernel: Kernel, library: tuple[str, ...]) -> Draft:
    return Draft(
        job=job, kernel=kernel, parameters=job.parameters, constraints=job.constraints, library=library
    )


def _inlined(kernel: Kernel, library: Library) -> Kernel:
    """The kernel with the headers that define its entries in place of their includes."""
    text = kernel.text
    for step in kernel.steps:
        text = inline_header_of(text, entry_name(step.entry), library)
    return kernel.model_copy(update={"source": text}) if len(text.encode()) <= MAX_SOURCE_BYTES else kernel


def _of_launch(
    job: Job, template: Template, n: int, library: tuple[str, ...]
) -> tuple[Template, Sequence[DeclinedRule]]:
    """The template with the rules applied to a launch, and why the others were not."""
    kernel = template.kernel.of_step(n)
    draft = _draft(job, kernel, library)
    steps = job.kernel.launches
    others = [step.entry for m, step in enumerate(steps) if m != n]
    declined: list[DeclinedRule] = []
    if job.rewrite.enabled:
        live = _live(draft)
        if others and live.kernel.text != kernel.text and _why_shared(kernel.text, live, others):
            live = draft
        written, hid = _written_out(live)
        draft, declined = _ruled(job, live, kernel, others, written, hid)
    if steps:
        draft = numbered(draft, kernel.text, n)
        launch = f"launch {n} ({steps[n].entry})"
        declined = [d.model_copy(update={"launch": launch}) for d in declined]
    space = template.space
    made = Template(
        kernel=template.kernel.with_step(n, draft.kernel),
        space=Space(
            parameters=space.parameters + draft.parameters[len(job.parameters) :],
            constraints=space.constraints + draft.constraints[len(job.constraints) :],
        ),
        applied=template.applied + draft.applied,
    )
    return made, declined


def _ruled(
    job: Job, live: Draft, kernel: Kernel, others: Sequence[str], written: Draft, hid: bool
) -> tuple[Draft, list[DeclinedRule]]:
    """The draft after all rules, and why the others were not applied.

    Rules see the source with its macros written out. The user's own text stays if they make the same of it.

    Args:
        written: the draft with its macros written out.
        hid: whether one of them hid more than arithmetic.
    """
    if written is live:
        return _with_all_rules(job, live, kernel, others)
    draft, declined = _with_all_rules(job, written, written.kernel, others)
    if not draft.applied:
        return replace(draft, kernel=kernel), declined
    names = {a.rule for a in draft.applied}
    if hid and not names <= {r.name for r in ALL_RULES if r.needs_no_macro}:
        return draft, declined
    own, _ = _with_all_rules(job, live, kernel, others, names)
    text = {"source": draft.kernel.source}
    same = replace(own, kernel=own.kernel.model_copy(update=text), macros=draft.macros) == draft
    return (own if same else draft), declined


def _with_all_rules(
    job: Job, draft: Draft, kernel: Kernel, others: Sequence[str], names: Collection[str] | None = None
) -> tuple[Draft, list[DeclinedRule]]:
    """The draft after all rules, or those of some names, and why others were not applied.

    Args:
        kernel: what the last rules get if no other rule is applied.
    """
    declined: list[DeclinedRule] = []
    chosen = [r for r in RULES if names is None or r.name in names]
    last = [r for r in LAST_RULES if names is None or r.name in names]
    draft = _with_rules(job, draft, kernel, chosen, others, declined)
    draft = compose(draft) if draft.applied else replace(draft, kernel=kernel)
    return _with_rules(job, draft, kernel, last, others, declined), declined


def _written_out(live: Draft) -> tuple[Draft, bool]:
    """The draft with macros written out, and whether one of them hid more than arithmetic."""
    try:
        own = [p.name for p in live.parameters]
        found = written_out(live.source, live.kernel.options, own)
    except (LookupError, *TOO_MUCH):
        return live, False
    if found.text == live.kernel.text:
        return live, False
    return replace(_with_text(live, found.text), macros=found.brought), found.hid


def _with_rules(
    job: Job,
    draft: Draft,
    kernel: Kernel,
    rules: Sequence[Rule],
    others: Sequence[str],
    declined: list[DeclinedRule],
) -> Draft:
    """The draft after all of the rules that apply; the reasons of the others are added to `declined`."""
    for rule in rules:
        result = _applied(job, draft, kernel, rule, others)
        if isinstance(result, DeclinedRule):
            declined.append(result)
        else:
            draft = result
    return draft


def _applied(
    job: Job, draft: Draft, kernel: Kernel, rule: Rule, others: Sequence[str]
) -> Draft | DeclinedRule:
    """The draft after a rule, or why the rule is not applied."""
    if not job.rewrite.permits(rule.name):
        return not_permitted(rule.name)
    result = _beforehand(kernel, rule) or _attempted(draft, rule, others)
    if isinstance(result, Draft):
        return result
    return DeclinedRule(rule=rule.name, code=result.code, reason=result.reason)


def _attempted(draft: Draft, rule: Rule, others: Sequence[str]) -> Draft | Declined:
    """The draft after a rule. A rule that cannot read the source, or would take too long, declines."""
    try:
        result = rule.apply(draft)
        if others and isinstance(result, Draft):
            shared = _why_shared(draft.kernel.text, result, others)
            return Declined(DeclineCode.ANOTHER_LAUNCH, shared) if shared else result
    except LookupError as exc:
        return Declined(DeclineCode.UNREADABLE, str(exc.args[0]))
    except TOO_MUCH as exc:
        return Declined(DeclineCode.LIMIT, _too_much(exc))
    return result


def _why_shared(before: str, draft: Draft, others: Sequence[str]) -> str:
    """The reason why a rewrite of one launch may not stay beside the other launches; empty if it may."""
    changed = disturbed(before, draft.kernel.text, draft.kernel.backend, draft.library, others)
    return f"it would change what {changed}, another launch of the sequence, runs" if changed else ""


def _beforehand(kernel: Kernel, rule: Rule) -> Declined | None:
    """The answer for a rule that a kernel's form alone rules out; None for any other."""
    joined = kernel.launch.joins_blocks or "__cluster_dims__" in kernel.text
    if joined and not rule.keeps_places:
        words = "the launch joins blocks (cluster, cooperative), whose number and places must stay"
        return Declined(DeclineCode.LAUNCH, words)
    if not rule.keeps_accesses and kernel.reached_twice:
        words = f"the kernel writes {kernel.reached_twice} and gets it by two ways"
        return Declined(DeclineCode.DEPENDENCE, words)
    return None


def _too_much(exc: Exception) -> str:
    if isinstance(exc, TooMuchWork):
        return "the source takes too long to analyse"
    return "an expression or a statement of the source is nested too deeply"


def _live(draft: Draft) -> Draft:
    """The draft without branches that other platforms compile or its entry discards.

    As it is if the kernel is not found.
    """
    if draft.kernel.backend is Backend.CUDA:
        options, text = draft.kernel.options, draft.kernel.text
        draft = _with_text(draft, without_foreign_platforms(text, options, draft.library))
    elif draft.kernel.backend is Backend.HIP:
        draft = _with_text(draft, with_coordinates_of_cuda(draft.kernel.text))
    try:
        return _with_text(draft, without_dead_branches(draft.source))
    except (LookupError, *TOO_MUCH):
        return draft


def _with_text(draft: Draft, text: str) -> Draft:
    if text == draft.kernel.text:
        return draft
    return replace(draft, kernel=draft.kernel.model_copy(update={"source": text}))
