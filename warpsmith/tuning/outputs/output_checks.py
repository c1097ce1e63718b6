"""Checks of a launch's report. They run in the worker, on data read back from the child."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.by_value_plan import number
from warpsmith.domain.jobs.job import Job, NumpyReference, Tolerance
from warpsmith.domain.jobs.plan import BufferPlan, Family, ScalarPlan, WorkloadPlan
from warpsmith.domain.templates.outcome import FailedCase, Rejected, Stage, WrongElement
from warpsmith.tuning.outputs.mismatch_causes import Mismatch, why_wrong
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.verify.compare import ErrorBudget, ErrorReport, compare, passes
from warpsmith.verify.defences import Defences
from warpsmith.verify.dtypes import epsilon
from warpsmith.verify.edge_cases import CANCELLING, EdgeCase, kind_of
from warpsmith.verify.element_masks import ElementMask, counted_ranges
from warpsmith.verify.run_report import Array, Ranges, RunReport
from warpsmith.verify.tolerance import SHORT_SUM, SMALLEST, SUM_FACTOR, default_tolerance, longest_sum

BUDGET_ELEMENTS = 1024
"""Number of compared elements below which the baseline's largest error is no basis for a budget."""
SINGLE_BYTES = 4
EDGE_CASE_LUCK = 4.0
"""Factor between the largest errors of two kernels that are equally exact, in few elements."""
EDGE_CASE_STRAYS = 1 / 64
"""Share of an edge case's elements that may be over the budget, however far. In short rows whose variance is
a difference of squares, a few elements have nearly all of the error, and how large it is, is luck: in 2,000
draws of such a layer norm the largest errors of two orders differed by a factor of up to 50, in 0.24 % of the
elements at most. Elements that are less exact on purpose are many."""
BUDGET_FAMILIES = (Family.DECLARED, Family.SCALED_UP, Family.SCALED_DOWN)
"""Families in which all elements are different draws, as a budget requires."""
SCALE_FAMILIES = frozenset({Family.SCALED_DOWN, Family.WIDE, Family.EDGE_CASE})
"""Families in which zeros that the user's kernel left may be an underflow."""
ROOMY = CANCELLING | {EdgeCase.FAR_BELOW}
"""Edge cases whose tolerances have room for cancellation, so that zeros pass although no scale is small."""

CheckResult = float | Rejected
"""The largest error of a right launch, in units of the tolerance, or its rejection."""


@dataclass(frozen=True)
class CheckRules:
    """Rules that the launches of a job are held to."""

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


@dataclass(frozen=True)
class CheckedRun:
    """Report of one checked launch beside the values and rules that it is held to."""

    rules: CheckRules
    plan: WorkloadPlan
    report: RunReport
    """Report without elements that do not count."""
    expected: Mapping[str, Array]
    """Right values of the elements that count of each mutated argument, flat."""
    ranges: Mapping[str, Ranges] | None
    """Element ranges that were brought back, in the whole outputs; None: all were."""
    known: CheckedCase | None = None
    """Result of the user's kernel on these inputs; None: unknown, so there is no error budget."""
    masks: Mapping[str, ElementMask] = field(default_factory=dict)
    """Masks of the elements that count, by name, of outputs of which not all do."""

    def outputs(self) -> Iterator["CheckedOutput"]:
        """Outputs that say something about the kernel on these inputs, in the order of the arguments."""
        spans = counted_ranges(self.ranges, self.masks)
        for buffer in self.plan.mutated:
            output = self._output(buffer, None if spans is None else spans[buffer.name])
            if output is not None:
                yield output

    def refused(self, stage: Stage, reason: str, wrong: Sequence[WrongElement] = ()) -> Rejected:
        """A rejection of this launch."""
        plan = self.plan
        case = FailedCase(
            shape=plan.workload,
            family=plan.family.value,
            kind=kind_of(plan.variant).value if plan.family is Family.EDGE_CASE else "",
            scalars=changed_scalars(self.rules.job, plan),
            wrong=tuple(wrong),
        )
        return Rejected(stage=stage, reason=reason[:2000], workload=plan.workload).on(case)

    def _output(self, buffer: BufferPlan, where: Ranges | None) -> "CheckedOutput | None":
        """An output beside its right values in some ranges; None if it tells nothing."""
        job, plan, rules, whole = self.rules.job, self.plan, self.rules, self.expected[buffer.name]
        want = whole if where is None else np.concatenate([whole[start:stop] for start, stop in where])
        tolerance = tolerance_of(job, plan, buffer, self.known)
        if buffer.name in rules.ties:
            tolerance = tolerance.model_copy(update={"share": rules.ties[buffer.name], "within": 1.0})
        if tells_nothing(job, plan, buffer, whole, tolerance):
            return None
        atol = max(tolerance.atol, rules.room.get(buffer.name, 0.0))
        tolerance = tolerance.model_copy(update={"atol": atol})
        got = self.report.outputs[buffer.name]
        if plan.family is Family.EDGE_CASE and not job.non_finite and buffer.dtype.is_float:
            got = _with_overflows(got, want)
        return CheckedOutput(self, buffer, got, want, tolerance, whole.size)


@dataclass(frozen=True)
class CheckedOutput:
    """Compared elements of one output of a checked launch."""

    run: CheckedRun
    buffer: BufferPlan
    got: Array
    want: Array
    tolerance: Tolerance
    elements: int
    """Number of elements that count in the whole output."""

    @property
    def is_part(self) -> bool:
        """True if part of the elements that count were brought back."""
        return self.got.size < self.elements

    @cached_property
    def budget(self) -> ErrorBudget | None:
        """Exactness required within the tolerance; None if the baseline gives no basis for it."""
        run, buffer, known = self.run, self.buffer, self.run.known
        if not run.rules.defences.error_budget or self.tolerance.share or known is None:
            return None
        if not _has_budget(run.rules.job, run.plan, buffer, self.elements, known):
            return None
        own_error = _own_error(run.plan, buffer, known, self.tolerance)
        strays = EDGE_CASE_STRAYS if run.plan.family is Family.EDGE_CASE else 0.0
        return ErrorBudget(own_error, buffer.dtype, longest_sum(run.plan, buffer), strays)

    @cached_property
    def error(self) -> ErrorReport:
        """Errors against the right values."""
        return compare(self.got, self.want, self.tolerance, self.budget, is_part=self.is_part)

    def refused(self, reason: str, wrong: Sequence[WrongElement] = ()) -> Rejected:
        """A rejection of the launch for this output."""
        return self.run.refused(Stage.CORRECTNESS, f"{self.buffer.name} {reason}", wrong)


def guard_zones(run: CheckedRun) -> Rejected | None:
    """Refuses writes outside of the buffers."""
    if not run.report.guard_violations or not run.rules.defences.guards:
        return None
    return run.refused(Stage.GUARD, f"wrote outside {', '.join(run.report.guard_violations)}")


def read_only_inputs(run: CheckedRun) -> Rejected | None:
    """Refuses changes of inputs that are declared read-only."""
    if not run.report.changed_inputs or not run.rules.defences.read_only:
        return None
    return run.refused(Stage.GUARD, f"changed the read-only {', '.join(run.report.changed_inputs)}")


def device_variables(run: CheckedRun) -> Rejected | None:
    """Refuses changes of device variables that the user's kernel does not have."""
    own = run.rules.own_globals
    written = [] if own is None else sorted(set(run.report.changed_globals) - own)
    if not written or not run.rules.defences.globals:
        return None
    reason = f"wrote the device variable {written[0]}, by which later launches can know of this one"
    return run.refused(Stage.GUARD, reason)


def output_values(output: CheckedOutput) -> Rejected | None:
    """Refuses elements beyond the tolerance, and elements that were never written."""
    run, buffer, error = output.run, output.buffer, output.error
    poison = run.report.poison.get(buffer.name, b"")
    at = None if run.ranges is None else run.ranges[buffer.name]
    mismatch = Mismatch(
        buffer, output.got, output.want, output.tolerance, error, at, run.masks.get(buffer.name)
    )
    if not error.wrong and not (run.rules.defences.poison and mismatch.hides_unwritten(poison)):
        return None
    why = why_wrong(run.rules.job, mismatch, poison, own=run.rules.own_globals is None)
    return output.refused(f"is wrong: {why}", mismatch.first_few())


def exactness(output: CheckedOutput) -> Rejected | None:
    """Refuses errors within the tolerance but over the error budget."""
    if not output.error.over_budget:
        return None
    return output.refused(f"is less exact than it was: {output.error.detail}")


def repetition(output: CheckedOutput) -> Rejected | None:
    """Refuses a second launch on the same inputs that differs; of an unsteady kernel, one that is wrong."""
    run, name, report = output.run, output.buffer.name, output.run.report
    if report.repeated is None or not run.rules.defences.determinism:
        return None
    again = report.repeated[name]
    got, want = report.where_repeated(name, output.got), report.where_repeated(name, output.want)
    if run.rules.is_steady and run.rules.own_globals is not None:
        apart = compare(again, got, output.tolerance).max_error
        differs = apart > 0
    else:
        # Sums in whatever order the device takes: how far apart two of them lie is luck.
        is_part = got.size < output.elements
        error = compare(again, want, output.tolerance, output.budget, is_part=is_part)
        apart = error.max_error
        differs = bool(error.wrong or error.over_budget)
    if not differs:
        return None
    return output.refused(f"differs between two launches on the same inputs, by {apart:.3g} tolerances")


RUN_CHECKS: tuple[Callable[[CheckedRun], Rejected | None], ...] = (
    guard_zones,
    read_only_inputs,
    device_variables,
)
"""Checks of a launch as a whole, in the order in which they are tried; the first rejection stands."""
OUTPUT_CHECKS: tuple[Callable[[CheckedOutput], Rejected | None], ...] = (output_values, exactness, repetition)
"""Checks of each output, tried after `RUN_CHECKS` in this order."""


def check_run(run: CheckedRun) -> CheckResult:
    """Guards, read-only inputs, device variables and outputs of one checked launch."""
    for check in RUN_CHECKS:
        refused = check(run)
        if refused is not None:
            return refused
    worst = 0.0
    for output in run.outputs():
        for check_output in OUTPUT_CHECKS:
            refused = check_output(output)
            if refused is not None:
                return refused
        worst = max(worst, output.error.max_error)
    return worst


def changed_scalars(job: Job, plan: WorkloadPlan) -> dict[str, float]:
    """Scalars of an edge case whose value is another than the plain number that the job gives."""
    given = {a.name: a.value for a in job.kernel.arguments if a.value is not None and not a.value.names}
    return {
        a.name: a.value
        for a in plan.arguments
        if isinstance(a, ScalarPlan) and a.name in given and a.value != number(given[a.name], a.dtype, {})
    }


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
    if plan.family is Family.EDGE_CASE and kind_of(plan.variant) in ROOMY:
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

    The absolute part of either grows if other inputs make the output larger, and shrinks in edge cases that
    make it much smaller.
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
    """Tolerance between two right launches, each of which may use the share once."""
    return tolerance.model_copy(update={"share": 2 * tolerance.share, "within": 2 * tolerance.within})


def _has_budget(job: Job, plan: WorkloadPlan, buffer: BufferPlan, elements: int, known: CheckedCase) -> bool:
    if plan.family is Family.EDGE_CASE:
        is_telling = kind_of(plan.variant) is EdgeCase.PLAIN
    else:
        is_telling = elements >= BUDGET_ELEMENTS and plan.family in BUDGET_FAMILIES
    return (
        isinstance(job.reference, NumpyReference)
        and buffer.dtype.is_float
        and is_telling
        and known.elements > 0
    )


def _own_error(plan: WorkloadPlan, buffer: BufferPlan, known: CheckedCase, tolerance: Tolerance) -> float:
    """The error of the user's kernel; in an edge case, whose few elements leave much to luck, some more."""
    if plan.family is not Family.EDGE_CASE:
        return known.max_error
    size = known.sizes.get(buffer.name, 0.0)
    allowed = tolerance.atol + tolerance.rtol * size
    step = epsilon(Dtype.FLOAT32) if buffer.dtype.size_bytes < SINGLE_BYTES else epsilon(buffer.dtype)
    rounded = SUM_FACTOR * step * size * math.sqrt(max(SHORT_SUM, longest_sum(plan, buffer)))
    return EDGE_CASE_LUCK * known.max_error + (rounded / allowed if allowed else 0.0)
