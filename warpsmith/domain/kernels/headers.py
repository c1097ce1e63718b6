"""Headers that are sent with a kernel: texts by relative path."""

import re
from collections.abc import Iterable, Mapping

MAX_FILES = 256
MAX_FILES_BYTES = 768 * 1024
"""Limit on the total size of all headers; a request may be only slightly larger."""
ROOT = "."
"""Relative path of the folder that holds all headers of a kernel."""
SENT = "headers"
"""Name of that folder in the place where a kernel is compiled."""

_PART = re.compile(r"[A-Za-z0-9_.+\-@]{1,100}")


def path_problem(path: str) -> str:
    """The reason why a header may not have this path; empty if it may."""
    parts = path.split("/")
    if path.startswith("/"):
        return "is absolute; name it from the folder that holds the headers"
    if any(part in ("", ".", "..") for part in parts):
        return "must be a plain relative path, without '.', '..' and empty parts"
    if len(path) > 300 or not all(_PART.fullmatch(part) for part in parts):
        return "has more than 300 characters, or others than letters, digits and _.+-@"
    return ""


def files_problem(files: Mapping[str, str]) -> str:
    """The reason why these headers cannot be sent with a kernel; empty if they can."""
    for path, text in files.items():
        problem = path_problem(path)
        if problem:
            return f"{path!r} {problem}"
        if "\0" in text:
            return f"{path}: has a NUL character, where a compiler would stop reading"
    for path in files:
        parents = {path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1)}
        both = sorted(parents & files.keys())
        if both:
            return f"{both[0]!r} is a file and a folder"
    size = sum(len(text.encode()) for text in files.values())
    if size > MAX_FILES_BYTES:
        return f"have {size} bytes; at most {MAX_FILES_BYTES}"
    return ""


def with_empty(files: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The headers, and an empty one for each of these names that has no text."""
    return {**dict.fromkeys(names, ""), **files}


def folders_of(files: Iterable[str]) -> set[str]:
    """Every folder that holds one of these files, at any depth; the root is `.`."""
    found = {ROOT}
    for path in files:
        found |= {path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1)}
    return found
