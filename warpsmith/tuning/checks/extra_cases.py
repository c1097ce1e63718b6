"""Checks of first-time candidates and winners beyond their workloads' own draws."""

import secrets
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.plan import Compiled, Family
from warpsmith.domain.templates.outcome import FailedCase, Rejected
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.tuning.outputs.output_checks import CheckResult
from warpsmith.tuning.ports import DevicePort
from warpsmith.tuning.session.device_session import Case, DeviceSession, LoadedKernel
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.verify.edge_cases import kind_of

MAX_NEIGHBOURS = 9
"""Limit on the shapes near the smallest workload that are tried."""
NEIGHBOUR_BYTES = 64 << 20
"""Limit on the bytes of all buffers of a neighbouring shape."""
FAMILY_BYTES = 64 << 20
"""Bytes above which a workload is checked with one further family instead of all."""
SMALL_PRIME, LARGE_PRIME = 7, 97
"""Two primes as extents: one below any block, one that is odd and larger."""


def neighbours(job: Job, workload: Workload) -> list[Workload]:
    """Shapes near `workload`: all dimensions one more, then one at a time: more, prime, 1, less, small."""
    found = {}
    beyond = beyond_all(workload)
    found[beyond.key] = beyond
    for turn in range(5):
        for name, extent in workload.dimensions.items():
            prime = LARGE_PRIME if extent > LARGE_PRIME else SMALL_PRIME
            value = (extent + 1, prime, 1, extent - 1, SMALL_PRIME)[turn]
            if value >= 1 and value != extent:
                near = Workload(dimensions=workload.dimensions | {name: value})
                found.setdefault(near.key, near)
    listed = {w.key for w in job.workloads}
    return [w for key, w in found.items() if key not in listed][:MAX_NEIGHBOURS]


def beyond_all(workload: Workload) -> Workload:
    """The workload with every dimension increased by one, so that no extent is a listed one."""
    return Workload(dimensions={name: extent + 1 for name, extent in workload.dimensions.items()})


def size_bytes(session: DeviceSession, workload: Workload) -> int:
    """Bytes of all buffers. Raises `ExpressionError` if a shape cannot be evaluated."""
    return sum(b.size_bytes for b in session.inputs.plan(workload).buffers)


def certain_cases(session: DeviceSession, workload: Workload) -> list[Case]:
    """Cases with which every winner of a workload is checked, without neighbours and cases drawn at
    random."""
    certain = session.inputs.own_draws(workload)
    if session.inputs.defences.families and size_bytes(session, workload) <= FAMILY_BYTES:
        certain += [Case(workload, family) for family in _families(session, workload)]
    return certain


def further_cases(
    session: DeviceSession,
    template: Template,
    kernel: ConfiguredKernel,
    workloads: Sequence[Workload],
) -> Iterator[Case]:
    """Families of `workloads`, one of each large workload, and neighbours that the constraints allow."""
    for workload in workloads:
        families = _families(session, workload)
        if families and size_bytes(session, workload) > FAMILY_BYTES:
            families = [secrets.choice(families)]
        if session.inputs.defences.families:
            yield from (Case(workload, family) for family in families)
    if session.inputs.defences.neighbours:
        near = [Workload(dimensions=c.dimensions) for c in session.baseline.cases if c.neighbour_of]
        yield from (Case(w) for w in session.inputs.allowed(template, kernel, near))


def allowed_edge_cases(session: DeviceSession, template: Template, kernel: ConfiguredKernel) -> list[Case]:
    """Edge cases on which the user's kernel was right, and that the constraints allow."""
    if not session.inputs.defences.worlds:
        return []
    known = [c for c in session.baseline.cases if c.family is Family.EDGE_CASE]
    cases = [Case(Workload(dimensions=c.dimensions), c.family, c.variant) for c in known]
    allowed = {w.key for w in session.inputs.allowed(template, kernel, [c.workload for c in cases])}
    return [c for c in cases if c.workload.key in allowed]


def check_further(
    session: DeviceSession,
    template: Template,
    kernel: ConfiguredKernel,
    compiled: Compiled,
    workloads: Sequence[Workload],
    edge_cases: bool = True,
) -> Rejected | None:
    """Check other inputs and shapes in every element; returns the first rejection, or None.

    Args:
        edge_cases: True: the kernel goes through all edge cases as well.

    Raises:
        ChildDied: the child is gone; call `renew`.
        KernelRefused: the driver refused a launch.
        ExpressionError: a launch cannot be evaluated.
    """
    cases = allowed_edge_cases(session, template, kernel) if edge_cases else []
    cases += further_cases(session, template, kernel, workloads)
    with closing(judged(session, kernel, compiled, cases)) as found:
        return next((in_case(case, result) for case, result in found if isinstance(result, Rejected)), None)


def judged(
    session: DeviceSession, kernel: ConfiguredKernel, compiled: Compiled, cases: Sequence[Case]
) -> Generator[tuple[Case, CheckResult], None, None]:
    """Each case with what a checked launch on it left, in every element.

    Cases whose reference cannot be computed are left out. A launch that a device limit forbids ends the
    cases. Raises as `check_further` does.
    """
    failed = session.expected.compute(cases)
    loaded_variants = session.variants(kernel, compiled)
    loaded_variants.expect(case.workload for case in cases if case.key not in failed)
    device: DevicePort | None = None
    before: tuple[Case, Future[CheckResult]] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="compare") as comparing:
        for case in cases:
            if case.key in failed:
                continue
            size = size_within_limits(kernel, case.workload, session.info)
            if isinstance(size, Rejected):
                if before is not None:
                    yield before[0], before[1].result()
                yield case, size
                return
            device = session.device(case)
            loaded = LoadedKernel(loaded_variants.on(device, case.workload), case.workload, size)
            launch = session.checker.launch(loaded, whole=True, on=case)
            session.release(case)
            if before is not None:
                yield before[0], before[1].result()
            # Compared while the next case is on the device; no more than two reports are held.
            before = case, comparing.submit(session.checker.evaluate, launch)
        if before is not None:
            yield before[0], before[1].result()
    if device is not None:
        loaded_variants.unload(device)


def _families(session: DeviceSession, workload: Workload) -> list[Family]:
    """Families in which the user's kernel was right on a workload."""
    known = [c for c in session.baseline.cases if c.dimensions == workload.dimensions]
    return [c.family for c in known if c.family not in (Family.DECLARED, Family.EDGE_CASE)]


def in_case(case: Case, rejected: Rejected) -> Rejected:
    """The rejection, with its case in words."""
    reason = f"{describe(case, rejected.case)}: {rejected.reason}"[:2000]
    return rejected.model_copy(update={"reason": reason, "workload": case.workload.key})


def describe(case: Case, failed: FailedCase | None = None) -> str:
    """Text that describes a case in a reason."""
    if case.family is Family.EDGE_CASE:
        scalars = {} if failed is None else failed.scalars
        drawn = ", ".join(f"{name} {value:g}" for name, value in scalars.items())
        kind = f"{kind_of(case.variant).value}{drawn and f': {drawn}'}"
        return f"with inputs by lot ({kind}) at {case.workload.key}"
    if case.family is Family.DECLARED:
        return f"at the neighbouring shape {case.workload.key}"
    return f"with {case.family.value} inputs at {case.workload.key}"
