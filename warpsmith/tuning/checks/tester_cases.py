"""Tries a tester's cases on the user's kernel. Candidates must be right on those on which it is right."""

from collections.abc import Sequence

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import Family
from warpsmith.errors import ExpressionError
from warpsmith.tuning.checks.baseline_cases import passing
from warpsmith.tuning.checks.extra_cases import FAMILY_BYTES, NEIGHBOUR_BYTES, size_bytes
from warpsmith.tuning.checks.faulty_shapes import FaultyShapes
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.session.baseline_kernel import compiled_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult, CasesResult, CheckedCase, ProposedCase


def check_proposals(
    session: DeviceSession, baseline: BaselineResult, proposed: Sequence[ProposedCase]
) -> CasesResult:
    """Proposed cases on which the user's kernel is right, without those that are known.

    A test plan can only add to what candidates are checked with: nothing that is there is replaced.
    """
    session.baseline.learn(baseline)
    known = {(Workload(dimensions=c.dimensions).key, c.family) for c in baseline.cases}
    listed = {w.key: w for w in session.job.workloads}
    smallest_bytes = min(size_bytes(session, w) for w in session.job.workloads)
    families: list[Case] = []
    shapes: list[Case] = []
    for case in proposed:
        workload = Workload(dimensions=case.dimensions)
        if (workload.key, case.family) in known or case.family is Family.EDGE_CASE:
            continue
        known.add((workload.key, case.family))
        if workload.key in listed and size_bytes(session, workload) <= max(smallest_bytes, FAMILY_BYTES):
            families.append(Case(listed[workload.key], case.family))
        elif workload.key not in listed and case.family is Family.DECLARED and _small(session, workload):
            shapes.append(Case(workload))
    on = session.inputs.defences
    listed_dimensions = [w.dimensions for w in session.job.workloads]
    faulty = FaultyShapes(listed_dimensions, known=[*baseline.faulted])
    found = _right(session, families, faulty, "") if on.families else []
    if on.neighbours:
        smallest = min(session.job.workloads, key=lambda w: size_bytes(session, w))
        found += _right(session, shapes, faulty, smallest.key)
    return CasesResult(cases=tuple(found))


def _right(
    session: DeviceSession, cases: Sequence[Case], faulty: FaultyShapes, near: str
) -> list[CheckedCase]:
    """The cases on which the user's kernel is right."""
    if near:
        fits = {w.key for w in _allowed(session, cases)}
        cases = [c for c in cases if c.workload.key in fits]
    if not cases:
        return []
    kernel, compiled = compiled_baseline(session)
    failed = session.expected.compute(cases)
    found = passing(session, kernel, compiled, [c for c in cases if c.key not in failed], faulty, near)
    session.renew()
    return found


def _small(session: DeviceSession, workload: Workload) -> bool:
    """True if the shape can be evaluated and fits in the memory limit."""
    try:
        extents = [e for b in session.inputs.plan(workload).buffers for e in b.shape]
        return min(extents) >= 1 and size_bytes(session, workload) <= NEIGHBOUR_BYTES
    except ExpressionError:
        return False


def _allowed(session: DeviceSession, cases: Sequence[Case]) -> list[Workload]:
    kernel = session.inputs.user_template.configured(session.job.space.defaults)
    return session.inputs.allowed(session.inputs.user_template, kernel, [c.workload for c in cases])
