"""Runs a job's NumPy reference once, on small inputs in its sandboxed child."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from warpsmith.device_checks.distinct_dimensions import LEAST_VARIED, distinct_dimensions
from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.job import Job, NumpyReference, Workload
from warpsmith.domain.jobs.plan import WorkloadPlan, plan_workload
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput
from warpsmith.job_files.finding import Finding

SMALL_ELEMENTS = 1 << 18
"""Elements of all buffers up to which the job's own sizes are used."""
MOST_ELEMENTS = 1 << 24
"""Limit on the elements if the reference fails on smaller sizes than the job's."""
TIMEOUT_S = 20.0
_SHAPE = re.compile(r" has shape \(")
_LINE = re.compile(r'File "reference", line (\d+)')
_FIELD = "reference.source"


@dataclass(frozen=True)
class ReferenceCheck:
    """Result of the check."""

    note: str
    """Description of the run; empty if nothing ran."""
    finding: Finding | None = None


def check_reference(job: Job, device: Mapping[str, Value]) -> ReferenceCheck:
    """Run the reference on the job's sizes, or on smaller ones if those are large.

    A reference may rely on the job's real sizes. One that fails on smaller sizes is therefore run on the
    job's own, if they do not exceed `MOST_ELEMENTS`.

    Args:
        device: limits of a device by name, for shapes that use them.
    """
    if not isinstance(job.reference, NumpyReference):
        return ReferenceCheck("")
    try:
        return _first_that_runs(job, job.reference, device)
    except ExpressionError:
        return ReferenceCheck("not run: a shape is known on the device only")


def _first_that_runs(job: Job, reference: NumpyReference, device: Mapping[str, Value]) -> ReferenceCheck:
    from warpsmith.sandbox.hosts.reference_host import ReferenceRunner

    runner = ReferenceRunner(timeout_s=TIMEOUT_S, children=1)
    failed: Finding | None = None
    shape: Finding | None = None
    for workload, plan in _plans(job, device):
        own = workload in job.workloads
        try:
            runner.numpy(reference.source, reference.function, plan, workload.dimensions)
        except (InvalidInput, ChildDied) as exc:
            words = exc.message if isinstance(exc, InvalidInput) else str(exc)
            # A slow reference is not wrong; the limit here is shorter than a worker's.
            certain = own and "ran past" not in words
            line = _LINE.search(words)
            failed = Finding(
                _FIELD,
                f"{words}{_declared(job, words)}, with {workload.key}",
                is_error=certain,
                inner_line=int(line.group(1)) if line else None,
            )
            # Another failure may come of sizes that the reference is not made for; a shape shows a swap.
            shape = failed if shape is None and _SHAPE.search(words) else shape
            continue
        return ReferenceCheck(f"ran, with {workload.key}", shape)
    return ReferenceCheck("not run: its inputs are too large" if failed is None else "", failed)


def _declared(job: Job, words: str) -> str:
    """Hint to the origin of a shape that a result does not have."""
    for place, argument in job.kernel.placed():
        if words.startswith(f"{argument.name!r} has shape"):
            extents = ", ".join(e.text for e in argument.shape)
            return f" (kernel.{place}.shape: [{extents}])"
    return ""


def _plans(job: Job, device: Mapping[str, Value]) -> Iterator[tuple[Workload, WorkloadPlan]]:
    """The smallest workload, preceded by one in which no two dimensions are equal, and if it is large by one
    with smaller dimensions."""
    scope = {**device, **job.space.defaults}
    plans = [(w, plan_workload(job.kernel, w, scope, seed=1)) for w in job.workloads]
    own, plan = min(plans, key=lambda item: _elements(item[1]))
    large = _elements(plan) > SMALL_ELEMENTS
    if large or _has_equals(own.dimensions):
        yield from _smaller(job, own, scope, distinct_dimensions)
    if large:
        yield from _smaller(job, own, scope, _limited)
    if _elements(plan) <= MOST_ELEMENTS:
        yield own, plan


def _has_equals(dimensions: Mapping[str, int]) -> bool:
    many = [size for size in dimensions.values() if size >= LEAST_VARIED]
    return len(set(many)) < len(many)


def _limited(_job: Job, own: Workload, most: int) -> dict[str, int]:
    return {name: min(size, most) for name, size in own.dimensions.items()}


def _smaller(
    job: Job,
    own: Workload,
    scope: Mapping[str, Value],
    sizes: Callable[[Job, Workload, int], dict[str, int] | None],
) -> Iterator[tuple[Workload, WorkloadPlan]]:
    """The largest small workload that `sizes` makes of the job's own and a limit of its dimensions."""
    for power in range(16, 2, -1):
        dimensions = sizes(job, own, 1 << power)
        if dimensions is None:
            continue
        workload = Workload(dimensions=dimensions)
        try:
            plan = plan_workload(job.kernel, workload, dict(scope), seed=1)
        except ExpressionError:
            return
        if all(min(b.shape) > 0 for b in plan.buffers) and _elements(plan) <= SMALL_ELEMENTS:
            yield workload, plan
            return


def _elements(plan: WorkloadPlan) -> int:
    return sum(b.elements for b in plan.buffers)
