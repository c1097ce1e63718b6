"""Files that hold kernels: device sources, headers, and host files with kernels as text."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith.domain.device import Backend, written_backends
from warpsmith.errors import InvalidInput
from warpsmith.job_files.collected_headers import SentHeaders, headers_of
from warpsmith.source.kernels.embedded_kernels import embedded_sources
from warpsmith.source.kernels.host_strings import HostString, only_literals
from warpsmith.source.kernels.kernel_definitions import Dialect, find_kernels
from warpsmith.source.tree.included_headers import Library, included
from warpsmith.system.source_text import read_source_text

_ENDINGS = {ending: backend for backend in written_backends() for ending in backend.language.endings}
SOURCE_ENDINGS = tuple(_ENDINGS)
HEADER_ENDINGS = (".cuh", ".h", ".hpp", ".hh", ".clh", ".inl", ".inc")
_OF_HIP = re.compile(r"(?m)^[ \t]*#[ \t]*include[ \t]*[<\"]hip(?:cub)?/")
_OF_CUDA = re.compile(r"(?m)^[ \t]*#[ \t]*include[ \t]*[<\"](?:cuda\w*\.h|cub/|cuda/)")
"""A source that includes headers of both is one for both, and CUDA's."""
_LOOKS = 8
"""Limit on the rounds of searching folders whose headers include others."""
_LEVELS = 8
"""Limit on the folders above a source that are searched for its includes."""


@dataclass(frozen=True)
class FoundSource:
    """Source of which a job is made. Paths are relative to the job file's folder."""

    text: str
    """All device code that is searched for kernels."""
    shown: str
    """Name of the source in messages."""
    source: str | None
    """Text of the job's source; None: the job names `source_file`."""
    source_file: str
    """The first of the files."""
    include_dirs: tuple[str, ...]
    """Folders from which headers are sent."""
    includes: tuple[str, ...]
    """Names of the operator's folders that have headers which were found nowhere else."""
    headers: SentHeaders
    header_texts: tuple[str, ...]
    """Texts of headers of the source, those of the operator's folders included."""
    dialect: Dialect
    first_line: int = 1
    """Line of the file at which the first line of `text` stands, or would stand."""


def find_source(
    paths: Sequence[Path],
    target: Path,
    backend: Backend | None,
    include_dirs: Sequence[Path],
    permitted: Mapping[str, Path] | None = None,
    first_headers: Sequence[str] = (),
    entry: str | None = None,
) -> FoundSource:
    """The device source in these files, in their order.

    Args:
        target: the job file; paths in it are relative to its folder.
        backend: used if the files do not show it.
        permitted: the operator's include folders by name, for headers that are found nowhere else.
        first_headers: names of the toolkit's headers that a job which includes headers includes first.
        entry: name of the kernel that a job is made for; of a file that holds several programs as text, only
            its program is taken. None: all of them, if they have several kernels.

    Raises:
        InvalidInput: the language is unclear.
    """
    texts = [read_source_text(path) for path in paths]
    dialect = Dialect.from_backend(backend or _backend_of(paths, texts))
    folder = target.resolve().parent
    shown = [os.path.relpath(path.resolve(), folder) for path in paths]
    programs = _programs(texts, dialect, entry)
    written: str | None = None
    beside = folder
    if programs is not None:
        texts = [program.text for program in programs]
        written = "\n".join(texts)
    elif (written := _including(paths, first_headers)) is not None:
        include_dirs = [*dict.fromkeys(path.resolve().parent for path in paths), *include_dirs]
    else:
        beside = paths[0].resolve().parent
    source = texts[0] if written is None else written
    folders, headers = _folders(source, beside, include_dirs)
    permitted = permitted or {}
    names = _libraries(headers, permitted)
    library = Library([permitted[name] for name in names], headers.files, headers.include_dirs)
    return FoundSource(
        "\n".join(texts),
        ", ".join(shown),
        written,
        shown[0],
        tuple(os.path.relpath(d, folder) for d in folders),
        tuple(names),
        headers,
        tuple(headers.files.values()) if not names else included(source, library),
        dialect,
        programs[0].line if programs is not None and len(programs) == 1 else 1,
    )


def _programs(texts: Sequence[str], dialect: Dialect, entry: str | None) -> list[HostString] | None:
    """Device sources that host files hold as text, and the other files whole; None if no file holds any."""
    inner = [_inside(text, dialect, entry) for text in texts]
    if all(found is None for found in inner):
        return None
    return [found or HostString(text, 1) for text, found in zip(texts, inner, strict=True)]


def _including(paths: Sequence[Path], first_headers: Sequence[str]) -> str | None:
    """Source that includes the toolkit's headers and the files; None for a single file that is no header."""
    if len(paths) == 1 and paths[0].suffix not in HEADER_ENDINGS:
        return None
    names = [f"<{name}>" for name in first_headers] + [f'"{path.name}"' for path in paths]
    return "".join(f"#include {name}\n" for name in names)


def source_of_text(
    text: str, folder: Path, backend: Backend | None, include_dirs: Sequence[Path]
) -> FoundSource:
    """A source that is no file.

    Args:
        folder: searched for its headers, as if the source lay there.
        backend: used if the text does not show it.

    Raises:
        InvalidInput: the language is unclear.
    """
    dialect = Dialect.from_backend(backend or _backend_of((), (text,)))
    folders, headers = _folders(text, folder, include_dirs)
    return FoundSource(
        text,
        "the source",
        text,
        "",
        tuple(os.path.relpath(d, folder) for d in folders),
        (),
        headers,
        tuple(headers.files.values()),
        dialect,
    )


def _backend_of(paths: Sequence[Path], texts: Sequence[str]) -> Backend:
    whole = "\n".join(texts)
    is_hip = _OF_HIP.search(whole) is not None and _OF_CUDA.search(whole) is None
    for path in paths:
        if path.suffix in _ENDINGS:
            found = _ENDINGS[path.suffix]
            return Backend.HIP if is_hip and found is Backend.CUDA else found
    if is_hip:
        return Backend.HIP
    for backend in written_backends():
        word = backend.language.kernel_word
        if word and re.search(rf"\b{word}\b", whole):
            return backend
    words = "its text does not say what it is"
    if paths:
        words = f"{paths[0].name}: neither its ending ({', '.join(_ENDINGS)}) nor its text says what it is"
    raise InvalidInput("backend", f"{words}; give cuda, opencl or hip")


def _inside(text: str, dialect: Dialect, entry: str | None) -> HostString | None:
    """The device source that a file holds as text, if its kernels are there; None for device sources."""
    whole = only_literals(text)
    if whole is not None:
        return whole
    found = embedded_sources(text, dialect.markers)
    if not found:
        return None
    names = [{k.name for k in find_kernels(e.text, dialect)} for e in found]
    every = set().union(*names)
    outside = {k.name for k in find_kernels(text, dialect)} - every - {e.macro for e in found}
    if not every or outside:
        return None
    wanted = every if entry is None else {entry.split("<", 1)[0].rpartition("::")[2].strip()}
    holding = [e for e, own in zip(found, names, strict=True) if len(wanted) == 1 and wanted & own]
    if not holding:
        return HostString("\n".join(e.text for e in found), 1)
    # What a host program compiles is the most that it puts together.
    program = max(holding, key=lambda e: len(e.text))
    return HostString(program.text, program.line)


def _folders(source: str, beside: Path, include_dirs: Sequence[Path]) -> tuple[list[Path], SentHeaders]:
    """The folders of a source's headers: those given and those found above them."""
    folders = [d.resolve() for d in include_dirs]
    sent = SentHeaders({}, ())
    for _ in range(_LOOKS):
        try:
            sent = headers_of(source, beside, folders)
        except InvalidInput:
            break  # too many of them: what was found up to here is named, and posting says the rest
        more = next((d for d in map(_above, sent.missing) if d is not None and d not in folders), None)
        if more is None:
            break
        folders.append(more)
    return folders, sent


def _libraries(headers: SentHeaders, permitted: Mapping[str, Path]) -> list[str]:
    """Names of the operator's folders that have headers which were found nowhere else."""
    missing = {name for _, name in headers.missing}
    return [name for name, folder in permitted.items() if any((folder / m).is_file() for m in missing)]


def _above(missing: tuple[Path, str]) -> Path | None:
    """The folder to search for a name that a file of another folder includes."""
    folder, name = missing
    if name.startswith("../"):
        there = (folder / name).resolve()
        return Path(os.path.commonpath([folder, there.parent])) if there.is_file() else None
    for near in (folder, *folder.parents[:_LEVELS]):
        for base in (near, near / "include", near / "common"):
            if (base / name).is_file():
                return base
        if (near / ".git").exists():
            return None
    return None
