"""The task gate: a job that a trivial answer would pass cannot be tuned, because nothing would be checked."""

from collections.abc import Iterator, Mapping

import numpy as np

from warpsmith.domain.job import Workload
from warpsmith.domain.plan import BufferPlan, WorkloadPlan
from warpsmith.tuning.bench import Bench
from warpsmith.tuning.sizes import tolerance_on
from warpsmith.tuning.tools import Case
from warpsmith.verify.compare import passes
from warpsmith.verify.inputs import draw_inputs
from warpsmith.verify.report import Array

ADVICE = "tighten the tolerances or draw other inputs"


def untestable(bench: Bench, workload: Workload, another: Case) -> str:
    """Why a trivial answer would pass this job's own check; empty where none does.

    Args:
        another: other values of the same inputs, whose answer must not pass.
    """
    if not bench.defences.task_gate:
        return ""
    plan, expected = bench.plan(workload), bench.expected(workload)
    for name, answer in _trivial_answers(plan, expected):
        if _passes(bench, workload, answer, expected):
            return f"untestable: {name} would pass the check; {ADVICE}"
    drawn = draw_inputs(plan)
    if drawn and _passes(bench, workload, bench.expected(another), expected):
        return f"untestable: the answer to other inputs would pass the check; {ADVICE}"
    copied = {b.name: _nearest_input(bench, workload, b, expected, drawn) for b in plan.mutated}
    answer = {name: value for name, value in copied.items() if value is not None}
    # A kernel that copies has this very answer, exactly; nothing else may.
    exact = all(np.array_equal(v, expected[n], equal_nan=v.dtype.kind == "f") for n, v in answer.items())
    if len(answer) == len(copied) and not exact:
        return f"untestable: a copied input would pass the check; {ADVICE}"
    return ""


def _trivial_answers(
    plan: WorkloadPlan, expected: Mapping[str, Array]
) -> Iterator[tuple[str, Mapping[str, Array]]]:
    # One element is its own mean; there the answer to other inputs says whether anything is checked.
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
    bench: Bench,
    workload: Workload,
    output: BufferPlan,
    expected: Mapping[str, Array],
    drawn: Mapping[str, Array],
) -> Array | None:
    """An input that would pass as this output."""
    want = expected[output.name]
    tolerance = tolerance_on(bench, workload, output)
    for value in drawn.values():
        if value.size == want.size:
            guess = value.astype(want.dtype)
            if passes(guess, want, tolerance):
                return guess
    return None


def _passes(
    bench: Bench, workload: Workload, answer: Mapping[str, Array], expected: Mapping[str, Array]
) -> bool:
    return all(
        passes(answer[b.name], expected[b.name], tolerance_on(bench, workload, b))
        for b in bench.plan(workload).mutated
    )
