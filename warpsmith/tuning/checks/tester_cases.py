"""What a tester asks for, tried on the user's kernel. Where that is right, candidates must be, too."""

from collections.abc import Sequence

from warpsmith.domain.job import Workload
from warpsmith.domain.plan import Family
from warpsmith.errors import ExpressionError
from warpsmith.tuning.checks.baseline_cases import passing
from warpsmith.tuning.checks.extra_cases import NEIGHBOUR_BYTES, size_bytes
from warpsmith.tuning.session.baseline_kernel import compiled_baseline
from warpsmith.tuning.session.device_session import Bench
from warpsmith.tuning.session.session_ports import Case
from warpsmith.tuning.tasks import BaselineResult, CheckedCase, ProposedCase


def check_proposals(
    bench: Bench, baseline: BaselineResult, proposed: Sequence[ProposedCase]
) -> BaselineResult:
    """The baseline with those of the proposed cases on which the user's kernel is right.

    A test plan can only add to what candidates are checked with: nothing that is there is replaced.
    """
    bench.learn(baseline)
    known = {(Workload(dimensions=c.dimensions).key, c.family) for c in baseline.cases}
    listed = {w.key: w for w in bench.job.workloads}
    families: list[Case] = []
    shapes: list[Case] = []
    for case in proposed:
        workload = Workload(dimensions=case.dimensions)
        if (workload.key, case.family) in known:
            continue
        known.add((workload.key, case.family))
        if workload.key in listed:
            families.append(Case(listed[workload.key], case.family))
        elif case.family is Family.DECLARED and _small(bench, workload):
            shapes.append(Case(workload))
    on = bench.defences
    found = _right(bench, families, "") if on.families else []
    if on.neighbours:
        smallest = min(bench.job.workloads, key=lambda w: size_bytes(bench, w))
        found += _right(bench, shapes, smallest.key)
    return baseline.model_copy(update={"cases": (*baseline.cases, *found)})


def _right(bench: Bench, cases: Sequence[Case], near: str) -> list[CheckedCase]:
    """Those on which the user's kernel is right."""
    if near:
        fits = {w.key for w in _allowed(bench, cases)}
        cases = [c for c in cases if c.workload.key in fits]
    if not cases:
        return []
    kernel, compiled = compiled_baseline(bench)
    failed = bench.expect(cases)
    found = passing(bench, kernel, compiled, [c for c in cases if c.key not in failed], near)
    bench.renew()
    return found


def _small(bench: Bench, workload: Workload) -> bool:
    """Whether the shape can be made, and does not take too much memory."""
    try:
        extents = [e for b in bench.plan(workload).buffers for e in b.shape]
        return min(extents) >= 1 and size_bytes(bench, workload) <= NEIGHBOUR_BYTES
    except ExpressionError:
        return False


def _allowed(bench: Bench, cases: Sequence[Case]) -> list[Workload]:
    kernel = bench.user_template.configured(bench.job.space.defaults)
    return bench.allowed(bench.user_template, kernel, [c.workload for c in cases])
