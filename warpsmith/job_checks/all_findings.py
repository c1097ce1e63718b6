"""All checks of a job that need no launch."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.memory import buffer_bytes, check_memory
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.job_checks.parameters import parameter_findings
from warpsmith.job_checks.service_limits import service_findings
from warpsmith.job_checks.syntax import syntax_findings
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.jobfile import JobFile
from warpsmith.registry import Kind, load_all
from warpsmith.settings import Settings

LARGEST_MEMORY_BYTES = 512 * 10**9
"""Limit in bytes, above the memory of any single device."""
MARK = "TODO"


def known_findings(job: Job, settings: Settings, devices: Sequence[DeviceInfo] = ()) -> Iterator[Finding]:
    """Findings of all checks: service limits, the source's signature, idle threads, limits of devices.

    Args:
        devices: devices of the job's back end, if any are present.
    """
    yield from posted_findings(job, settings, devices)
    scope = devices[0].scope() if devices else {}
    yield from launch_warnings(job, scope, settings.permitted_includes())
    yield from tolerance_findings(job)


def posted_findings(job: Job, settings: Settings, devices: Sequence[DeviceInfo]) -> Iterator[Finding]:
    """Findings of the checks that can refuse a job, which a service makes before it accepts one."""
    yield from service_findings(job, settings)
    yield from source_findings(job, devices)
    yield from memory_findings(job, settings, devices)


def source_findings(job: Job, devices: Sequence[DeviceInfo] = ()) -> Iterator[Finding]:
    """Findings that follow from the job and its source alone, whatever a service permits."""
    yield from syntax_findings(job)
    for check in load_all(Kind.SOURCE_CHECK):
        yield from check(job, devices)
    # One device that a constraint leaves some configurations is enough.
    scopes = {str(d.scope()): d.scope() for d in devices} or {"": {}}
    yield from min((list(parameter_findings(job, scope)) for scope in scopes.values()), key=len)


def launch_warnings(
    job: Job, device: Mapping[str, Value], include_dirs: Mapping[str, Path] | None = None
) -> Iterator[Finding]:
    """Warnings about launches that the source shows to be wasteful.

    Args:
        device: limits of a device by name; empty: unknown.
        include_dirs: permitted include folders by name.
    """
    for check in load_all(Kind.LAUNCH_CHECK):
        yield from check(job, device, include_dirs)


def tolerance_findings(job: Job) -> Iterator[Finding]:
    """Warnings for floating-point outputs that must be equal to the last bit."""
    for argument in job.kernel.arguments:
        given = job.tolerances.get(argument.name)
        if given is None or given.share or not argument.dtype.is_float:
            continue
        if given.rtol == 0 and given.atol == 0:
            words = (
                f"rtol and atol are 0, so only results equal to the last bit pass; {argument.dtype.value} "
            )
            words += "results differ by rounding where operations are in another order"
            yield Finding(f"tolerances.{argument.name}", words, is_error=False)


def unfinished(file: JobFile, told: Collection[int | None] = ()) -> list[Finding]:
    """Warning that names the lines of a job file, outside of sources, that are marked as unfinished.

    Args:
        told: lines of which something else is said.
    """
    if file.path.suffix == ".json":
        return []
    sources = {line for line in told if line is not None}
    for section in ("kernel", "reference"):
        held = file.data.get(section)
        text = held.get("source") if isinstance(held, Mapping) else None
        first, second = file.lines.of(f"{section}.source", 1), file.lines.of(f"{section}.source", 2)
        if isinstance(text, str) and first is not None and first != second:
            sources |= set(range(first, first + text.count("\n") + 1))
    found = list(unfinished_lines(file.text, sources))
    if len(found) < 2:
        return found
    words = f"{found[0].message}; {MARK} is left in lines {', '.join(str(f.line) for f in found[1:])} too"
    return [replace(found[0], message=words)]


def unfinished_lines(text: str, apart: Collection[int] = ()) -> Iterator[Finding]:
    """Findings for the lines of a job file that are marked as unfinished.

    Args:
        apart: numbers of lines to skip, from 1: the lines of sources.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if number in apart:
            continue
        before, mark, after = line.partition(MARK)
        # The first line of a scaffold mentions the marks of the other lines.
        if not mark or before.lstrip().startswith("# Look at every"):
            continue
        about = after.strip(" :.}]\"'") or before.strip(" #-{")
        words = f"{MARK} is left: {about[:100]}; fill it in and remove the mark"
        yield Finding("", words, is_error=False, line=number)


def memory_findings(job: Job, settings: Settings, devices: Sequence[DeviceInfo]) -> Iterator[Finding]:
    """Findings about buffers that no device, or no permitted job, has room for."""
    if job.kernel.backend.language.is_recorded:
        return
    try:
        check_memory(job, devices, settings.job_memory_bytes)
    except InvalidInput as exc:
        yield Finding(exc.field, exc.message)
        return
    for index, workload in enumerate(job.workloads if not devices else ()):
        try:
            total = sum(buffer_bytes(job, workload).values())
        except ExpressionError:
            continue
        if total > LARGEST_MEMORY_BYTES:
            words = (
                f"the buffers of {workload.key} have {total / 1e9:.0f} GB, more than any single device has"
            )
            yield Finding(f"workloads.{index}.dimensions", words)
