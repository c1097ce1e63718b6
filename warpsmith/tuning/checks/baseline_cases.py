"""Inputs and shapes, besides the workloads, on which the user's kernel is right; candidates must be right on
them, too."""

import random
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw import ARRANGED, Distribution
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.memory import wide_zones
from warpsmith.domain.jobs.plan import BufferPlan, Compiled, Family
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.checks.baseline_time import BaselineTime
from warpsmith.tuning.checks.edge_cases import at_listed_shape, proposed_edge_cases
from warpsmith.tuning.checks.extra_cases import (
    FAMILY_BYTES,
    NEIGHBOUR_BYTES,
    beyond_all,
    neighbours,
    size_bytes,
)
from warpsmith.tuning.checks.faulty_shapes import FaultyShapes
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.outputs.edge_case_sizes import sized_edge_case
from warpsmith.tuning.outputs.output_checker import is_wrong
from warpsmith.tuning.outputs.output_checks import (
    CheckedRun,
    CheckRules,
    check_run,
    spread,
    tells_nothing,
    tolerance_of,
)
from warpsmith.tuning.outputs.rounding_ties import allowed_share, own_misses
from warpsmith.tuning.ports import DevicePort
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.verify.compare import same_bits
from warpsmith.verify.dtypes import largest
from warpsmith.verify.element_masks import counted_report
from warpsmith.verify.inputs import default_draw, drawn_pieces
from warpsmith.verify.run_report import Array, RunReport

FAMILIES_ELSEWHERE, FAMILIES_OF_LARGE = 3, 1
"""Number of families, drawn at random, with which workloads larger than the smallest are checked, and those
larger than `FAMILY_BYTES`, if all are: no winner is checked with more."""

TELLING_ELEMENTS = 4096
"""Number of elements in which a family shows that it changes a buffer."""


def family_cases(session: DeviceSession, workload: Workload) -> list[Case]:
    """Families that change this workload's inputs, so that there is something to check.

    A workload larger than `FAMILY_BYTES` has none if there is a smaller one: what a kernel does with special
    values shows there.
    """
    if not session.inputs.defences.families:
        return []
    families = [f for f in Family if f not in (Family.DECLARED, Family.EDGE_CASE)]
    smallest = min(size_bytes(session, w) for w in session.job.workloads)
    size = size_bytes(session, workload)
    if size > max(smallest, FAMILY_BYTES):
        return []
    if size > min(smallest, FAMILY_BYTES):
        count = FAMILIES_OF_LARGE if size > FAMILY_BYTES else FAMILIES_ELSEWHERE
        families = random.SystemRandom().sample(families, count)
    plan = session.inputs.plan(workload)
    drawn = [b for b in plan.buffers if b.role is not Role.OUTPUT]
    return [Case(workload, f) for f in families if any(_makes_other(f, b, plan.seed) for b in drawn)]


def _makes_other(family: Family, buffer: BufferPlan, seed: int) -> bool:
    """True if a family changes a buffer; ends at the first piece that differs.

    What is drawn element by element shows it in a few of them.
    """
    if (buffer.draw or default_draw(buffer.dtype)).distribution not in (*ARRANGED, Distribution.FILE):
        buffer = replace(buffer, shape=(min(buffer.elements, TELLING_ELEMENTS),))
    own, made = drawn_pieces(buffer, seed), drawn_pieces(buffer, seed, family=family)
    return any(not same_bits(a, b) for a, b in zip(own, made, strict=True))


def passing(
    session: DeviceSession,
    kernel: ConfiguredKernel,
    compiled: Compiled,
    cases: Iterable[Case],
    faulty: FaultyShapes,
    of: str = "",
) -> list[CheckedCase]:
    """The `cases` on which the user's kernel is right and its reference finite.

    Args:
        faulty: shapes on which the kernel ended its process; cases that will do the same are left out.
        of: key of the workload that the cases are neighbours of.
    """
    judged: list[Future[CheckedCase | Rejected]] = []
    info = session.info
    loaded_variants = session.variants(kernel, compiled)
    device: DevicePort | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="judge") as judging:
        for case in cases:
            if case.family is not Family.EDGE_CASE and not _finite(session, case):
                continue
            if faulty.leaves_out(case.workload.dimensions):
                continue
            try:
                size = size_within_limits(kernel, case.workload, info)
                if isinstance(size, Rejected):
                    continue
                device = session.device(case)
                loaded = LoadedKernel(loaded_variants.on(device, case.workload), case.workload, size)
                if _overruns_far(session, loaded, case):
                    session.release(case)
                    continue
                report = _launched(session, loaded, case)
                session.release(case)
            except (ExpressionError, KernelRefused):
                continue
            except ChildDied:
                faulty.add(case.workload.dimensions)
                session.renew(faulted=True)
                loaded_variants.forget()
                device = None
                if case.family is Family.EDGE_CASE:
                    break  # what comes after is no tamer, and every fault costs a child
                continue
            wait(judged)  # no more than two reports are held
            judged.append(judging.submit(_judged, session, case, report))
    if device is not None:
        loaded_variants.unload(device)
    right = [found for f in judged if isinstance(found := f.result(), CheckedCase)]
    return [found.model_copy(update={"neighbour_of": of}) for found in right]


def neighbour_cases(
    session: DeviceSession,
    kernel: ConfiguredKernel,
    compiled: Compiled,
    time_left: BaselineTime,
    faulty: FaultyShapes,
) -> list[CheckedCase]:
    """Shapes near the smallest workload, and one beyond the largest, on which the user's kernel is right."""
    PROGRESS.at("baseline: shapes near the workloads")
    if not session.inputs.defences.neighbours or time_left.is_over:
        return []
    try:
        for workload in session.job.workloads:
            session.release(workload)
    except ChildDied:  # the kernel damaged its process
        session.renew(faulted=True)
    by_size = sorted(session.job.workloads, key=lambda w: size_bytes(session, w))
    smallest, largest_ = by_size[0], by_size[-1]
    # A dispatch table serves shapes that are not listed, so no kernel may rely on the largest listed one
    # being the largest.
    # Shapes that differ in one extent come first: a fault then says which one.
    beside = sorted((beyond_all(largest_), *neighbours(session.job, smallest)), key=_differs(session.job))
    shapes = {w.key: w for w in beside}
    near = [w for w in shapes.values() if _makes_sense(session, w)]
    every = [Case(w) for w in session.inputs.allowed(session.inputs.user_template, kernel, near)]
    last = size_bytes(session, session.job.workloads[-1])
    cases = time_left.neighbours(every, lambda c: size_bytes(session, c.workload) / last)
    failed = session.expected.compute(cases)
    right = time_left.until_over(c for c in cases if c.key not in failed)
    return passing(session, kernel, compiled, right, faulty, smallest.key)


def edge_cases(
    session: DeviceSession,
    kernel: ConfiguredKernel,
    compiled: Compiled,
    time_left: BaselineTime,
    faulty: FaultyShapes,
) -> list[CheckedCase]:
    """Edge cases on which the user's kernel is right."""
    PROGRESS.at("baseline: inputs by lot")
    found: list[CheckedCase] = []
    proposed = proposed_edge_cases(session)
    for at_listed in (False, True):
        right = {c.variant for c in found}
        missed = [c for c in proposed if c.variant not in right]
        cases = missed
        if at_listed:  # a shape by lot may have been that one
            cases = [c for c in at_listed_shape(session, missed) if c not in proposed]
        if not cases or time_left.is_over:
            break
        failed = session.expected.compute(cases)
        usable = time_left.until_over(c for c in cases if c.key not in failed)
        found += passing(session, kernel, compiled, usable, faulty)
        session.expected.forget_cases()
    return found


def check_case(session: DeviceSession, loaded: LoadedKernel, case: Case) -> CheckedCase | Rejected:
    """Run the user's kernel on one case: its error and its repeatability."""
    return _judged(session, case, _launched(session, loaded, case))


def _launched(session: DeviceSession, loaded: LoadedKernel, case: Case) -> RunReport:
    plan = session.inputs.plan(case)
    repeat = session.inputs.defences.determinism and case.family is not Family.EDGE_CASE
    report = session.device(case).run(loaded.handle, plan.key, loaded.size, repeat=repeat)
    return counted_report(report, None, session.inputs.masks(case))


def _overruns_far(session: DeviceSession, loaded: LoadedKernel, case: Case) -> bool:
    """True if the user's kernel writes outside its buffers where usual guard zones may not show it.

    Where extents shrink, an index that stays as it is lies rows outside. In an edge case a number that is a
    stride may be another, and a kernel may add numbers far smaller than guard words. What a candidate does
    there may be seen by chance, and may end its process, so such a case is fair to nobody.
    """
    is_edge = case.family is Family.EDGE_CASE
    if not is_edge and not _is_shrunk(session.job, case.workload):
        return False
    device, plan = session.device(case), session.inputs.plan(case)
    device.prepare(plan, wide_zones(plan, small=is_edge))
    overruns = bool(device.run(loaded.handle, plan.key, loaded.size).guard_violations)
    device.prepare(plan)
    return overruns


def _is_shrunk(job: Job, workload: Workload) -> bool:
    """True if an extent is smaller by more than one than in every workload."""
    return any(
        extent + 1 < min(listed.dimensions[name] for listed in job.workloads)
        for name, extent in workload.dimensions.items()
    )


def _judged(session: DeviceSession, case: Case, report: RunReport) -> CheckedCase | Rejected:
    """Compare the outputs of a launch of the user's kernel with the reference; any thread may ask."""
    found = _compared(session, case, report)
    if isinstance(found, Rejected) and is_wrong(found) and session.expected.judged_by_numpy(case):
        found = _compared(session, case, report)
    if isinstance(found, Rejected) and is_wrong(found):
        found = _judged_by_steps(session, case, report, found)
    return found


def _judged_by_steps(
    session: DeviceSession, case: Case, report: RunReport, refused: Rejected
) -> CheckedCase | Rejected:
    """Compare again with some integers a step off: as many as roundings explain; few on declared inputs."""
    expected = session.expected
    ties = expected.ties(case)
    found = _compared(session, case, report, ties) if ties else refused
    if not isinstance(found, Rejected) or case.family is not Family.DECLARED:
        return found
    missed = own_misses(session.job, session.inputs.plan(case), report.outputs, expected.of(case))
    if not missed:
        return refused
    elements = {n: want.size for n, want in expected.of(case).items()}
    shares = {n: allowed_share(share * elements[n], elements[n]) for n, share in missed.items()}
    found = _compared(session, case, report, shares)
    return found if isinstance(found, Rejected) else found.model_copy(update={"missed": missed})


def _compared(
    session: DeviceSession, case: Case, report: RunReport, ties: Mapping[str, float] | None = None
) -> CheckedCase | Rejected:
    plan = session.inputs.plan(case)
    if case.family is Family.EDGE_CASE:
        grown = sized_edge_case(session.inputs, session.expected, case)
    else:
        grown = CheckedCase(
            dimensions=case.workload.dimensions,
            family=case.family,
            growth=_growth(session, case),
            sizes=session.expected.sizes(case.workload),
        )
    expected = session.expected.of(case)
    rules = CheckRules(session.job, session.inputs.defences, own_globals=None, ties=ties or {})
    found = check_run(CheckedRun(rules, plan, report, expected, None, grown, session.inputs.masks(case)))
    if isinstance(found, Rejected):
        return found
    if all(
        tells_nothing(session.job, plan, b, expected[b.name], tolerance_of(session.job, plan, b, grown))
        for b in plan.mutated
    ):
        words = "zeros would pass on these inputs, so they tell nothing"
        return Rejected(stage=Stage.CORRECTNESS, reason=words, workload=plan.workload)
    return grown.model_copy(
        update={
            "max_error": found,
            "spread": spread(session.job, plan, report, grown),
            "elements": sum(expected[b.name].size for b in plan.mutated),
        }
    )


def _growth(session: DeviceSession, case: Case) -> dict[str, float]:
    """Growth of outputs by name: how much larger the case makes them than the workload's own inputs; only if
    it does."""
    if case.family is Family.DECLARED:
        return {}
    expected, own = session.expected, Case(case.workload)
    floats = [b.name for b in session.inputs.plan(case).mutated if b.dtype.is_float]
    sizes = {n: (expected.root_mean_square(own, n), expected.root_mean_square(case, n)) for n in floats}
    return {n: there / here for n, (here, there) in sizes.items() if there > here > 0.0}


def _finite(session: DeviceSession, case: Case) -> bool:
    expected = session.expected.of(case)
    return all(
        _within(expected[b.name], largest(b.dtype))
        for b in session.inputs.plan(case).mutated
        if b.dtype.is_float
    )


def _within(values: Array, limit: float) -> bool:
    """True if no value is larger, and none is NaN."""
    return bool(values.max(initial=0.0) <= limit and values.min(initial=0.0) >= -limit)


def _differs(job: Job) -> Callable[[Workload], bool]:
    """Says of a shape whether it differs from every workload in several extents."""

    def several(workload: Workload) -> bool:
        others = [w.dimensions for w in job.workloads]
        changed = (sum(o[n] != extent for n, extent in workload.dimensions.items()) for o in others)
        return min(changed) > 1

    return several


def _makes_sense(session: DeviceSession, workload: Workload) -> bool:
    """True if every buffer of the workload has elements, and not too many."""
    try:
        plan = session.inputs.plan(workload)
    except ExpressionError:
        return False
    enough = all(extent >= 1 for b in plan.buffers for extent in b.shape)
    return enough and sum(b.size_bytes for b in plan.buffers) <= NEIGHBOUR_BYTES
