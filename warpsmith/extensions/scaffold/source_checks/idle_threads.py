"""Warnings for launches with more threads than have work."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.errors import ExpressionError
from warpsmith.extensions.rules.analysis.kernel_facts import AXES
from warpsmith.extensions.rules.analysis.launch.working_threads import (
    Counts,
    LaunchWork,
    Need,
    enough,
    needs,
    takes_turns,
    too_much,
)
from warpsmith.extensions.rules.templater import STEPS, TOO_MUCH, first_draft
from warpsmith.extensions.scaffold.source_checks.each_launch import of_each_launch
from warpsmith.job_files.finding import Finding
from warpsmith.source.tree.work_limit import limited_work


def idle_threads(
    job: Job, device: Mapping[str, Value], include_dirs: Mapping[str, Path] | None = None
) -> Iterator[Finding]:
    """Warnings at the extents of launches along which more than a little has no work, or the same work again.

    Nothing is said of a kernel whose own checks do not show what has work.

    Args:
        device: limits of a device by name; empty: unknown.
        include_dirs: as of `make_template`.
    """
    if job.kernel.backend.language.kernel_word:
        yield from of_each_launch(job, lambda alone: _of_launch(alone, device, include_dirs))


def _of_launch(
    job: Job, device: Mapping[str, Value], include_dirs: Mapping[str, Path] | None
) -> list[Finding]:
    try:
        with limited_work(STEPS):
            draft = first_draft(job, include_dirs)
            found = needs(draft)
            if isinstance(found, str) or job.kernel.launch.joins_blocks:
                return []
            if takes_turns(draft):
                found = tuple(need for need in found if need.counts is not Counts.NOTHING)
            much = too_much(draft, found, job.workloads, device)
            return [] if much is None else list(_of_axes(job, found, *much))
    except (LookupError, ExpressionError, *TOO_MUCH):
        return []  # ExpressionError: the extent that would do is too long to be one


def _of_axes(job: Job, found: tuple[Need, ...], workload: Workload, counted: LaunchWork) -> Iterator[Finding]:
    said = f"of {counted.threads} threads {counted.working} have work ({workload.key})"
    for need in found:
        if need.number in counted.idle_axes:
            yield from _of_axis(job, need, said)


def _of_axis(job: Job, need: Need, said: str) -> Iterator[Finding]:
    launch = job.kernel.launch
    would_do = enough(launch, (need,), (need.number,))
    n, axis = need.number, AXES[need.number]
    if need.counts is Counts.NOTHING:
        said += (
            f"; the kernel never asks for its place along {axis}, so that all threads along it do the same"
        )
    for part, posted, better in (
        ("grid", launch.grid, would_do.grid),
        ("block", launch.block, would_do.block),
    ):
        if n < len(posted) and posted[n].text != better[n].text:
            words = f"{said}; the {part} {better[n].text} along {axis} would do"
            yield Finding(f"kernel.launch.{part}.{n}", words, is_error=False)
