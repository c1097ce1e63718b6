"""`init` with a compiler: guesses that it refuses give way to others, and what is missing is named."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.headers import path_problem
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold, scaffold_job, with_switches
from warpsmith.extensions.scaffold.command.init_extraction import Compile, taken_scaffold, with_near_values
from warpsmith.extensions.scaffold.extraction.framework_types import number_header
from warpsmith.extensions.scaffold.guesses import ELEMENTS
from warpsmith.job_files.kernel_sources import HEADER_ENDINGS
from warpsmith.source.kernels.kernel_definitions import Dialect
from warpsmith.source.lexing.tokens import blank
from warpsmith.system.source_text import read_source_text

_TRIALS = 12
"""Limit on the compilations of one `init`."""
_MISSING = re.compile(r'cannot open source file "([^"]+)"|fatal error: ([^\s:]+): No such file')
_UNKNOWN_NAME = re.compile(
    r'^([^\s(]+)\((\d+)\): error: (?:name followed by "::" must be|identifier "(\w+)" is undefined)'
)
_MOST_HEADERS = 200
"""Limit on the neighbours of a header that are searched for a name."""


@dataclass(frozen=True)
class _InitTrial:
    sources: tuple[Path, ...]
    wanted: InitOptions


def tried_scaffold(sources: Sequence[Path], target: Path, wanted: InitOptions, compiled: Compile) -> str:
    """The job file of `scaffold`, with other guesses where a compiler of this machine refuses the first.

    Headers that are missing become empty ones, the elements of buffers get other types, and a header that
    declares what another one uses without including it is included first. If that does not help, the kernel
    is taken out of its file with what it reaches. If nothing helps, or there is no compiler, the first
    guesses stay, and the missing headers are named.

    Args:
        compiled: usually a `JobCompiler`.

    Raises:
        InvalidInput: see `scaffold`.
    """
    wanted = with_near_values(sources, target, with_switches(sources, target, wanted))
    text, compiles = _whole(sources, target, wanted, compiled)
    if compiles is not False:
        return text
    return taken_scaffold(sources, target, wanted, compiled) or text


def _whole(
    sources: Sequence[Path], target: Path, wanted: InitOptions, compiled: Compile
) -> tuple[str, bool | None]:
    """The job file of the whole source, and whether it compiles; None if nothing here can tell."""
    first = scaffold(sources, target, wanted)
    trial = _InitTrial(tuple(sources), wanted)
    text, missing = first, wanted.empty_headers
    for _ in range(_TRIALS):
        job = scaffold_job(text, trial.sources, target, trial.wanted)
        refused = None if job is None else compiled(job)
        if job is None:
            return first, False
        if not isinstance(refused, Rejected):
            return (text, True) if refused is not None else (first, None)
        following = _next(trial, refused, job)
        if following is None:
            break
        trial = following
        missing = trial.wanted.empty_headers
        text = scaffold(trial.sources, target, trial.wanted)
    if missing:
        return scaffold(sources, target, replace(wanted, missing_headers=missing)), False
    return first, False


def _next(trial: _InitTrial, refused: Rejected, job: Job) -> _InitTrial | None:
    """Next trial after a refusal; None if nothing is left to try."""
    if not job.kernel.backend.language.has_cuda_words:
        return None
    wanted = trial.wanted
    found = _MISSING.search(refused.reason)
    if found is not None:
        name = found.group(1) or found.group(2)
        if name in job.kernel.files or path_problem(name):
            return None
        return replace(trial, wanted=replace(wanted, empty_headers=(*wanted.empty_headers, name)))
    name = _of_number_type(refused, Dialect.from_backend(job.kernel.backend))
    if name and name not in wanted.first_headers and trial.sources[0].suffix in HEADER_ENDINGS:
        return replace(trial, wanted=replace(wanted, first_headers=(*wanted.first_headers, name)))
    header = _declaring(trial, refused, job)
    if header is not None:
        return replace(trial, sources=(header, *trial.sources))
    unknown = _UNKNOWN_NAME.match(refused.reason)
    if unknown is not None and unknown.group(3) != wanted.element:
        return None  # no other type would declare the name
    rest = ELEMENTS[ELEMENTS.index(wanted.element) + 1 :]
    if rest and re.search(rf"[<,] ?{wanted.element}[,>]", job.kernel.entry):
        return replace(trial, wanted=replace(wanted, element=rest[0]))
    return None


def _of_number_type(refused: Rejected, dialect: Dialect) -> str:
    """The header of a number type that a compiler did not know; empty for other names."""
    found = _UNKNOWN_NAME.match(refused.reason)
    return number_header((found.group(3) or "") if found else "", dialect)


def _declaring(trial: _InitTrial, refused: Rejected, job: Job) -> Path | None:
    """The one header beside a header that declares the name which a compiler did not know in it."""
    found = _UNKNOWN_NAME.match(refused.reason)
    text = job.kernel.files.get(found.group(1)) if found else None
    if found is None or text is None or trial.sources[0].suffix not in HEADER_ENDINGS:
        return None
    line = "".join(text.split("\n")[int(found.group(2)) - 1 : int(found.group(2))])
    wanted = [("", found.group(3))] if found.group(3) else re.findall(r"\b(\w+)::(\w+)", line)
    near = [path for path in _neighbours(trial.sources) if _declares(blank(read_source_text(path)), wanted)]
    return near[0] if len(near) == 1 else None


def _neighbours(sources: Sequence[Path]) -> Iterator[Path]:
    folders = dict.fromkeys(path.resolve().parent for path in sources)
    headers = (p for d in folders for p in sorted(d.iterdir()) if p.suffix in HEADER_ENDINGS)
    known = {path.resolve() for path in sources}
    for _, path in zip(range(_MOST_HEADERS), headers, strict=False):
        if path not in known and path.is_file():
            yield path


def _declares(text: str, names: Sequence[tuple[str, str]]) -> bool:
    """True if a header defines one of these names, each in the namespace beside it."""
    for space, name in names:
        kind = rf"\b(?:struct|class|enum|union|using|concept|define)\s+{name}\b"
        named = rf"\btypedef\b[^;{{}}]*\b{name}\s*;|\}}\s*{name}\s*;"
        function = rf"__device__[^;{{}}()]*\b{name}\s*\("
        inside = not space or re.search(rf"\bnamespace\s+(?:\w+::)*{space}\b", text)
        if inside and re.search(f"{kind}|{named}|{function}", text):
            return True
    return False
