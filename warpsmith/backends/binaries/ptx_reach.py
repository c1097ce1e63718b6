"""The part of a PTX text that its kernels reach. Pure.

NVRTC keeps host functions of headers, which it reads as device functions, though no kernel calls them.
"""

import re
from collections.abc import Iterator

_WORD = re.compile(r"[\w$%]+")
_NAMED = re.compile(
    r"[ \t]*\.(?:(?:visible|weak|extern|common|entry|func|global|const|alias)\b|func[ \t]*\()"
)
_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|weak|extern)[ \t]+)*\.entry\b", re.M)
_BEFORE_NAME = re.compile(
    r"\.(?:visible|weak|extern|common|entry|func|global|const|alias|ptr|attribute\([^)]*\)|align\s+\d+|[a-z]\w*)"
    r"|\([^)]*\)|\s+"
)


def reached(ptx: str) -> str:
    """The text without functions and variables that no kernel names, directly or by way of others."""
    kept, waiting, by_name = [], list[str](), dict[str, list[str]]()
    for item in _items(ptx):
        name = _name(item)
        if name is None or _ENTRY.search(item):
            kept.append(item)
            waiting += _WORD.findall(item) if name is not None else []
        else:
            by_name.setdefault(name, []).append(item)
    found = set[str]()
    while waiting:
        word = waiting.pop()
        if word in by_name and word not in found:
            found.add(word)
            for item in by_name[word]:
                waiting += _WORD.findall(item)
    return "\n".join([*kept, *(item for name in sorted(found) for item in by_name[name])])


def _items(ptx: str) -> Iterator[str]:
    """Declarations and functions, each as a whole, and single lines beside them."""
    lines, depth = list[str](), 0
    for line in ptx.splitlines():
        if not lines and not _NAMED.match(line):
            yield line
            continue
        lines.append(line)
        depth += line.count("{") - line.count("}")
        text = line.rstrip()
        if depth == 0 and text.endswith((";", "}")):
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _name(item: str) -> str | None:
    """The name that an item declares; None if it declares none."""
    if not _NAMED.match(item):
        return None
    at = 0
    while (found := _BEFORE_NAME.match(item, at)) is not None:
        at = found.end()
    name = _WORD.match(item, at)
    return None if name is None else name.group()
