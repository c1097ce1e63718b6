"""How large the outputs of a job are, which its default tolerances go by."""

from warpsmith.domain.job import Tolerance, Workload
from warpsmith.domain.plan import BufferPlan
from warpsmith.tuning.session.device_session import Bench
from warpsmith.tuning.session.output_checks import tolerance_of
from warpsmith.tuning.session.session_ports import Case
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.verify.tolerance import output_sizes


def sizes_of(bench: Bench, workload: Workload) -> dict[str, float]:
    """Typical size of every float output by name; of a listed workload, over two draws of its inputs.

    Outputs of another shape may cancel by its extents: it has the least size of the listed ones at least.

    Raises:
        InvalidInput: the reference is of no use.
    """
    if workload.key not in bench.sizes:
        listed = [w.key for w in bench.job.workloads]
        is_listed = workload.key in listed
        cases = [Case(workload), *([bench.another_draw(workload)] if is_listed else [])]
        own = output_sizes(bench.plan(workload), [bench.expected(c) for c in cases])
        known = [] if is_listed else [s for k in listed if (s := bench.sizes.get(k))]
        least = {n: min((s[n] for s in known), default=0.0) for n in own}
        bench.sizes[workload.key] = {n: max(size, least[n]) for n, size in own.items()}
    return bench.sizes[workload.key]


def tolerance_on(bench: Bench, workload: Workload, output: BufferPlan) -> Tolerance:
    """Of an output on the workload's own inputs. Raises as `sizes_of` does."""
    sized = CheckedCase(dimensions=workload.dimensions, sizes=sizes_of(bench, workload))
    return tolerance_of(bench.job, bench.plan(workload), output, sized)
