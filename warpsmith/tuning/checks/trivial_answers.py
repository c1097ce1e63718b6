"""The task gate: a job that a trivial answer would pass is refused, because nothing would be checked."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import Distribution
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import BufferPlan, WorkloadPlan
from warpsmith.source.declarations.device_variables import unfilled_constants
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.verify.compare import allowed_misses, misses, passes
from warpsmith.verify.element_masks import ElementMask
from warpsmith.verify.in_spans import in_spans, pieces
from warpsmith.verify.inputs import drawn_pieces
from warpsmith.verify.run_report import Array

ADVICE = "tighten the tolerances or draw other inputs"
MOST_NAN = 0.1
"""Share of NaN in an output above which its inputs lie outside the kernel's domain."""
MOST_NOT_FINITE = 0.9
"""Share of NaN and infinities above which nothing much is compared; masks may well make half of them."""
WRITTEN_IN_PART = 0.9
"""Share of changed elements of an `inout` buffer below which that is said."""
TOLD_ELEMENTS = 1 << 22
"""About as many elements of a large buffer tell which part of it is changed."""
FEW_COUNT = 1 / 16
"""Share of elements that count below which it is asked whether that is meant."""
_POSITIVE = "{distribution: uniform, low: 0.1, high: 1}"
_DRAWN = (Role.INPUT, Role.INOUT, Role.SYMBOL)


def untestable(session: DeviceSession, workload: Workload, another: Case | None = None) -> str:
    """The reason why a trivial answer would pass this job's check; empty if none does.

    Args:
        another: other values of the same inputs; their result must not pass. None: that is not asked.
    """
    if not session.inputs.defences.task_gate:
        return ""
    plan, expected = session.inputs.plan(workload), session.expected.of(workload)
    undefined = _not_finite(session, plan, expected)
    if undefined:
        return undefined
    for name, answer in _trivial_answers(plan, expected):
        if _passes(session, workload, answer, expected):
            return f"untestable: {name} would pass the check; {_advice(session)}"
    drawn = [b for b in plan.buffers if b.role is not Role.OUTPUT]
    if drawn and another is not None and _passes_elsewhere(session, workload, another):
        names = ", ".join(b.name for b in plan.mutated)
        words = f"untestable: {names} does not depend on the inputs: the answer to other inputs would pass"
        return f"{words} the check; {_advice(session)}"
    copies = [_nearest_input(session, workload, b, expected[b.name], drawn) for b in plan.mutated]
    # A kernel that copies has exactly this result; no other result may pass.
    if None not in copies and not all(copies):
        return f"untestable: a copied input would pass the check; {ADVICE}"
    return ""


def nothing_counts(session: DeviceSession, workload: Workload) -> str:
    """The reason why an output of the workload has no element that counts; empty if each has one."""
    plan, masks = session.inputs.plan(workload), session.inputs.masks(workload)
    places = {a.name: f"kernel.{place}.kept" for place, a in session.job.kernel.placed()}
    for buffer in plan.mutated:
        if buffer.kept is None or masks[buffer.name].count:
            continue
        words = f"{places[buffer.name]}: no element of {buffer.name} counts: {buffer.kept.expression.text!r}"
        if not buffer.kept.inputs:
            return f"{words} is true of none; mend it, or give dimensions of which it is true"
        inputs = ", ".join(buffer.kept.inputs)
        return f"{words} is true of none with the {inputs} that are drawn; mend it, or draw other values"
    return ""


def counted_in_part(session: DeviceSession, workload: Workload) -> list[str]:
    """Notes on outputs of which not all elements count: how many do."""
    plan, masks = session.inputs.plan(workload), session.inputs.masks(workload)
    notes = []
    for buffer in plan.mutated:
        if buffer.kept is None:
            continue
        count, share = masks[buffer.name].count, masks[buffer.name].count / buffer.elements
        words = f"{workload.key}: {count} of {buffer.elements} elements ({share:.2g}) of {buffer.name} count"
        words += f" (kept: {buffer.kept.expression.text}); the others are not compared"
        few = ", and so few of them tell little: is `kept` as meant, and are its inputs drawn so?"
        notes.append(words + few * (share < FEW_COUNT))
    return notes


def written_in_part(session: DeviceSession, workload: Workload) -> list[str]:
    """Notes on `inout` buffers of which the answer changes a part only."""
    plan, expected = session.inputs.plan(workload), session.expected.of(workload)
    masks, notes = session.inputs.masks(workload), []
    for buffer in plan.mutated:
        if buffer.role is not Role.INOUT:
            continue
        begin, changed, seen, want = 0, 0, 0, expected[buffer.name]
        every = max(1, buffer.elements // TOLD_ELEMENTS)
        for number, piece in enumerate(_drawn(plan, buffer, masks.get(buffer.name))):
            if number % every == 0:
                with np.errstate(invalid="ignore", over="ignore"):
                    wanted = want[begin : begin + piece.size].astype(piece.dtype)
                changed += int(np.count_nonzero(wanted != piece))
                seen += piece.size
            begin += piece.size
        if changed < WRITTEN_IN_PART * seen:
            share = f"{changed} of {seen} elements ({changed / seen:.2g})"
            notes.append(f"{workload.key}: the kernel changes {share} of {buffer.name} and keeps the rest")
    return notes


def _not_finite(session: DeviceSession, plan: WorkloadPlan, expected: Mapping[str, Array]) -> str:
    """Names an output that is NaN or infinite in too many elements for a comparison to mean much."""
    for buffer in plan.mutated:
        want = expected[buffer.name]
        if not buffer.dtype.is_float or not want.size:
            continue
        nan, other = _counted(np.isnan, want), _counted(np.isinf, want)
        if nan <= MOST_NAN * want.size and nan + other <= MOST_NOT_FINITE * want.size:
            continue
        named = [
            f"kernel.{p}" for p, a in session.job.kernel.placed() if a.role in _DRAWN and a.dtype.is_float
        ]
        where = f" ({', '.join(f'{place}.draw' for place in named)})" if named else ""
        words = f"untestable: {buffer.name} is NaN in {nan} and infinite in {other} of {want.size} elements"
        return (
            f"{words}; draw inputs for which it is a number{where}, such as {_POSITIVE} for a logarithm or a "
            "root, or mend reference.source"
        )
    return ""


def _counted(test: Callable[[Array], NDArray[np.bool_]], values: Array) -> int:
    """Number of elements for which a test is true."""

    def of_span(span: slice) -> int:
        return sum(int(np.count_nonzero(test(values[piece]))) for piece in pieces(span))

    return sum(in_spans(values.size, of_span))


def _advice(session: DeviceSession) -> str:
    """Advice on the field that would make the answer depend on the inputs."""
    kernel = session.job.kernel
    filled = {a.name for a in kernel.symbols}
    empty = [v.name for v in unfilled_constants(kernel.source or "") if v.name not in filled]
    if empty:
        words = f"nothing fills `__constant__ {empty[0]}`, so it holds zeros"
        return f"{words}; list it under kernel.buffers with `role: symbol`, or give it an initialiser"
    constant = [
        f"kernel.{place}.draw"
        for place, a in kernel.placed()
        if a.draw is not None and a.draw.distribution is Distribution.CONSTANT
    ]
    if constant:
        return f"{', '.join(constant)} is constant: draw values that differ, or tighten the tolerances"
    return ADVICE


def _trivial_answers(
    plan: WorkloadPlan, expected: Mapping[str, Array]
) -> Iterator[tuple[str, Mapping[str, Array]]]:
    # A single element equals its mean; the result for other inputs then shows whether anything is checked.
    several = any(expected[b.name].size > 1 for b in plan.mutated)
    for name, fill in (("zeros", 0.0), ("a constant", None))[: 1 + several]:
        answer = {}
        for buffer in plan.mutated:
            want = expected[buffer.name]
            with np.errstate(invalid="ignore", over="ignore"):
                value = float(want.mean(dtype=np.float64)) if fill is None else fill
                answer[buffer.name] = np.broadcast_to(np.asarray(value).astype(want.dtype), want.shape)
        yield name, answer


def _nearest_input(
    session: DeviceSession, workload: Workload, output: BufferPlan, want: Array, drawn: Sequence[BufferPlan]
) -> bool | None:
    """True if the first input that would pass as this output equals it; None if no input would pass."""
    plan, tolerance = session.inputs.plan(workload), session.expected.tolerance(workload, output)
    mask = session.inputs.masks(workload).get(output.name)
    for buffer in drawn:
        if buffer.elements != output.elements:
            continue
        begin, exact, missed = 0, True, 0.0
        for piece in _drawn(plan, buffer, mask):
            guess, wanted = piece.astype(want.dtype), want[begin : begin + piece.size]
            missed += misses(guess, wanted, tolerance)
            if missed > allowed_misses(tolerance, want.size):
                break
            exact = exact and np.array_equal(guess, wanted, equal_nan=guess.dtype.kind == "f")
            begin += piece.size
        else:
            return exact
    return None


def _drawn(plan: WorkloadPlan, buffer: BufferPlan, mask: ElementMask | None) -> Iterator[Array]:
    """The values of an input in pieces, without those that lie where no element of an output counts."""
    begin = 0
    for piece in drawn_pieces(buffer, plan.seed, plan.variant, plan.family):
        yield piece if mask is None else mask.of(piece, [(begin, begin + piece.size)])
        begin += piece.size


def _passes_elsewhere(session: DeviceSession, workload: Workload, another: Case) -> bool:
    """True if the answer to other inputs would pass; compares elements that count for both."""
    expected, other = session.expected.of(workload), session.expected.of(another)
    masks, masks_there = session.inputs.masks(workload), session.inputs.masks(another)
    for buffer in session.inputs.plan(workload).mutated:
        want, answer = expected[buffer.name], other[buffer.name]
        if buffer.name in masks and masks[buffer.name] is not masks_there[buffer.name]:
            here, there = masks[buffer.name].at(), masks_there[buffer.name].at()
            want, answer = want[there[here]], answer[here[there]]
        # Where nothing is left, the inputs decide what counts.
        if not want.size or not passes(answer, want, session.expected.tolerance(workload, buffer)):
            return False
    return True


def _passes(
    session: DeviceSession, workload: Workload, answer: Mapping[str, Array], expected: Mapping[str, Array]
) -> bool:
    return all(
        passes(answer[b.name], expected[b.name], session.expected.tolerance(workload, b))
        for b in session.inputs.plan(workload).mutated
    )
