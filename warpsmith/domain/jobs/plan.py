"""A job made concrete for one workload: all values are numbers, ready for a device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from typing import Any

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.arguments.draw import Distribution, Draw
from warpsmith.domain.arguments.draw_checks import draw_problem
from warpsmith.domain.arguments.image import ImageFormat
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.by_value_plan import (
    PointerPlan,
    TablePlan,
    ValuePlan,
    number,
    pointer_plan,
    table_plan,
    value_plan,
)
from warpsmith.domain.jobs.compared_elements import MaskPlan, mask_plan
from warpsmith.domain.jobs.job import CacheState, Workload
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.outcome import CompileFacts
from warpsmith.errors import ExpressionError


class Family(StrEnum):
    """Transformations of a job's drawn inputs, so that a kernel cannot be right for one kind of input
    only."""

    DECLARED = "declared"
    SCALED_UP = "scaled_up"
    SCALED_DOWN = "scaled_down"
    ZEROS = "zeros"
    SPARSE = "sparse"
    SORTED = "sorted"
    SPIKE = "spike"
    REPEATED = "repeated"
    WIDE = "wide"
    EDGE_CASE = "world"
    """Values, relations and scalars by lot, on small shapes (`verify.edge_cases`). The variant says which."""


@dataclass(frozen=True)
class CaseKey:
    """Names one set of inputs: of which workload, of which family, and which draw of it."""

    workload: str
    """The workload's `Workload.key`."""
    family: Family = Family.DECLARED
    variant: int = 0
    """Number of a further set of values with the same seed and family."""

    @property
    def is_own_draw(self) -> bool:
        """True for the inputs that the workload itself is timed with."""
        return self.family is Family.DECLARED and self.variant == 0

    def __str__(self) -> str:
        """For messages; nothing reads it."""
        return self.workload if self.is_own_draw else f"{self.workload}#{self.family.value}{self.variant}"


@dataclass(frozen=True)
class BufferPlan:
    """A buffer argument of a workload in numbers: extents, draw, and the elements that count."""

    name: str
    dtype: Dtype
    role: Role
    shape: tuple[int, ...]
    draw: Draw | None
    image: ImageFormat | None = None
    """Set if the argument is an image; its bytes lie row by row as those of a buffer."""
    moved: float = 0.0
    """Largest share of its size by which each float is moved at random, to see what a rounding may change."""
    kept: MaskPlan | None = None
    """Condition of the elements that are compared; None: all. The worker alone has it: no child is told."""
    in_part: bool = False
    """Not all elements count, so that launches could keep something in the others."""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements, without guard zones."""
        return self.elements * self.dtype.size_bytes


@dataclass(frozen=True)
class ScalarPlan:
    """A scalar argument of a workload as a number."""

    name: str
    dtype: Dtype
    value: int | float


@dataclass(frozen=True)
class LocalPlan:
    """A `__local` argument. Its size depends on the configuration and is in `LaunchSize.local_bytes`."""

    name: str


@dataclass(frozen=True)
class ScratchPlan:
    """Memory between the launches of a sequence. Its size is in `LaunchSize.scratch_bytes`."""

    name: str
    dtype: Dtype


ArgumentPlan = BufferPlan | ScratchPlan | ScalarPlan | LocalPlan | ValuePlan | PointerPlan | TablePlan


@dataclass(frozen=True)
class WorkloadPlan:
    """All arguments of one workload, in the kernel's order, and the seed of its inputs.

    The same plan gives the same inputs in every process: `verify.inputs` draws them from the seed,
    the argument's name, the family, the variant and nothing else.
    """

    workload: str
    """The workload's `Workload.key`."""
    arguments: tuple[ArgumentPlan, ...]
    seed: int
    family: Family = Family.DECLARED
    variant: int = 0
    """Number of a further set of values with the same seed and family."""
    behind: tuple[BufferPlan | TablePlan, ...] = ()
    """Memory that the kernel gets only by addresses in arguments, and its symbols."""

    @property
    def key(self) -> CaseKey:
        """Names the inputs; a device holds the buffers of a plan under it."""
        return CaseKey(self.workload, self.family, self.variant)

    @property
    def buffers(self) -> tuple[BufferPlan, ...]:
        """The buffers, in order: arguments first, then those to which arguments lead, and symbols."""
        return tuple(a for a in (*self.arguments, *self.behind) if isinstance(a, BufferPlan))

    @property
    def symbols(self) -> tuple[BufferPlan, ...]:
        """Buffers that are variables of the program, so that nobody allocates them."""
        return tuple(b for b in self.buffers if b.role is Role.SYMBOL)

    @property
    def allocated(self) -> tuple[BufferPlan, ...]:
        """Buffers other than symbols, in order."""
        return tuple(b for b in self.buffers if b.role is not Role.SYMBOL)

    @property
    def tables(self) -> tuple[TablePlan, ...]:
        """The arrays of addresses, in the same order."""
        return tuple(a for a in (*self.arguments, *self.behind) if isinstance(a, TablePlan))

    @property
    def scratch(self) -> tuple[ScratchPlan, ...]:
        """The memory between launches, in order."""
        return tuple(a for a in self.arguments if isinstance(a, ScratchPlan))

    @property
    def mutated(self) -> tuple[BufferPlan, ...]:
        """The buffers that the kernel writes."""
        return tuple(b for b in self.buffers if b.role in (Role.OUTPUT, Role.INOUT))


def moved(plan: WorkloadPlan, share: float) -> WorkloadPlan:
    """The plan with each float of its inputs moved at random by up to this share of its size."""

    def other(a: Any) -> Any:
        return replace(a, moved=share) if isinstance(a, BufferPlan) else a

    return replace(plan, arguments=tuple(map(other, plan.arguments)), behind=tuple(map(other, plan.behind)))


@dataclass(frozen=True)
class Compiled:
    """A binary with the entries that may be launched: one, or those of a sequence.

    `entry` is the symbol in the binary (the mangled name if the source is C++).
    """

    binary: bytes
    entry: str
    facts: CompileFacts
    log: str = ""
    globals: tuple[str, ...] = ()
    """Writable device variables, in which launches could remember earlier launches."""
    unnamed: tuple[str, ...] = ()
    """Subset of `globals` that no code names: constants of headers that a compiler keeps for nobody."""
    telling: tuple[str, ...] = ()
    """Words by which the source depends on where, when or as what it is compiled; see
    `backends.probes.preprocessor_probes`."""
    may_tell: bool = False
    """True: such words were not looked for, and by its text the source could depend on one (CUDA, HIP)."""
    way: str = ""
    """Compiler and mode of the binary, if the back end has several; other configurations begin with them."""
    then_entries: tuple[str, ...] = ()
    """Symbols of the further launches of a sequence, in order."""

    @property
    def entries(self) -> tuple[str, ...]:
        """The symbols of all launches, in order."""
        return (self.entry, *self.then_entries)


@dataclass(frozen=True)
class TimedCheck:
    """The check of one random launch among the timed ones."""

    ranges: Mapping[str, Sequence[tuple[int, int]]]
    """Half-open element ranges of every mutated argument."""
    other: tuple[Family, int] | None = None
    """Family and variant of other inputs that this launch may get; None: the workload's own."""
    redraw: bool | None = None
    """True: the launch gets the other inputs if they can be written between two samples. None: at random."""
    spoiled: bool | None = None
    """True: some of its output is overwritten before it. None: at random, if the output holds the answer to
    other inputs anyway."""


ENOUGH_S = 2.0
LEAST_SAMPLES = 3
STEADY_LAUNCH_US = 0.5e6
"""Launch time in µs above which a launch that was timed once needs no other launch before its next timing:
what caches, clocks and page faults cost is negligible."""
LONG_LAUNCH_US = 2000.0
"""Threshold like `STEADY_LAUNCH_US` for cold timings right after others: clocks are up, and caches cold."""
LONGEST_S = 6.0
"""Time in seconds beyond which the least number of samples is no longer enforced."""


@dataclass(frozen=True)
class TimingPlan:
    """Timing of one kernel. The number of samples is fixed before the first timed launch.

    A sample is the device time of `launches` consecutive launches divided by their number.
    """

    cache: CacheState
    samples: int
    launches: int = 0
    """Launches per sample. 0: the device chooses, so that a sample is well above its clock's resolution."""
    give_up_above_us: float | None = None
    """Time in µs above which timing stops after three samples if all of them exceed it; the result is then
    partial."""
    check: TimedCheck | None = None
    apart: bool = True
    """If true, no launch finds the result for its own inputs in its output buffer."""
    enough_s: float = ENOUGH_S
    """Total seconds of sampling that suffice; slower kernels get fewer samples."""
    least: int = LEAST_SAMPLES
    """Least number of samples, unless they would take longer than `LONGEST_S`."""
    is_warm: bool = False
    """Another process has just kept the device busy, so that its clocks are up."""
    fresh: bool = False
    """Every launch of a sample gets inputs that no launch had before, written untimed before the sample.
    `launches` is the number of launches of a sample then."""

    def samples_of(self, sample_us: float) -> int:
        """Number of samples for a sample of this length; a length of 0 is unknown."""
        if sample_us <= 0.0:
            return self.samples
        least = self.least if self.least * sample_us <= LONGEST_S * 1e6 else 1
        return min(self.samples, max(least, int(self.enough_s * 1e6 / sample_us)))


@dataclass(frozen=True)
class TimingSamples:
    """Result of a `TimingPlan`: µs per launch, one number per sample."""

    samples_us: tuple[float, ...]
    launches: int
    complete: bool = True


def plan_workload(
    kernel: Kernel, workload: Workload, scope: dict[str, int | float | bool | str], seed: int
) -> WorkloadPlan:
    """The arguments of `kernel` for `workload` as numbers.

    Args:
        scope: names beyond the dimensions (parameters at their defaults, device limits).
        seed: seed of the inputs.

    Raises:
        ExpressionError: a shape or value cannot be evaluated.
    """
    names = scope | workload.scope()
    arguments = tuple(_argument(kernel, a, names) for a in kernel.arguments)
    behind = tuple(_memory(kernel, a, names) for a in kernel.buffers)
    return WorkloadPlan(workload=workload.key, arguments=arguments, seed=seed, behind=behind)


def _argument(kernel: Kernel, a: Argument, names: Mapping[str, Value]) -> ArgumentPlan:
    if a.role is Role.LOCAL:
        return LocalPlan(a.name)
    if a.role is Role.SCRATCH:
        return ScratchPlan(a.name, a.dtype)
    if a.role is Role.POINTER:
        return pointer_plan(kernel, a, names)
    if a.role is Role.STRUCT or a.values:
        return value_plan(kernel, a, names)
    if a.role is Role.SCALAR:
        assert a.value is not None
        return ScalarPlan(a.name, a.dtype, number(a.value, a.dtype, names))
    return _memory(kernel, a, names)


def _memory(kernel: Kernel, a: Argument, names: Mapping[str, Value]) -> BufferPlan | TablePlan:
    if a.role is Role.POINTERS:
        return table_plan(kernel, a, names)
    shape = tuple(extent.integer(names) for extent in a.shape)
    kept = mask_plan(kernel, a, names)
    return BufferPlan(
        a.name, a.dtype, a.role, shape, _drawn(a, shape, names), a.image, kept=kept, in_part=kept is not None
    )


def _drawn(argument: Argument, shape: tuple[int, ...], names: Mapping[str, Value]) -> Draw | None:
    """The draw of an argument in numbers."""
    draw = argument.draw
    if argument.role is Role.SYMBOL and argument.value is not None:
        draw = Draw(distribution=Distribution.CONSTANT, low=number(argument.value, argument.dtype, names))
    if draw is None:
        return None
    draw = draw.resolved(names)
    problem = draw_problem(draw, argument.dtype, shape) if min(shape, default=0) >= 1 else ""
    if problem:
        raise ExpressionError(argument.name, f"draw.{problem}")
    return draw
