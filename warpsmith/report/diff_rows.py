"""The difference of two sources, as rows of a table."""

import difflib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

CONTEXT = 3
MOST_LINES = 4000
"""Limit on the lines of either source: the comparison takes longer than their number."""


class DiffRow(NamedTuple):
    """A line of either source, or of both."""

    kind: str
    """`same`, `removed`, `added` or `skipped`."""
    old: int | None
    """Number of the line in the old source, from 1."""
    new: int | None
    text: str
    """The line; for skipped ones how many there are."""


def diff_rows(old: str, new: str) -> list[DiffRow]:
    """Lines that differ, with three lines around them; none if the sources are equal or too long."""
    before, after = old.splitlines(), new.splitlines()
    if before == after or max(len(before), len(after)) > MOST_LINES:
        return []
    groups = difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT)
    return list(_rows(groups, before, after))


def _rows(
    groups: Iterable[list[tuple[str, int, int, int, int]]], before: list[str], after: list[str]
) -> Iterator[DiffRow]:
    seen = 0
    for group in groups:
        yield from _skipped(group[0][1] - seen)
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                for n in range(old_to - old_from):
                    yield DiffRow("same", old_from + n + 1, new_from + n + 1, before[old_from + n])
                continue
            for n in range(old_from, old_to):
                yield DiffRow("removed", n + 1, None, before[n])
            for n in range(new_from, new_to):
                yield DiffRow("added", None, n + 1, after[n])
        seen = group[-1][2]
    yield from _skipped(len(before) - seen)


def _skipped(lines: int) -> Iterator[DiffRow]:
    if lines > 0:
        yield DiffRow("skipped", None, None, f"{lines} unchanged line{'s' if lines > 1 else ''}")
