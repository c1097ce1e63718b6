"""Headers included by a kernel's source: those sent with it, and those of permitted folders."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from warpsmith.domain.kernels.headers import ROOT
from warpsmith.system.source_text import read_source_text

MAX_FILES = 256
MAX_BYTES = 4 * 1024 * 1024
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"][^\n]*', re.M)

Place = Path | PurePosixPath
"""Location of a header: a file of a permitted folder, or the path of one sent with the kernel."""


class Library:
    """Search path for a kernel's headers, in a compiler's order.

    Args:
        folders: include folders of the operator that the job names.
        files: texts of headers sent with the kernel, by path.
        include_dirs: folders of `files` that are searched.
    """

    def __init__(
        self,
        folders: Iterable[Path] = (),
        files: Mapping[str, str] | None = None,
        include_dirs: Sequence[str] = (),
    ) -> None:
        self._folders = [f.resolve() for f in folders]
        self._files = files or {}
        self._search = [*include_dirs, ROOT]

    def includes(self, text: str, beside: Place | None = None) -> Iterator[Place]:
        """Every header that `text` includes and that can be found.

        Args:
            beside: location of the header with this text; None: the kernel's source.
        """
        for quote, name in INCLUDE.findall(text):
            found = self.find(name, beside if quote == '"' else None)
            if found is not None:
                yield found

    def find(self, name: str, beside: Place | None) -> Place | None:
        """The header of that name; the folder of the including header is searched first."""
        if isinstance(beside, Path):
            found = self._permitted([beside.parent], name)
            if found is not None:
                return found
        near = [] if beside is None or isinstance(beside, Path) else [str(beside.parent)]
        for folder in (*near, *self._search):
            path = posixpath.normpath(posixpath.join(folder, name))
            if path in self._files:
                return PurePosixPath(path)
        return self._permitted(self._folders, name)

    def _permitted(self, folders: Iterable[Path], name: str) -> Path | None:
        for folder in folders:
            path = (folder / name).resolve()
            if path.is_file() and any(path.is_relative_to(f) for f in self._folders):
                return path
        return None

    def text(self, place: Place) -> str:
        """Text of a header."""
        return read_source_text(place) if isinstance(place, Path) else self._files[str(place)]

    def name_of(self, place: Place) -> str:
        """Name by which the kernel's source includes a header."""
        if not isinstance(place, Path):
            return str(place)
        root = next(f for f in self._folders if place.is_relative_to(f))
        return str(place.relative_to(root))


def included(text: str, library: Library) -> tuple[str, ...]:
    """Texts of every header that `text` includes, at any depth, if `library` has it."""
    seen: dict[Place, str] = {}
    waiting = list(library.includes(text))
    size = 0
    while waiting and len(seen) < MAX_FILES:
        place = waiting.pop(0)
        if place in seen:
            continue
        held = library.text(place)
        size += len(held)
        if size > MAX_BYTES:
            break
        seen[place] = held
        waiting += library.includes(held, place)
    return tuple(seen.values())


def inline_header_of(text: str, name: str, library: Library) -> str:
    """`text` with the header that defines kernel `name` in place of its include.

    The header's own quoted includes get paths from the folder, so that they are still found. The text is
    unchanged if no header of the library defines the kernel.
    """
    kernel = re.compile(rf"\b(?:__global__|__kernel|kernel)\b[^;{{}}]*\b{re.escape(name)}\s*\(")
    for match in INCLUDE.finditer(text):
        for place in library.includes(match.group()):
            header = library.text(place)
            if kernel.search(header):
                inlined = INCLUDE.sub(partial(_from_root, place, library), header)
                inlined = re.sub(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*", "", inlined, flags=re.M)
                return text[: match.start()] + inlined + text[match.end() :]
    return text


def _from_root(place: Place, library: Library, match: "re.Match[str]") -> str:
    for target in library.includes(match.group(), place):
        return f"#include <{library.name_of(target)}>"
    return match.group()
