"""From a user's kernel to a template, by the rewrite rules alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from warpsmith.domain.job import Job
from warpsmith.domain.kernel import MAX_SOURCE_BYTES, Kernel
from warpsmith.domain.space import Space
from warpsmith.domain.template import Template
from warpsmith.rewrite.bodies.body_variants import compose
from warpsmith.rewrite.rules import BLOCK_RULES, RULES, TEXT_RULES, Declined, Draft
from warpsmith.rewrite.source.dead_branches import without_dead_branches
from warpsmith.rewrite.source.foreign_platforms import without_foreign_platforms
from warpsmith.rewrite.source.included_headers import Library, included, inline_header_of
from warpsmith.rewrite.source.syntax_tree import entry_name


@dataclass(frozen=True)
class TemplateReport:
    """A template, and the reason for each rule that was not applied."""

    template: Template
    declined: tuple[str, ...]


def make_template(job: Job, include_dirs: Mapping[str, Path] | None = None) -> TemplateReport:
    """Apply every rule that the job's policy allows and that can prove its precondition.

    The user's own parameters and constraints are always kept. With the template's defaults, the kernel
    behaves as the user's kernel.

    Args:
        include_dirs: permitted include folders by name, for kernels whose entry is in a header.
    """
    known = include_dirs or {}
    folders = tuple(known[name] for name in job.kernel.includes if name in known)
    kernel = job.kernel
    library = Library(folders, kernel.files, kernel.include_dirs)
    text = inline_header_of(kernel.text, entry_name(kernel.entry), library)
    if len(text.encode()) <= MAX_SOURCE_BYTES:
        kernel = kernel.model_copy(update={"source": text})
    draft = Draft(
        job=job,
        kernel=kernel,
        parameters=job.parameters,
        constraints=job.constraints,
        library=included(kernel.text, library),
    )
    declined: list[str] = []
    if job.rewrite.enabled:
        draft = _live(draft)
        for rule in RULES:
            if not job.rewrite.permits(rule.name):
                declined.append(f"{rule.name}: not permitted by the job")
                continue
            refusal = _beforehand(kernel, rule.name)
            if refusal:
                declined.append(f"{rule.name}: {refusal}")
                continue
            try:
                result = rule.apply(draft)
            except LookupError as exc:
                result = Declined(str(exc.args[0]))
            if isinstance(result, Declined):
                declined.append(f"{rule.name}: {result.reason}")
            else:
                draft = result
    draft = compose(draft) if draft.applied else replace(draft, kernel=kernel)
    template = Template(
        kernel=draft.kernel,
        space=Space(parameters=draft.parameters, constraints=draft.constraints),
        applied=draft.applied,
    )
    return TemplateReport(template=template, declined=tuple(declined))


def _beforehand(kernel: Kernel, rule: str) -> str:
    """Why a kernel's form alone rules a rule out; empty if it does not."""
    joined = kernel.launch.joins_blocks or "__cluster_dims__" in kernel.text
    if joined and rule not in BLOCK_RULES:
        return "the launch joins blocks (cluster, cooperative), whose number and places must stay"
    if kernel.reached_twice and rule not in TEXT_RULES:
        return f"the kernel writes {kernel.reached_twice} and gets it by two ways"
    return ""


def _live(draft: Draft) -> Draft:
    """The draft without branches that other platforms compile or its entry discards.

    As it is if the kernel is not found.
    """
    if not draft.is_opencl:
        options, text = draft.kernel.options, draft.kernel.text
        draft = _with_text(draft, without_foreign_platforms(text, options, draft.library))
    try:
        return _with_text(draft, without_dead_branches(draft.source))
    except LookupError:
        return draft


def _with_text(draft: Draft, text: str) -> Draft:
    if text == draft.kernel.text:
        return draft
    return replace(draft, kernel=draft.kernel.model_copy(update={"source": text}))
