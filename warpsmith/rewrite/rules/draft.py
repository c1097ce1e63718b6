"""What rules read and hand on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job
from warpsmith.domain.kernel import Argument, Kernel, Launch
from warpsmith.domain.space import Constraint, Parameter, ParameterValue
from warpsmith.domain.template import AppliedRule
from warpsmith.rewrite.rules.facts import Facts
from warpsmith.rewrite.rules.tree import Edit, Source, apply_edits


@dataclass(frozen=True)
class Declined:
    """A rule whose precondition could not be proven, and why."""

    reason: str


@dataclass(frozen=True)
class Draft:
    """A template in the making."""

    job: Job
    kernel: Kernel
    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    applied: tuple[AppliedRule, ...] = ()
    library: tuple[str, ...] = ()
    """Texts of permitted headers that the source includes."""

    @cached_property
    def source(self) -> Source:
        """The kernel's source, parsed. Raises `LookupError` where the kernel is not found."""
        return Source(self.kernel.text, self.kernel.backend, self.kernel.entry, self.library)

    @cached_property
    def facts(self) -> Facts:
        """What the analysis knows about the kernel."""
        return Facts(self.source, tuple(e.text for e in self.kernel.launch.block), self.kernel.entry)

    @property
    def is_opencl(self) -> bool:
        """True for OpenCL C."""
        return self.kernel.backend is Backend.OPENCL

    def names(self) -> set[str]:
        """Names that a new parameter must not take."""
        return {p.name for p in self.parameters} | set(self.job.workloads[0].dimensions)

    def values(self) -> Mapping[str, ParameterValue]:
        """Every parameter at its default."""
        return {p.name: p.baseline_value for p in self.parameters}

    def changed(
        self,
        rule: str,
        detail: str,
        *,
        edits: list[Edit] | None = None,
        prologue: str = "",
        launch: Launch | None = None,
        arguments: tuple[Argument, ...] | None = None,
        entry: str | None = None,
        parameters: tuple[Parameter, ...] = (),
        constraints: tuple[Constraint, ...] = (),
    ) -> "Draft":
        """This draft after a rule was applied."""
        kernel = self.kernel.model_copy(
            update={
                "source": prologue + apply_edits(self.kernel.text, edits or ()),
                "launch": launch or self.kernel.launch,
                "arguments": arguments or self.kernel.arguments,
                "entry": entry or self.kernel.entry,
            }
        )
        note = AppliedRule(rule=rule, detail=detail, parameters=tuple(p.name for p in parameters))
        return replace(
            self,
            kernel=kernel,
            parameters=self.parameters + parameters,
            constraints=self.constraints + constraints,
            applied=(*self.applied, note),
        )


class Rule(Protocol):
    """One rewrite. It proves its precondition on the tree or declines."""

    name: str

    def apply(self, draft: Draft) -> Draft | Declined:
        """The draft rewritten, or why not."""
        ...
