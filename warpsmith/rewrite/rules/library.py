"""Headers that a kernel's source includes, found in the folders that the operator permits."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

MAX_FILES = 64
MAX_BYTES = 4 * 1024 * 1024
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"][^\n]*', re.M)


def included(text: str, folders: Iterable[Path]) -> tuple[str, ...]:
    """Texts of every header that `text` includes, at any depth, as far as it lies in `folders`."""
    roots = [f.resolve() for f in folders]
    seen: dict[Path, str] = {}
    waiting = list(_resolved(text, None, roots))
    size = 0
    while waiting and len(seen) < MAX_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        size += path.stat().st_size
        if size > MAX_BYTES:
            break
        seen[path] = path.read_text(errors="replace")
        waiting += _resolved(seen[path], path.parent, roots)
    return tuple(seen.values())


def inline_header_of(text: str, name: str, folders: Iterable[Path]) -> str:
    """`text` with the included header that defines kernel `name` in the include's place.

    The header's own quoted includes are named from the folder, so that they are still found.
    The text comes back as it was where no permitted header defines the kernel.
    """
    roots = [f.resolve() for f in folders]
    for match in _INCLUDE.finditer(text):
        for path in _resolved(match.group(), None, roots):
            header = path.read_text(errors="replace")
            if re.search(rf"__global__[^;{{}}]*\b{re.escape(name)}\s*\(", header):
                inlined = _INCLUDE.sub(partial(_from_root, path, roots), header)
                inlined = re.sub(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*", "", inlined, flags=re.M)
                return text[: match.start()] + inlined + text[match.end() :]
    return text


def _from_root(path: Path, roots: list[Path], match: "re.Match[str]") -> str:
    for target in _resolved(match.group(), path.parent, roots):
        root = next(r for r in roots if target.is_relative_to(r))
        return f"#include <{target.relative_to(root)}>"
    return match.group()


def _resolved(text: str, beside: Path | None, roots: list[Path]) -> Iterator[Path]:
    for name in _INCLUDE.findall(text):
        for folder in ([beside] if beside else []) + roots:
            path = (folder / name).resolve()
            if path.is_file() and any(path.is_relative_to(r) for r in roots):
                yield path
                break
