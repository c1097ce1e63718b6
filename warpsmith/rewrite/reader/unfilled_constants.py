"""Finds constant memory that a host program would fill, which no job can."""

import re
from collections import Counter

from warpsmith.rewrite.reader.tokens import blank

_DECLARED = re.compile(r"\b__constant__\b(?:\s*(?:__align__|alignas)\s*\(\w*\))?([^;={}()]*)")


def unfilled_constants(source: str) -> list[tuple[str, int]]:
    """Names and lines (from 1) of CUDA's `__constant__` variables that are used and have no initialiser."""
    text = blank(source)
    uses = Counter(re.findall(r"\w+", text)) if "__constant__" in text else Counter[str]()
    found, line, counted = [], 1, 0
    for match in _DECLARED.finditer(text):
        words = re.findall(r"\w+", match.group(1).partition("[")[0])
        if not words or text[match.end() : match.end() + 1] != ";" or uses[words[-1]] < 2:
            continue
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        found.append((words[-1], line))
    return found
