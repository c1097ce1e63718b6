"""Drafts: the input and output of rules."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from warpsmith.domain.arguments.argument import Argument
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
    """The missing proof, in words that a user understands."""


def all_declined(places: Sequence[Declined]) -> Declined:
    """A single answer for several places, none of which can be rewritten. Its code is that of the first."""
    return Declined(places[0].code, "; ".join(place.reason for place in places))


@dataclass(frozen=True)
class BodyVariant:
    """Another body of the kernel, compiled instead of the original one if a condition holds.

    Later rules read and edit the original body only. If a variant is compiled, their parameters stay at the
    defaults; the constraints for this are added when the template is composed.
    """

    condition: Expression
    """Condition over parameters, also for the preprocessor; the original body is compiled if it is false."""
    body: str
    grid: tuple[Expression, ...]
    known: frozenset[str] = frozenset()
    """Parameters that the variant uses; `Draft.changed` adds those of the draft and of the change."""


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
    variants: tuple[BodyVariant, ...] = ()
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
        return self.kernel.backend.language.is_opencl_c

    @cached_property
    def element_bytes(self) -> Mapping[str, int]:
        """Bytes of an element of each argument, by the name of the kernel's parameter."""
        own = (v.name for v in self.source.variables if v.is_parameter and v.scope == self.source.kernel)
        return {n: a.dtype.size_bytes for n, a in zip(own, self.kernel.arguments, strict=False)}

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

    def changed(self, change: "RuleChange") -> "Draft":
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
        known = frozenset(p.name for p in self.parameters).union(names)
        added = () if change.variant is None else (replace(change.variant, known=known),)
        return replace(
            self,
            kernel=kernel,
            parameters=self.parameters + change.parameters,
            constraints=self.constraints + change.constraints,
            applied=(*self.applied, AppliedRule(rule=change.rule, detail=change.detail, parameters=names)),
            variants=self.variants + added,
        )


@dataclass(frozen=True)
class RuleChange:
    """Parts of a draft that a rule replaces; parts that are left out stay as they are."""

    rule: str
    """The rule's name."""
    detail: str
    """The places that it rewrote, in words."""
    edits: Sequence[Edit] = ()
    """Edits of the source as it was before the rule."""
    prologue: str = ""
    """Text in front of the source, such as macros."""
    launch: Launch | None = None
    arguments: tuple[Argument, ...] | None = None
    entry: str | None = None
    parameters: tuple[Parameter, ...] = ()
    """New ones."""
    constraints: tuple[Constraint, ...] = ()
    """New ones."""
    variant: BodyVariant | None = None
    """A new body for some configurations."""


MORE_THREADS = "the device allows no more threads in a block"
"""Reason of the constraints on the extents of a block."""


def limit(expression: str, reason: str) -> Constraint:
    """A constraint that a rule adds to the space."""
    return Constraint(expression=Expression(expression), reason=reason)


def product_of(launch: Launch) -> str:
    """Threads of a block, as a product of its extents."""
    return " * ".join(e.text if e.text.isidentifier() else f"({e.text})" for e in launch.block)


class Rule(ABC):
    """A rewrite that proves its precondition on the tree or declines."""

    name: str
    keeps_accesses = False
    """Every thread's accesses keep their order, so that arguments may lead to the same memory."""
    keeps_places = False
    """The grid, the block and every thread's place stay, so that blocks may wait for each other and read each
    other's shared memory."""
    needs_no_macro = False
    """True for a rewrite that is the same whatever a macro hides."""

    @abstractmethod
    def apply(self, draft: Draft) -> Draft | Declined:
        """The rewritten draft, or the reason for declining."""
