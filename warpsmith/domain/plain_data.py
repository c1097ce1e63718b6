"""Plain data from outside, checked before any model reads it: its depth, its number of values, its texts."""

from collections.abc import Iterator
from typing import Final

MAX_DEPTH = 64
"""Limit on lists and objects within each other. What reads data recurses by one call or more a level."""
MAX_VALUES = 30_000
"""Limit on values, and on names of fields, of all levels together."""
STORED: Final = object()
"""Validation context of what this program has stored: it was checked when it came in."""


def data_problem(data: object) -> tuple[str, str] | None:
    """Field and message of the first thing that no model need look at; None if there is none.

    Args:
        data: what a JSON or YAML parser gives. A value that stands in several places counts in each.
    """
    waiting: list[tuple[object, tuple[str, ...]]] = [(data, ())]
    seen = 0
    while waiting:
        value, place = waiting.pop()
        seen += 1
        if seen > MAX_VALUES:
            return "", f"has more than {MAX_VALUES} values"
        if isinstance(value, str):
            if "\0" in value:
                return ".".join(place), "has a NUL character, which no text may have"
            continue
        if isinstance(value, dict | list | tuple) and len(place) >= MAX_DEPTH:
            return ".".join(place[:6]), f"is nested deeper than {MAX_DEPTH} levels"
        for name, inner in _inside(value):
            if "\0" in name:
                return ".".join(place), "has a field with a NUL character in its name"
            waiting.append((inner, (*place, name)))
            if len(waiting) > MAX_VALUES:
                return "", f"has more than {MAX_VALUES} values"
    return None


def _inside(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((str(name), inner) for name, inner in value.items())
    elif isinstance(value, list | tuple):
        yield from ((str(n), inner) for n, inner in enumerate(value))
