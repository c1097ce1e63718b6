"""Typical size of a job's outputs, on which its default tolerances are based."""

from warpsmith.domain.job import Tolerance, Workload
from warpsmith.domain.plan import BufferPlan
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.session.output_checks import tolerance_of
from warpsmith.tuning.session.session_ports import Case
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.verify.tolerance import output_sizes


def sizes_of(session: DeviceSession, workload: Workload) -> dict[str, float]:
    """Typical size of every float output by name; for a listed workload, over two draws of its inputs.

    Outputs of another shape may cancel because of its extents, so their size is at least the least size over
    the listed shapes.

    Raises:
        InvalidInput: the reference cannot be used.
    """
    if workload.key not in session.sizes:
        listed = [w.key for w in session.job.workloads]
        is_listed = workload.key in listed
        cases = [Case(workload), *([session.another_draw(workload)] if is_listed else [])]
        own = output_sizes(session.plan(workload), [session.expected(c) for c in cases])
        known = [] if is_listed else [s for k in listed if (s := session.sizes.get(k))]
        least = {n: min((s[n] for s in known), default=0.0) for n in own}
        session.sizes[workload.key] = {n: max(size, least[n]) for n, size in own.items()}
    return session.sizes[workload.key]


def tolerance_on(session: DeviceSession, workload: Workload, output: BufferPlan) -> Tolerance:
    """Tolerance of an output on the workload's own inputs. Raises as `sizes_of` does."""
    sized = CheckedCase(dimensions=workload.dimensions, sizes=sizes_of(session, workload))
    return tolerance_of(session.job, session.plan(workload), output, sized)
