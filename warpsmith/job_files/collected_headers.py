"""Collects the headers that a source on this machine includes, to send them with the job."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith.domain.kernels.headers import MAX_FILES, MAX_FILES_BYTES, ROOT
from warpsmith.errors import InvalidInput
from warpsmith.source.tree.included_headers import INCLUDE
from warpsmith.system.source_text import read_source_text


@dataclass(frozen=True)
class SentHeaders:
    """Values of `kernel.files` and `kernel.include_dirs`."""

    files: Mapping[str, str]
    include_dirs: tuple[str, ...]
    missing: tuple[tuple[Path, str], ...] = ()
    """Names that were not found, each with the folder of the including file; a compiler or an operator may
    know them."""


def headers_of(source: str, beside: Path, include_dirs: Iterable[Path]) -> SentHeaders:
    """Every header that a source includes, at any depth, from its own folder and from `include_dirs`.

    Nothing outside these folders is read, wherever an `#include` leads. Headers found in none of them are
    left to the compiler.

    Args:
        beside: the source's own folder, searched first.

    Raises:
        InvalidInput: the headers exceed the limit, or one cannot be read.
    """
    folders = list(dict.fromkeys(d.resolve() for d in (beside, *include_dirs)))
    found: dict[Path, str] = {}
    missing: dict[tuple[Path, str], None] = {}
    waiting = list(_included(source, folders[0], folders, missing))
    size = 0
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        found[path] = _read(path)
        size += len(found[path].encode())
        if size > MAX_FILES_BYTES or len(found) > MAX_FILES:
            raise InvalidInput(
                "kernel.include_dirs",
                f"the headers that the source includes are more than may be sent ({MAX_FILES} files, "
                f"{MAX_FILES_BYTES >> 10} KiB); name the folder to the service instead "
                "(WARPSMITH_INCLUDE_DIRS=name=folder) and in the job (kernel.includes: [name])",
            )
        waiting += _included(found[path], path.parent, folders, missing)
    used = [d for d in folders if any(path.is_relative_to(d) for path in found)]
    names = _names(used)
    files = {_sent(path, names): text for path, text in found.items()}
    searched = [_sent(d, names) or ROOT for d in used]
    return SentHeaders(files, tuple(searched), tuple(missing))


def _included(
    text: str, beside: Path, folders: Sequence[Path], missing: dict[tuple[Path, str], None]
) -> Iterator[Path]:
    for quote, name in INCLUDE.findall(text):
        near = [beside] if quote == '"' else []
        candidates = ((d / name).resolve() for d in (*near, *folders))
        allowed = (c for c in candidates if any(c.is_relative_to(d) for d in folders) and c.is_file())
        header = next(allowed, None)
        if header is not None:
            yield header
        else:
            missing[beside, name] = None


def _read(path: Path) -> str:
    try:
        return read_source_text(path)
    except OSError as exc:
        raise InvalidInput("kernel.include_dirs", f"{path} cannot be read: {exc.strerror or exc}") from exc


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """Names of the outermost folders among the headers; a single one has an empty name."""
    outer = [d for d in folders if not any(d != o and d.is_relative_to(o) for o in folders)]
    if len(outer) == 1:
        return {outer[0]: ""}
    taken: dict[Path, str] = {}
    for d in outer:
        word = "".join(c if c.isalnum() or c in "_.-" else "_" for c in d.name).strip(".") or "folder"
        number = 1
        while (name := word if number == 1 else f"{word}_{number}") in taken.values():
            number += 1
        taken[d] = name
    return taken


def _sent(path: Path, names: Mapping[Path, str]) -> str:
    """The path under which a file or folder of this machine is sent."""
    outer = next(o for o in names if path.is_relative_to(o))
    inner = path.relative_to(outer).as_posix()
    parts = [names[outer], "" if inner == "." else inner]
    return "/".join(part for part in parts if part)
