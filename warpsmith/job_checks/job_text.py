"""Jobs as text that an agent writes: a draft for a source, and the job of a text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from warpsmith.domain.device import Backend, written_backends
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.job_checks.all_findings import source_findings, unfinished
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.jobfile import InvalidJob, JobFile, placed
from warpsmith.registry import Kind, load_only

_JOB = Path("job.yaml")
MAX_CHARACTERS = 1 << 20


def draft(source: str, backend: Backend, entry: str, defines: Sequence[str] = ()) -> str:
    """A job file for a kernel of a source, which it names as `kernel.cu` or `kernel.cl`.

    Raises:
        InvalidInput: the source has no such kernel, or its language has no drafts.
    """
    if backend.language.is_recorded:
        raise InvalidInput(
            "backend", f"a draft is written for {' and '.join(b.value for b in written_backends())} only"
        )
    with _placed(source, backend) as folder:
        file = Path(folder) / f"kernel{backend.language.ending}"
        text: str = load_only(Kind.DRAFT)(file, Path(folder) / "job.yaml", backend, entry or None, defines)
        return text.replace(folder + "/", "")


def read(text: str, source: str = "") -> tuple[Job, list[str]]:
    """The job of a YAML or JSON text, and warnings about it.

    Args:
        source: the kernel's source, for a text that names `source_file`; empty if it is in the text.

    Raises:
        InvalidInput: the fields that are wrong, one a line.
    """
    try:
        job, warnings = checked(text, source)
    except InvalidJob as exc:
        errors = [f for f in exc.findings if f.is_error]
        raise InvalidInput("job", str(InvalidJob(exc.path, errors))) from exc
    return job, [placed(_JOB, f) for f in warnings]


def checked(
    text: str, source: str = "", check: Callable[[Job], Iterable[Finding]] = source_findings
) -> tuple[Job, list[Finding]]:
    """The job of a YAML or JSON text, and warnings about it.

    Args:
        source: as in `read`.
        check: finds what is wrong with the job.

    Raises:
        InvalidJob: the fields that are wrong, with their lines; warnings follow.
        InvalidInput: the text is too long.
    """
    if len(text) + len(source) > MAX_CHARACTERS:
        raise InvalidInput("job", f"more than {MAX_CHARACTERS} characters")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "job.yaml"
        for backend in written_backends():
            (Path(folder) / f"kernel{backend.language.ending}").write_text(source, encoding="utf-8")
        file: JobFile | None = None
        try:
            file = JobFile.parsed(path, text)
            job = file.job()
            found = file.located([*unfinished(file), *check(job)])
        except InvalidJob as exc:
            marked = [] if file is None else unfinished(file, {f.line for f in exc.findings})
            found = [*exc.findings, *marked]
            raise InvalidJob(_JOB, [_outside(f, folder) for f in found]) from exc
    found = [_outside(f, folder) for f in sorted(found, key=lambda f: not f.is_error)]
    if found and found[0].is_error:
        raise InvalidJob(_JOB, found)
    return job, found


def _outside(finding: Finding, folder: str) -> Finding:
    """The finding without the name of a folder that nobody else knows."""
    return replace(finding, message=finding.message.replace(folder + "/", ""))


def _placed(source: str, backend: Backend) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    (Path(folder.name) / f"kernel{backend.language.ending}").write_text(source, encoding="utf-8")
    return folder
