"""Checks of a launch's report, or of a binary. They run in the worker, on data read back from the child."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job, NumpyReference, Tolerance
from warpsmith.domain.jobs.plan import BufferPlan, Compiled, Family, WorkloadPlan
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.source.declarations.declared_variables import DeclaredVariables, declared_variables
from warpsmith.tuning.outputs.mismatch_causes import Mismatch, why_wrong
from warpsmith.tuning.outputs.symbols import variable_of, without_unit
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.verify.compare import Budget, compare, passes
from warpsmith.verify.defences import Defences
from warpsmith.verify.dtypes import epsilon
from warpsmith.verify.kept_elements import KeptElements, counted_ranges
from warpsmith.verify.run_report import Array, Ranges, RunReport
from warpsmith.verify.tolerance import SHORT_SUM, SMALLEST, SUM_FACTOR, default_tolerance, longest_sum
from warpsmith.verify.worlds import CANCELLING, WorldKind, kind_of

BUDGET_ELEMENTS = 1024
"""Number of compared elements below which the baseline's largest error is no basis for a budget."""
SINGLE_BYTES = 4
WORLD_LUCK = 4.0
"""Factor between the largest errors of two kernels that are equally exact, in few elements."""
WORLD_STRAYS = 1 / 64
"""Share of a world's elements that may be over the budget, however far. In short rows whose variance is a
difference of squares, a few elements have nearly all of the error, and how large it is, is luck: in 2,000
draws of such a layer norm the largest errors of two orders differed by a factor of up to 50, in 0.24 % of the
elements at most. Elements that are less exact on purpose are many."""
BUDGET_FAMILIES = (Family.DECLARED, Family.SCALED_UP, Family.SCALED_DOWN)
"""Families in which all elements are different draws, as a budget requires."""
SCALE_FAMILIES = frozenset({Family.SCALED_DOWN, Family.WIDE, Family.WORLD})
"""Families in which zeros that the user's kernel left may be an underflow."""
ROOMY = CANCELLING | {WorldKind.FAR_BELOW}
"""Worlds whose tolerances have room for cancellation, so that zeros pass although no scale is small."""
_COMPILERS = re.compile(r"\$\w+(\$\w+)*|__unnamed_\d+")


CheckResult = float | Rejected
"""The largest error of a right launch, in units of the tolerance, or why a launch is refused."""


@dataclass(frozen=True)
class CheckRules:
    """What the launches of a job are held to."""

    job: Job
    defences: Defences = field(default_factory=Defences)
    own_globals: frozenset[str] | None = frozenset()
    """Device variables that the user's kernel has as well; None: the launch is of that kernel."""
    is_steady: bool = True
    """Two runs of the user's kernel never differ, so a candidate's may not."""
    ties: Mapping[str, float] = field(default_factory=dict)
    """Share of the elements of integer outputs, by name, that may be a step off."""
    room: Mapping[str, float] = field(default_factory=dict)
    """Absolute error of float outputs, by name, that roundings explain however narrow the tolerance is."""


def check_run(
    rules: CheckRules,
    plan: WorkloadPlan,
    report: RunReport,
    expected: Mapping[str, Array],
    ranges: Mapping[str, Ranges] | None,
    known: CheckedCase | None = None,
    kept: Mapping[str, KeptElements] | None = None,
) -> CheckResult:
    """Guards, read-only inputs, device variables and outputs of one checked launch.

    Args:
        report: without elements that do not count.
        expected: what the elements that count of each mutated argument must hold, flat.
        ranges: where the elements lie that were brought back, in the whole outputs; None: all were.
        known: result of the user's kernel on these inputs; None: unknown, so there is no error budget.
        kept: which elements count of the outputs of which not all do, by name.
    """
    job, on, own_globals = rules.job, rules.defences, rules.own_globals
    if report.guard_violations and on.guards:
        names = ", ".join(report.guard_violations)
        return Rejected(stage=Stage.GUARD, reason=f"wrote outside {names}"[:2000], workload=plan.workload)
    if report.changed_inputs and on.read_only:
        names = ", ".join(report.changed_inputs)
        return Rejected(
            stage=Stage.GUARD, reason=f"changed the read-only {names}"[:2000], workload=plan.workload
        )
    written = [] if own_globals is None else sorted(set(report.changed_globals) - own_globals)
    if written and on.globals:
        reason = f"wrote the device variable {written[0]}, by which later launches can know of this one"
        return Rejected(stage=Stage.GUARD, reason=reason[:2000], workload=plan.workload)
    worst = 0.0
    spans = counted_ranges(ranges, kept or {})
    for buffer in plan.mutated:
        want = expected[buffer.name]
        elements, where = want.size, None if spans is None else spans[buffer.name]
        if where is not None:
            want = np.concatenate([want[start:stop] for start, stop in where])
        tolerance = tolerance_of(job, plan, buffer, known)
        if buffer.name in rules.ties:
            tolerance = tolerance.model_copy(update={"share": rules.ties[buffer.name], "within": 1.0})
        if tells_nothing(job, plan, buffer, expected[buffer.name], tolerance):
            continue
        tolerance = tolerance.model_copy(
            update={"atol": max(tolerance.atol, rules.room.get(buffer.name, 0.0))}
        )
        got = report.outputs[buffer.name]
        if plan.family is Family.WORLD and not job.non_finite and buffer.dtype.is_float:
            got = _with_overflows(got, want)
        budget = None
        if (
            on.error_budget
            and not tolerance.share
            and known is not None
            and _has_budget(job, plan, buffer, elements, known)
        ):
            own_error = _own_error(plan, buffer, known, tolerance)
            strays = WORLD_STRAYS if plan.family is Family.WORLD else 0.0
            budget = Budget(own_error, buffer.dtype, longest_sum(plan, buffer), strays)
        error = compare(got, want, tolerance, budget, is_sample=got.size < elements)
        poison, own = report.poison.get(buffer.name, b""), own_globals is None
        at = None if ranges is None else ranges[buffer.name]
        mismatch = Mismatch(buffer, got, want, tolerance, error, at, (kept or {}).get(buffer.name))
        if error.wrong or (on.poison and mismatch.hides_unwritten(poison)):
            why = why_wrong(job, mismatch, poison, own=own)
            return _wrong(plan, buffer, f"is wrong: {why}")
        if error.over_budget:
            return _wrong(plan, buffer, f"is less exact than it was: {error.detail}")
        worst = max(worst, error.max_error)
        if report.repeated is not None and on.determinism:
            again, got = report.repeated[buffer.name], report.where_repeated(buffer.name, got)
            is_part = got.size < elements
            want = report.where_repeated(buffer.name, want)
            if rules.is_steady and own_globals is not None:
                apart = compare(again, got, tolerance).max_error
                refused = apart > 0
            else:
                # Sums in whatever order the device takes: how far apart two of them lie is luck.
                error = compare(again, want, tolerance, budget, is_sample=is_part)
                apart = error.max_error
                refused = bool(error.wrong or error.over_budget)
            if refused:
                words = f"differs between two launches on the same inputs, by {apart:.3g} tolerances"
                return _wrong(plan, buffer, words)
    return worst


def tells_nothing(
    job: Job, plan: WorkloadPlan, buffer: BufferPlan, want: Array, tolerance: Tolerance
) -> bool:
    """True if zeros would pass as this output, because it underflows on these inputs or its scale vanishes.

    What a right kernel leaves there is luck: an overflowing sum in the divisor gives zero in one order and
    not-a-number in another. Zeros that are the exact answer, to a float64 reference or where inputs are
    zeros, must be met. So must results of inputs that cancel or lie far from zero, where tolerances
    are wide and no scale is small. A workload's own
    distribution is judged once for the job, by `untestable`.

    Args:
        want: all elements that count of the output, flat. None may be left on other inputs.
    """
    if not want.size:
        return True
    if plan.family is Family.DECLARED or not buffer.dtype.is_float:
        return False
    if plan.family is Family.WORLD and kind_of(plan.variant) in ROOMY:
        return False
    if not passes(np.broadcast_to(np.zeros((), want.dtype), want.shape), want, tolerance):
        return False
    is_exact = isinstance(job.reference, NumpyReference) or plan.family not in SCALE_FAMILIES
    return not is_exact or bool(np.any(want))


def _with_overflows(got: Array, want: Array) -> Array:
    """An output with not-a-number wherever that is wanted.

    Finite inputs that overflow leave it to the order of operations whether the result is a number.
    """
    overflown = np.isnan(want)
    return np.where(overflown, want.astype(got.dtype), got) if overflown.any() else got


def tolerance_of(job: Job, plan: WorkloadPlan, buffer: BufferPlan, known: CheckedCase | None) -> Tolerance:
    """The job's own tolerance, or the default for the output's values.

    The absolute part of either grows if other inputs make the output larger, and shrinks in worlds that make
    it much smaller.
    """
    tolerance = job.tolerance(buffer.name, buffer.dtype)
    if known is not None and buffer.dtype.is_float and buffer.name not in job.tolerances:
        size = known.sizes.get(buffer.name)
        if size is not None:
            terms = longest_sum(plan, buffer)
            tolerance = default_tolerance(tolerance, buffer.dtype, size, terms)
    growth = 1.0 if known is None else known.growth.get(buffer.name, 1.0)
    if growth == 1.0:
        return tolerance
    # Below its smallest normal numbers no type is exact.
    atol = max(tolerance.atol * growth, min(tolerance.atol, SMALLEST.get(buffer.dtype, 2.0**-1022)))
    return tolerance.model_copy(update={"atol": atol, "within": tolerance.within * growth})


def spread(job: Job, plan: WorkloadPlan, report: RunReport, known: CheckedCase) -> float:
    """Largest difference between a launch and its repetition, in units of the tolerance."""
    if report.repeated is None:
        return 0.0
    return max(
        compare(
            report.repeated[b.name],
            report.where_repeated(b.name, report.outputs[b.name]),
            _of_two(tolerance_of(job, plan, b, known)),
        ).max_error
        for b in plan.mutated
    )


def _of_two(tolerance: Tolerance) -> Tolerance:
    """What two right launches may differ by in elements that the tolerance's share is for."""
    return tolerance.model_copy(update={"share": 2 * tolerance.share, "within": 2 * tolerance.within})


def undeclared_globals(kernel: ConfiguredKernel, compiled: Compiled, own: frozenset[str]) -> Rejected | None:
    """A candidate's device variables, other than constants, that the user's kernel does not have.

    Static variables of a header are the same ones in both, whatever hash of the source their symbols hold.
    Left out are variables of a toolkit's headers that the code never names.
    """
    if not compiled.globals:
        return None
    known = {without_unit(symbol) for symbol in own}
    declared = _declared(kernel)
    others = (g for g in compiled.globals if without_unit(g) not in known)
    found = [g for g in others if not _is_left_out(g, compiled, declared) and not _is_constant(kernel, g)]
    if not found:
        return None
    reason = f"has {found[0]}, by which launches can know of each other, and which your kernel has not"
    return Rejected(stage=Stage.COMPILE, reason=reason[:2000], facts=compiled.facts)


def undeclared_words(compiled: Compiled, own: frozenset[str]) -> Rejected | None:
    """A candidate's telling words that the user's kernel does not use."""
    found = [word for word in compiled.telling if word not in own]
    if not found:
        return None
    reason = f"depends on {found[0]}, so that it may be another kernel elsewhere, and your kernel does not"
    return Rejected(stage=Stage.COMPILE, reason=reason, facts=compiled.facts)


def kept_variables(kernel: ConfiguredKernel, compiled: Compiled) -> list[str]:
    """Device variables that the user's kernel may keep something in between launches.

    Left out are constants, and variables that no text of the job declares: those of a toolkit's headers.
    """
    if not compiled.globals:
        return []
    names = _declared(kernel).names
    kept = (g for g in compiled.globals if variable_of(g) in names and not _is_constant(kernel, g))
    return [without_unit(g) for g in kept]


def _declared(kernel: ConfiguredKernel) -> DeclaredVariables:
    # The values of most parameters are numbers, which declare nothing.
    words = ((name, text) for name, text in sorted(kernel.defines.items()) if not _is_number(text))
    return declared_variables(
        (kernel.kernel.text, *kernel.kernel.files.values()),
        tuple(f"{name} {text}" for name, text in words),
        is_opencl=kernel.kernel.backend is Backend.OPENCL,
    )


def _is_number(text: str) -> bool:
    return text[:1].isdecimal()


def _is_left_out(symbol: str, compiled: Compiled, declared: DeclaredVariables) -> bool:
    """True of a variable that the code never names: a constant of the job's texts, or a toolkit's variable.

    That a constant of the same name may be declared otherwise, by words that are put together of parts, does
    not count here: what is never named is memory that only the end of another variable reaches.
    """
    name = variable_of(symbol)
    if symbol not in compiled.unnamed or not name.isascii():
        return False
    return name in declared.seen_as_constants or (declared.are_all_known and name not in declared.names)


def _is_constant(kernel: ConfiguredKernel, symbol: str) -> bool:
    """True if the variable of this (perhaps mangled) symbol is declared const, and nowhere else otherwise.

    A write through a cast is detected later by the variable's contents. The compiler's own symbols are texts
    of printf and assert.
    """
    texts = (kernel.kernel.text, *kernel.kernel.files.values())
    if _COMPILERS.fullmatch(symbol) and not any(symbol in text for text in texts):
        return True
    return variable_of(symbol) in _declared(kernel).constants


def _has_budget(job: Job, plan: WorkloadPlan, buffer: BufferPlan, elements: int, known: CheckedCase) -> bool:
    if plan.family is Family.WORLD:
        is_telling = kind_of(plan.variant) is WorldKind.PLAIN
    else:
        is_telling = elements >= BUDGET_ELEMENTS and plan.family in BUDGET_FAMILIES
    return (
        isinstance(job.reference, NumpyReference)
        and buffer.dtype.is_float
        and is_telling
        and known.elements > 0
    )


def _own_error(plan: WorkloadPlan, buffer: BufferPlan, known: CheckedCase, tolerance: Tolerance) -> float:
    """The error of the user's kernel; in a world, whose few elements leave much to luck, some more."""
    if plan.family is not Family.WORLD:
        return known.max_error
    size = known.sizes.get(buffer.name, 0.0)
    allowed = tolerance.atol + tolerance.rtol * size
    step = epsilon(Dtype.FLOAT32) if buffer.dtype.size_bytes < SINGLE_BYTES else epsilon(buffer.dtype)
    rounded = SUM_FACTOR * step * size * math.sqrt(max(SHORT_SUM, longest_sum(plan, buffer)))
    return WORLD_LUCK * known.max_error + (rounded / allowed if allowed else 0.0)


def _wrong(plan: WorkloadPlan, buffer: BufferPlan, reason: str) -> Rejected:
    return Rejected(stage=Stage.CORRECTNESS, reason=f"{buffer.name} {reason}"[:2000], workload=plan.workload)
