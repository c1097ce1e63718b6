"""Reads the first argument of `tune`: a source, a file of one, or a whole job."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.job_files.jobfile import JobFile, load_job, parse_job
from warpsmith.job_files.kernel_sources import FoundSource, find_source, source_of_text
from warpsmith.settings import settings

JOB_ENDINGS = (".yaml", ".yml", ".json")

GivenJob = str | Path | Mapping[str, Any] | Job
GivenKernel = str | Path | Mapping[str, Any] | Job
"""A path of a source or of a job file, a source text, a job in the job form, or a `Job`."""


def job_file(kernel: GivenKernel, include_dirs: Sequence[Path]) -> JobFile | None:
    """The job file, if a path of one is given.

    Raises:
        InvalidJob: it cannot be read.
    """
    path = _path(kernel)
    if path is None or path.suffix.lower() not in JOB_ENDINGS:
        return None
    return JobFile.read(path, include_dirs)


def whole_job(kernel: GivenKernel, file: JobFile | None) -> Job | None:
    """The job, if a whole one is given.

    Raises:
        InvalidInput: it has errors; the message names the fields.
    """
    if file is not None:
        return file.job()
    return given_job(kernel) if isinstance(kernel, Job | Mapping) else None


def given_job(given: object) -> Job:
    """The job that is given as a whole.

    Raises:
        InvalidInput: it has errors; the message names the fields.
    """
    if isinstance(given, str | Path):
        return load_job(Path(given))
    if isinstance(given, Mapping):
        return parse_job(given, Path.cwd())
    if isinstance(given, Job):
        return given
    words = "give a Job, a mapping in the job form, or the path of a job file"
    raise InvalidInput("job", f"is of the type {type(given).__name__}; {words}")


def source_given(
    kernel: str | Path, backend: Backend | None, include_dirs: Sequence[Path]
) -> tuple[FoundSource, Path]:
    """The source, and the folder that its paths are relative to.

    Raises:
        InvalidInput: there is no such file, or its language is unclear.
    """
    path = _path(kernel)
    if path is None:
        return source_of_text(str(kernel), Path.cwd(), backend, include_dirs), Path.cwd()
    if not path.is_file():
        words = "no such file; give the path of a source or of a job file, or the text of a source"
        raise InvalidInput("kernel", f"{path}: {words}")
    folder = path.resolve().parent
    permitted = settings().permitted_includes()
    return find_source([path], folder / "job.yaml", backend, include_dirs, permitted), folder


def _path(kernel: GivenKernel) -> Path | None:
    """The path that is given; None for a text, which has a `{` or several lines."""
    if isinstance(kernel, Path):
        return kernel
    if isinstance(kernel, str) and not {"{", "\n"} & set(kernel):
        return Path(kernel)
    return None
