"""Job files: YAML or JSON into a `Job`, with errors that name the line, the field and the fix."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES
from warpsmith.domain.plain_data import data_problem
from warpsmith.errors import InvalidInput
from warpsmith.job_files.collected_headers import headers_of
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.job_lines import JobLines
from warpsmith.job_files.kernel_sources import SOURCE_ENDINGS
from warpsmith.job_files.validation_errors import field_problems
from warpsmith.job_files.value_files import outside, with_values
from warpsmith.job_files.yaml_data import composed, value_of
from warpsmith.system.shell_words import shell_path
from warpsmith.system.source_text import source_text

MAX_PROBLEMS = 8


class InvalidJob(InvalidInput):
    """A job file that cannot be accepted.

    Args:
        path: path of the file, as the user gave it.
        findings: errors in the order in which they are shown; at least one.
    """

    def __init__(self, path: Path, findings: Iterable[Finding]) -> None:
        self.path = path
        self.findings = tuple(findings)
        super().__init__(self.findings[0].field, self.findings[0].message)

    def __str__(self) -> str:
        return "\n".join(placed(self.path, f) for f in self.findings)


@dataclass(frozen=True)
class JobFile:
    """A job file that could be parsed. Its contents may still be invalid."""

    path: Path
    text: str = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    lines: JobLines = field(repr=False)
    include_dirs: tuple[Path, ...] = ()
    """Folders searched for headers after those that the file names; see `headers_of`."""

    @staticmethod
    def read(path: Path, include_dirs: Sequence[Path] = ()) -> "JobFile":
        """The mapping in a YAML or JSON file.

        Raises:
            InvalidJob: the file does not exist or is not a mapping; the message names the line.
        """
        return JobFile.parsed(path, _text(path), include_dirs)

    @staticmethod
    def parsed(path: Path, text: str, include_dirs: Sequence[Path] = ()) -> "JobFile":
        """The mapping in a text that is, or will be, the file at `path`.

        Raises:
            InvalidJob: the text is not a mapping, and the message names the line; or a kernel's source.
        """
        if path.suffix in SOURCE_ENDINGS:
            words = f"is a kernel's source and no job file; run: warpsmith init {shell_path(path)}"
            raise InvalidJob(path, [Finding("", words)])
        data, lines = _mapping(path, text)
        return JobFile(path, text, data, lines, tuple(include_dirs))

    def job(self) -> Job:
        """The job. `source_file` and the headers that it includes are read relative to the job file.

        Raises:
            InvalidJob: the fields that are wrong, in the order of the file.
        """
        found = job_or_findings(self.data, self.path.parent, self.include_dirs)
        if isinstance(found, Job):
            return found
        findings = self.located(found)
        if len(findings) > MAX_PROBLEMS:
            rest = Finding("", f"and {len(findings) - MAX_PROBLEMS} more problems")
            findings = [*findings[:MAX_PROBLEMS], rest]
        raise InvalidJob(self.path, findings)

    def located(self, findings: Iterable[Finding]) -> list[Finding]:
        """Findings with their lines, in the order of the file."""
        known = [
            replace(f, line=self.lines.of(f.field, f.inner_line)) if f.line is None else f for f in findings
        ]
        return sorted(known, key=lambda f: (f.line or 0, not f.is_error))

    def placed(self, text: str) -> str:
        """A message prefixed with the line of the field that it begins with; unchanged if it names no
        field."""
        named, _, message = text.partition(": ")
        if named.split(".", 1)[0] not in Job.model_fields or not message:
            return text
        return placed(self.path, Finding(named, message, line=self.lines.of(named)))

    @contextmanager
    def naming_lines(self) -> Iterator[None]:
        """Context in which errors about a field of the job get its line.

        Raises:
            InvalidJob: replaces an `InvalidInput` about such a field.
        """
        try:
            yield
        except InvalidJob:
            raise
        except InvalidInput as exc:
            if exc.field.split(".", 1)[0] not in Job.model_fields:
                raise
            raise InvalidJob(self.path, self.located([Finding(exc.field, exc.message)])) from exc


def placed(path: Path, finding: Finding) -> str:
    """Format a finding as a line: `job.yaml:12: kernel.entry: ...`."""
    return f"{path}:{finding.line}: {finding}" if finding.line is not None else f"{path}: {finding}"


def load_job(path: Path, include_dirs: Sequence[Path] = ()) -> Job:
    """The job of a file; its `source_file` and headers are read, relative to the job file.

    Args:
        include_dirs: further folders searched for headers, relative to the current folder.

    Raises:
        InvalidJob: the fields that are wrong.
    """
    return JobFile.read(path, include_dirs).job()


def parse_job(data: Mapping[str, Any], folder: Path | None = None) -> Job:
    """A job from plain data.

    Args:
        folder: folder of `kernel.source_file`; None: files are not read.

    Raises:
        InvalidInput: the fields that are wrong.
    """
    found = job_or_findings(data, folder)
    if isinstance(found, Job):
        return found
    rest = "".join(f"\n{f}" for f in found[1:MAX_PROBLEMS])
    raise InvalidInput(found[0].field, found[0].message + rest)


def job_or_findings(
    data: Mapping[str, Any], folder: Path | None = None, include_dirs: Sequence[Path] = ()
) -> Job | list[Finding]:
    """The job of plain data, or the fields that are wrong; arguments as of `parse_job` and `load_job`."""
    problem = data_problem(data)
    if problem is not None:
        return [Finding(*problem)]
    findings: list[Finding] = []
    kernel = data.get("kernel")
    if folder is not None and isinstance(kernel, Mapping):
        beside = folder
        name = kernel.get("source_file")
        if kernel.get("source") is None and isinstance(name, str):
            source = _read_source(folder, name, include_dirs)
            if isinstance(source, Finding):
                findings.append(source)
                source = ""
            kernel = {k: v for k, v in kernel.items() if k != "source_file"} | {"source": source}
            beside = (folder / name).parent
        try:
            kernel = _with_headers(kernel, beside, folder, include_dirs)
        except InvalidInput as exc:
            findings.append(Finding(exc.field, exc.message))
        kernel, unread = with_values(kernel, folder, include_dirs)
        findings += unread
        data = {**data, "kernel": kernel}
    try:
        job = Job.model_validate(dict(data))
    except ValidationError as exc:
        return findings + [Finding(f, m) for f, m in field_problems(exc.errors(), Job, data)]
    return findings or job


def _with_headers(
    kernel: Mapping[str, Any], beside: Path, folder: Path, include_dirs: Sequence[Path]
) -> Mapping[str, Any]:
    """The kernel together with the headers that its source includes, unless it already has them."""
    named = kernel.get("include_dirs") or ()
    words = isinstance(named, list | tuple) and all(isinstance(d, str) for d in named)
    if "files" in kernel or not isinstance(kernel.get("source"), str) or not words:
        return kernel
    sent = headers_of(kernel["source"], beside, [*(folder / d for d in named), *include_dirs])
    rest = {k: v for k, v in kernel.items() if k != "include_dirs"}
    return rest | ({"files": sent.files, "include_dirs": list(sent.include_dirs)} if sent.files else {})


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        words = f"cannot be read: byte {exc.start} is no UTF-8; a job file is text"
        raise InvalidJob(path, [Finding("", words, line=line)]) from exc
    except (OSError, ValueError) as exc:
        raise InvalidJob(path, [Finding("", f"cannot be read: {_reason(exc)}")]) from exc


def _mapping(path: Path, text: str) -> tuple[dict[str, Any], JobLines]:
    """The mapping in a text, and the lines of its fields."""
    line: int | None = None
    try:
        data, lines = (_of_json if path.suffix == ".json" else _of_yaml)(path, text)
    except json.JSONDecodeError as exc:
        words, line = exc.msg, exc.lineno
    except yaml.reader.ReaderError:
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        line = text.count("\n", 0, found.start()) + 1 if found else None
        words = f"cannot be read: character U+{ord(found[0] if found else ' '):04X} is not allowed in YAML"
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        words = getattr(exc, "problem", None) or "not valid YAML"
    except RecursionError:
        words = "is nested too deeply"
    except ValueError as exc:  # a date that is none, a number of thousands of digits
        words = f"cannot be read: {exc}"
    else:
        if isinstance(data, dict):
            return data, lines
        held = "is empty; it " if data is None else ""
        words, line = f"{held}must hold a mapping with the fields of a job", 1
    raise InvalidJob(path, [Finding("", words, line=line)])


def _of_yaml(path: Path, text: str) -> tuple[Any, JobLines]:
    root = composed(text)
    lines = _lines(path, root)
    return value_of(root), lines


def _of_json(path: Path, text: str) -> tuple[Any, JobLines]:
    data = json.loads(text)
    try:
        root = composed(text.replace("\t", " "))  # JSON is YAML but for tabs between its tokens
    except (yaml.YAMLError, ValueError):
        root = None
    return data, _lines(path, root)


def _lines(path: Path, root: yaml.Node | None) -> JobLines:
    """The lines of fields, before merged keys are put in their places, if no key repeats."""
    lines = JobLines(root)
    repeated = lines.repeated_key()
    if repeated is not None:
        name, first, second = repeated
        words = f"{name} stands in lines {first} and {second}; one of them would be ignored"
        raise InvalidJob(path, [Finding("", words, line=second)])
    return lines


def _read_source(folder: Path, name: str, allowed: Sequence[Path]) -> str | Finding:
    path = folder / name
    refusal = outside(path, folder, allowed)
    if refusal:
        return Finding("kernel.source_file", refusal)
    try:
        data = path.read_bytes()
        if len(data) > MAX_SOURCE_BYTES:
            words = f"{path} has {len(data)} bytes; at most {MAX_SOURCE_BYTES}"
            return Finding("kernel.source_file", words)
        text = source_text(data)
        if "\0" in text:
            return Finding(
                "kernel.source_file", f"{path} cannot be read: it has NUL characters, so it is no text"
            )
        return text
    except FileNotFoundError:
        beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, n=1)
        hint = f"; did you mean {str(Path(name).parent / near[0])!r}?" if near else ""
        words = f"no such file: {path} (the name is relative to the job file){hint}"
        return Finding("kernel.source_file", words)
    except (OSError, ValueError) as exc:
        return Finding("kernel.source_file", f"{path} cannot be read: {_reason(exc)}")


def _reason(exc: Exception) -> str:
    """The operating system's message without error number and path, which the caller's message has."""
    return exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
