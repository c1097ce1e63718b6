"""The task gate: a job that a trivial answer would pass is refused, because nothing would be checked."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from warpsmith.domain.argument import Role
from warpsmith.domain.job import Workload
from warpsmith.domain.plan import BufferPlan, WorkloadPlan
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.session.session_ports import Case
from warpsmith.verify.compare import passes
from warpsmith.verify.inputs import drawn_pieces
from warpsmith.verify.run_report import Array

ADVICE = "tighten the tolerances or draw other inputs"


def untestable(session: DeviceSession, workload: Workload, another: Case) -> str:
    """The reason why a trivial answer would pass this job's check; empty if none does.

    Args:
        another: other values of the same inputs; their result must not pass.
    """
    if not session.inputs.defences.task_gate:
        return ""
    plan, expected = session.inputs.plan(workload), session.expected.of(workload)
    for name, answer in _trivial_answers(plan, expected):
        if _passes(session, workload, answer, expected):
            return f"untestable: {name} would pass the check; {ADVICE}"
    drawn = [b for b in plan.buffers if b.role is not Role.OUTPUT]
    if drawn and _passes(session, workload, session.expected.of(another), expected):
        return f"untestable: the answer to other inputs would pass the check; {ADVICE}"
    copies = [_nearest_input(session, workload, b, expected[b.name], drawn) for b in plan.mutated]
    # A kernel that copies has exactly this result; no other result may pass.
    if None not in copies and not all(copies):
        return f"untestable: a copied input would pass the check; {ADVICE}"
    return ""


def _trivial_answers(
    plan: WorkloadPlan, expected: Mapping[str, Array]
) -> Iterator[tuple[str, Mapping[str, Array]]]:
    # A single element equals its mean; the result for other inputs then shows whether anything is checked.
    several = any(b.elements > 1 for b in plan.mutated)
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
    for buffer in drawn:
        if buffer.elements != want.size:
            continue
        begin, exact = 0, True
        for piece in drawn_pieces(buffer, plan.seed, plan.variant, plan.family):
            guess, wanted = piece.astype(want.dtype), want[begin : begin + piece.size]
            if not passes(guess, wanted, tolerance):
                break
            exact = exact and np.array_equal(guess, wanted, equal_nan=guess.dtype.kind == "f")
            begin += piece.size
        else:
            return exact
    return None


def _passes(
    session: DeviceSession, workload: Workload, answer: Mapping[str, Array], expected: Mapping[str, Array]
) -> bool:
    return all(
        passes(answer[b.name], expected[b.name], session.expected.tolerance(workload, b))
        for b in session.inputs.plan(workload).mutated
    )
