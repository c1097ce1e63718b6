"""Port of the rewriter: from a user's kernel to a template without a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from warpsmith import registry
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.declined_rule import DeclinedRule
from warpsmith.domain.templates.template import Template


@dataclass(frozen=True)
class TemplateReport:
    """A template, and the reason for each rule that was not applied."""

    template: Template
    declined: tuple[DeclinedRule, ...]


class Rewriter(Protocol):
    """Makes templates by rewrite rules."""

    def make_template(self, job: Job, include_dirs: Mapping[str, Path] | None = None) -> TemplateReport:
        """Apply every rule that the job's policy allows and that can prove its precondition.

        Args:
            include_dirs: permitted include folders by name, for kernels whose entry is in a header.
        """
        ...

    def kernel_traits(self, job: Job, include_dirs: Mapping[str, Path] | None = None) -> frozenset[str]:
        """Forms of a job's first kernel, such as `row`; empty where its source does not tell."""
        ...


def rewriter() -> Rewriter:
    """The installed rewriter.

    Raises:
        ValueError: none is installed, or several are.
    """
    return cast(Rewriter, registry.load_only(registry.Kind.REWRITER))


def rule_names() -> tuple[str, ...]:
    """Names of the rewrite rules that can be left out one by one, in the order in which they compose."""
    return tuple(registry.named(registry.Kind.RULE))
