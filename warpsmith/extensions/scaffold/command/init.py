"""`init`: writes a job file for a kernel that exists only as source."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.host_files import host_texts
from warpsmith.extensions.scaffold.guesses import ELEMENTS
from warpsmith.extensions.scaffold.job_file import Given, choose_kernel, job_scaffold
from warpsmith.extensions.scaffold.known import KnownJob, nothing_known
from warpsmith.extensions.scaffold.reading.placeholders import first_placeholder
from warpsmith.extensions.scaffold.reading.switched_off import switched_off
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_word
from warpsmith.job_files.collected_headers import SentHeaders
from warpsmith.job_files.finding import Finding
from warpsmith.job_files.jobfile import InvalidJob, JobFile
from warpsmith.job_files.kernel_sources import FoundSource, find_source
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels
from warpsmith.source.macros.macro_words import defined_words, unknown_introductions

_MAX_SHOWN = 8
_MOST_SWITCHES = 4
"""Limit on the conditionals around a kernel that are switched on one after another."""
_MOST_REFUSED = 100
"""Limit on the rows of a job file that are left out one after another."""
_LEFT_OUT = re.compile(r"  - \{|  \w+: \{|\w+: \S")
"""Rows of a job file that may be left out: items and fields of one row."""
_EMPTY = re.compile(r"^(?:parameters|constraints|tolerances):(?=[^\n{\[]*\n(?:#.*\n)*(?:\w|\Z))", re.M)
"""A list of a job file without items."""
_OPTIONS = ("backend", "entry")
"""Fields of a job that are options of `init`."""


@dataclass(frozen=True)
class InitOptions:
    """The user's options for a kernel, besides its files."""

    entry: str | None = None
    backend: Backend | None = None
    defines: tuple[str, ...] = ()
    """Macros as `NAME` or `NAME=VALUE`."""
    include_dirs: tuple[Path, ...] = ()
    permitted: Mapping[str, Path] = field(default_factory=dict)
    """The operator's include folders by name."""
    element: str = ELEMENTS[0]
    """Guess for the type of a buffer's elements, if a template leaves it open."""
    empty_headers: tuple[str, ...] = ()
    """Names of headers that the job sends as empty files."""
    first_headers: tuple[str, ...] = ()
    """Names of the toolkit's headers that a job which includes headers includes first."""
    missing_headers: tuple[str, ...] = ()
    """Names of headers that a comment says are missing."""
    text: str | None = None
    """Source of the kernel, taken out of the files; None: the files as they are."""
    remarks: tuple[str, ...] = ()
    """Sentences about the source, for comments of the job file."""
    known: Callable[[KernelDefinition], KnownJob] = nothing_known
    """Facts about the kernel's job that take the place of guesses."""


def scaffold(sources: Sequence[Path], target: Path, wanted: InitOptions) -> str:
    """A job file for a kernel of these files.

    Raises:
        InvalidInput: the language is unclear, or the sources have no such kernel.
    """
    try:
        return _scaffold(sources, target, wanted)
    except InvalidInput as exc:
        if exc.field in _OPTIONS:
            raise InvalidInput(f"--{exc.field}", exc.message) from exc
        raise


def drafted(
    source: Path, target: Path, backend: Backend | None, entry: str | None, defines: Sequence[str] = ()
) -> str:
    """A job file for one source.

    Raises:
        InvalidInput: as `scaffold`.
    """
    return scaffold([source], target, InitOptions(entry=entry, backend=backend, defines=tuple(defines)))


def scaffold_job(text: str, sources: Sequence[Path], target: Path, wanted: InitOptions) -> Job | None:
    """The job of a scaffold; None while a person has to fill in what has no guess."""
    try:
        return job_of_text(text, sources, target, wanted)
    except InvalidInput:
        return None


def job_of_text(text: str, sources: Sequence[Path], target: Path, wanted: InitOptions) -> Job:
    """The job in the text of a job file for these sources.

    The files that `init` was given may be sent, wherever the job file lies.

    Raises:
        InvalidJob: the fields that are wrong.
    """
    folders = (*wanted.include_dirs, *(path.resolve().parent for path in sources))
    file = JobFile.parsed(target, text, folders)
    kernel = dict(file.data["kernel"])
    if "source_file" in kernel:  # the folder of the target may not exist so far
        kernel["source_file"] = str((target.parent / kernel["source_file"]).resolve())
    return replace(file, data={**file.data, "kernel": kernel}).job()


def formed(text: str, sources: Sequence[Path], target: Path, wanted: InitOptions) -> str:
    """The text of a job file with what a job refuses as comments; placeholders stay.

    Raises:
        InvalidInput: a part that a job refuses cannot be left out.
    """
    for _ in range(_MOST_REFUSED):
        try:
            job_of_text(text, sources, target, wanted)
        except InvalidJob as exc:
            rows = text.split("\n")
            refused = [f for f in exc.findings if not _is_open(rows, f)]
        else:
            return text
        if not refused:
            return text
        at = (refused[0].line or 1) - 1
        if not _LEFT_OUT.match(rows[at]):
            break
        rows[at] = f"# {TODO}: left out: {' '.join(refused[0].message.split())}\n# {rows[at]}"
        text = _EMPTY.sub(r"# \g<0>", "\n".join(rows))
    raise InvalidInput("source", f"init cannot write this as a job: {refused[0]}")


def _is_open(rows: Sequence[str], finding: Finding) -> bool:
    """True for a finding about a placeholder that a person fills in."""
    place = "needs the role" if finding.field in ("kernel", "kernel.arguments") else None
    row = rows[(finding.line or 1) - 1]
    return TODO in row if place is None else any(TODO in r and (place in r or r is row) for r in rows)


def _scaffold(sources: Sequence[Path], target: Path, wanted: InitOptions) -> str:
    defines = _defines(wanted.defines)
    found = found_source(sources, target, wanted)
    if wanted.text is not None:
        found = replace(
            found,
            text=wanted.text,
            source=wanted.text,
            include_dirs=(),
            includes=(),
            headers=SentHeaders({}, ()),
            header_texts=(),
            first_line=1,
        )
    placeholder = first_placeholder(found.text)
    if placeholder is not None:
        place = f"{found.shown} (line {found.first_line - 1 + placeholder.line})"
        words = "is a placeholder of a code template and no C; give init the source that is generated from it"
        raise InvalidInput("source", f"{place}: {placeholder.text} {words}")
    if not find_kernels(found.text, found.dialect, defines, found.header_texts):
        raise InvalidInput("source", f"{found.shown}: no kernel definition found{_hint(found, defines)}")
    return job_scaffold(
        found.text,
        found.shown,
        found.dialect,
        wanted.entry,
        Given(
            tuple(_source_lines(found)),
            (
                *_header_lines(found),
                *_missing(wanted),
                *(f"# {remark}" for remark in wanted.remarks),
                *_left_out(found, wanted.entry, defines),
            ),
            defines,
            found.header_texts,
            wanted.element,
            wanted.known,
            found.first_line,
            host_texts(sources, found, wanted.entry),
        ),
    )


def _source_lines(found: FoundSource) -> Iterator[str]:
    """Lines of the job's `kernel` with the source."""
    if found.source is None:
        yield f"source_file: {yaml_word(found.source_file)}"
        return
    rows = [row.rstrip().expandtabs(4) for row in found.source.strip("\n").split("\n")]
    rows = [re.sub(r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff]", " ", row) for row in rows]
    yield "source: |2"
    yield from (f"  {row}" if row else "" for row in rows)


def _header_lines(found: FoundSource) -> Iterator[str]:
    """Lines of the job's `kernel` that lead to its headers."""
    if found.include_dirs:
        listed = ", ".join(map(yaml_word, found.include_dirs))
        yield f"include_dirs: [{listed}]  # headers are sent from there"
    if found.includes:
        yield f"includes: [{', '.join(found.includes)}]  # folders of the operator"


def _left_out(found: FoundSource, entry: str | None, defines: Mapping[str, str]) -> Iterator[str]:
    """A comment if a conditional leaves out the kernel of the job."""
    switch = _switch(found, entry, defines)
    if switch is not None:
        yield f"# {TODO}: {switch[1]}."


def _switch(
    found: FoundSource, entry: str | None, defines: Mapping[str, str]
) -> tuple[Mapping[str, str], str] | None:
    """The macros that put the kernel in, and which condition leaves it out; None if none does."""
    kernels = find_kernels(found.text, found.dialect, defines, found.header_texts)
    if not kernels:
        return None
    kernel, _ = choose_kernel(kernels, found.shown, entry)
    if kernel.is_taken:
        return None
    switch = switched_off(found.text, kernel.line, defines, found.header_texts)
    return (switch.defines or {}, switch.words(kernel.name, found.first_line)) if switch else None


def with_switches(sources: Sequence[Path], target: Path, wanted: InitOptions) -> InitOptions:
    """The options, with the macros that put the kernel into its file where a conditional leaves it out.

    Raises:
        InvalidInput: see `scaffold`.
    """
    for _ in range(_MOST_SWITCHES):
        found = found_source(sources, target, wanted)
        switch = _switch(found, wanted.entry, _defines(wanted.defines))
        if switch is None or not switch[0]:
            break
        more = (f"{name}={value}" for name, value in switch[0].items())
        wanted = replace(wanted, defines=(*wanted.defines, *more), remarks=(*wanted.remarks, f"{switch[1]}."))
    return wanted


def found_source(sources: Sequence[Path], target: Path, wanted: InitOptions) -> FoundSource:
    """The source and headers of these files.

    Raises:
        InvalidInput: see `find_source`.
    """
    return find_source(
        sources,
        target,
        wanted.backend,
        wanted.include_dirs,
        wanted.permitted,
        wanted.first_headers,
        wanted.entry,
    )


def _missing(wanted: InitOptions) -> Iterator[str]:
    if wanted.missing_headers:
        named = ", ".join(wanted.missing_headers)
        yield f"# {TODO}: not found: {named}. Give their folders to init (-I)."
    if wanted.empty_headers:
        yield (
            f"# {TODO}: these were not found, and the kernel compiles without them. If it needs one of their "
            "macros, give their folders to init (-I)."
        )
        yield f"empty_headers: [{', '.join(map(yaml_word, wanted.empty_headers))}]"


def _defines(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise InvalidInput("-D", f"{text!r} is not of the form NAME or NAME=VALUE")
        found[name] = value if "=" in text else "1"
    return found


def _hint(found: FoundSource, defines: Mapping[str, str]) -> str:
    """Hint to where the kernels may be, if the file itself has none."""
    elsewhere = _elsewhere(found, defines)
    if elsewhere:
        return elsewhere
    known = {*defines, *defined_words((found.text, *found.header_texts))}
    unknown = unknown_introductions(found.text, known)
    if not unknown:
        return ""
    word, names = next(iter(unknown.items()))
    marker = "__kernel" if found.dialect is Dialect.OPENCL else "__global__"
    return (
        f"; {word} introduces {_few(names)}, and nothing here defines it: if it stands for {marker}, "
        f"give -D {word}={marker}"
    )


def _few(names: Sequence[str]) -> str:
    return f"{', '.join(names[:_MAX_SHOWN])}{', ...' if len(names) > _MAX_SHOWN else ''}"


def _elsewhere(found: FoundSource, defines: Mapping[str, str]) -> str:
    """A hint to the header that has kernels, if the file itself has none."""
    places = []
    for path, text in found.headers.files.items():
        names = [k.name for k in find_kernels(text, found.dialect, defines)]
        if names:
            places.append(f"{path} ({_few(names)})")
    if not places:
        return ""
    return f"; it includes headers that define some: {'; '.join(places[:_MAX_SHOWN])}. Give that file to init"
