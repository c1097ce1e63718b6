"""Checks a sequence of launches one by one, each as a kernel of its own."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.job_files.finding import Finding

_ARGUMENTS = "kernel.arguments"
_OF_ORDER = ("", "name")
"""Parts of an argument that are about which argument a launch takes, not about what it is."""


def of_each_launch(job: Job, check: Callable[[Job], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of a check of single launches, with the fields of the job.

    Args:
        check: is given the job with each launch in turn as its only one.
    """
    if not job.kernel.launches:
        yield from check(job)
        return
    seen = set()
    for n in range(len(job.kernel.launches)):
        alone = job.model_copy(update={"kernel": _alone(job, n)})
        for finding in check(alone):
            found = replace(finding, field=_field(job, n, finding.field))
            if found not in seen:
                seen.add(found)
                yield found


def _alone(job: Job, n: int) -> Kernel:
    """A launch as a kernel. What several launches take may be read by one and written by another."""
    kernel = job.kernel.of_step(n)
    users = [name for step in job.kernel.launches for name in step.arguments]
    arguments = tuple(
        a.model_copy(update={"role": Role.SCRATCH}) if a.is_mutated and users.count(a.name) > 1 else a
        for a in kernel.arguments
    )
    return kernel.model_copy(update={"arguments": arguments})


def _field(job: Job, n: int, field: str) -> str:
    """A field of a launch that was checked alone, as a field of the job."""
    for part in ("entry", "launch"):
        if field == f"kernel.{part}" or field.startswith(f"kernel.{part}."):
            return field.replace(f"kernel.{part}", f"kernel.launches.{n}.{part}", 1)
    if field != _ARGUMENTS and not field.startswith(f"{_ARGUMENTS}."):
        return field
    place, _, rest = field.removeprefix(_ARGUMENTS).lstrip(".").partition(".")
    if not place or rest in _OF_ORDER:
        return f"kernel.launches.{n}.arguments{f'.{place}' if place else ''}"
    name = job.kernel.launches[n].arguments[int(place)]
    declared = next(i for i, a in enumerate(job.kernel.arguments) if a.name == name)
    return f"{_ARGUMENTS}.{declared}.{rest}"
