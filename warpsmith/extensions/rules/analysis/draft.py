"""Drafts: the input and output of rules."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Constraint, Parameter, ParameterValue
from warpsmith.domain.templates.template import AppliedRule
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.source.tree.syntax_tree import Edit, Source, apply_edits


@dataclass(frozen=True)
class Declined:
    """The answer of a rule whose precondition could not be proven."""

    code: DeclineCode
    reason: str
    """Why, in words that a user understands."""


def all_declined(places: Sequence[Declined]) -> Declined:
    """One answer for several places, none of which can be rewritten. Its code is that of the first."""
    return Declined(places[0].code, "; ".join(place.reason for place in places))


@dataclass(frozen=True)
class Variant:
    """Another body of the kernel, compiled instead of the original one if a condition holds.

    Later rules read and edit the original body only. If a variant is compiled, their parameters stay at the
    defaults; the constraints for this are added when the template is composed.
    """

    condition: Expression
    """Condition over parameters; the original body is compiled if it is false."""
    macro: str
    """The condition in the form for the preprocessor."""
    body: str
    grid: tuple[Expression, ...]
    known: frozenset[str]
    """Parameters that the variant uses."""


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
    macros: Mapping[str, str] = field(default_factory=dict)
    """Words that only macros brought into the source, with the macro that the user wrote."""
    variants: tuple[Variant, ...] = ()
    """Other bodies that the kernel may have."""

    @cached_property
    def source(self) -> Source:
        """The kernel's parsed source. Raises `LookupError` if the kernel is not found."""
        return Source(self.kernel.text, self.kernel.backend, self.kernel.entry, self.library, self.macros)

    @cached_property
    def facts(self) -> Facts:
        """Facts about the kernel from the analysis."""
        launch = self.kernel.launch
        block, grid = (tuple(e.text for e in extents) for extents in (launch.block, launch.grid))
        return Facts(self.source, block, self.kernel.entry, grid)

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

    def rewritten(self, edits: Iterable[Edit]) -> "Draft":
        """This draft with its source edited, before `changed` records the rule."""
        text = apply_edits(self.kernel.text, edits)
        return replace(self, kernel=self.kernel.model_copy(update={"source": text}))

    def changed(self, change: "Change") -> "Draft":
        """This draft after a rule was applied."""
        kernel = self.kernel.model_copy(
            update={
                "source": change.prologue + apply_edits(self.kernel.text, change.edits),
                "launch": change.launch or self.kernel.launch,
                "arguments": change.arguments or self.kernel.arguments,
                "entry": change.entry or self.kernel.entry,
            }
        )
        names = tuple(p.name for p in change.parameters)
        return replace(
            self,
            kernel=kernel,
            parameters=self.parameters + change.parameters,
            constraints=self.constraints + change.constraints,
            applied=(*self.applied, AppliedRule(rule=change.rule, detail=change.detail, parameters=names)),
            variants=self.variants if change.variant is None else (*self.variants, change.variant),
        )


@dataclass(frozen=True)
class Change:
    """What a rule makes of a draft; what is left out stays as it is."""

    rule: str
    """The rule's name."""
    detail: str
    """What it did, in words."""
    edits: Sequence[Edit] = ()
    """Of the source as it was before the rule."""
    prologue: str = ""
    """Text in front of the source, such as macros."""
    launch: Launch | None = None
    arguments: tuple[Argument, ...] | None = None
    entry: str | None = None
    parameters: tuple[Parameter, ...] = ()
    """New ones."""
    constraints: tuple[Constraint, ...] = ()
    """New ones."""
    variant: Variant | None = None
    """A new body for some configurations."""


class Rule(ABC):
    """One rewrite. It proves its precondition on the tree or declines."""

    name: str
    keeps_accesses = False
    """Every thread's accesses keep their order, so that arguments may lead to the same memory."""
    keeps_places = False
    """The grid, the block and every thread's place stay, so that blocks may wait for each other and read each
    other's shared memory."""
    needs_no_macro = False
    """It does the same whatever a macro hides."""

    @abstractmethod
    def apply(self, draft: Draft) -> Draft | Declined:
        """The rewritten draft, or the reason for declining."""
