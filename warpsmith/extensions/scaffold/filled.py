"""A scaffold with a reply's facts in the place of its guesses."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.argument_line import with_numbers
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_extent, yaml_flow
from warpsmith.job_files.filling_contracts import FillReply
from warpsmith.job_files.yaml_data import read_yaml

_ITEM = re.compile(r"^(?P<start>\s*- )\{name: ")
_KEY = re.compile(r"^(?P<space>\s*)(?P<key>[a-z_]+):")
_REFERENCE = ("# The kernel itself is the reference.", "# Made from the kernel's text", "reference:")
_WRITTEN = "the reply's reference"
"""Section of the lines that a reply's reference takes the place of."""


def filled(text: str, reply: FillReply, said: str) -> str:
    """The job file with a reply's facts; a line that has one says so. Its entry and macros are options of
    `init`, with which the text is made.

    Args:
        text: the job file, as `init` writes it.
        said: comment of these lines, such as `as a model says`.

    Raises:
        InvalidInput: the reply names an argument that the job file does not have.
    """
    arguments = {a.name: with_numbers(a.model_dump(mode="json", exclude_unset=True)) for a in reply.arguments}
    rows = list(_rows(text.split("\n"), reply, arguments, said))
    if arguments:
        raise InvalidInput("arguments", f"the job file has no {', '.join(sorted(arguments))}")
    return "\n".join(rows)


def open_lines(text: str) -> list[str]:
    """Lines of the job file that are still marked as guesses, without comments that stand alone."""
    rows = (row.strip() for row in text.split("\n"))
    return [row for row in rows if f"# {TODO}" in row and not row.startswith("#")]


def _rows(rows: Sequence[str], reply: FillReply, arguments: dict[str, Any], said: str) -> Iterator[str]:
    section, skips, at = "", False, 0
    while at < len(rows):
        row = rows[at]
        at += 1
        key = _KEY.match(row)
        words = row.strip()
        if key is not None and not key["space"] and not (key["key"] == "reference" and skips):
            section, skips = key["key"], False
        if reply.reference and words.startswith(_REFERENCE):
            if section != _WRITTEN:
                yield from _reference(reply.reference, said)
            section, skips = _WRITTEN, True
        if skips or (section == "workloads" and words.startswith("- dimensions:")):
            continue
        item = _ITEM.match(row)
        held = _item(rows, at - 1) if item is not None else []
        name = _name("\n".join(held))
        if item is not None and name in arguments:
            at += len(held) - 1
            yield f"{item['start']}{yaml_flow(arguments.pop(name))}  # {said}"
        elif key is not None:
            yield from _keyed(row, key["space"], key["key"], reply, said)
        else:
            yield row


def _item(rows: Sequence[str], at: int) -> list[str]:
    """The rows of a list's item that begins with a brace, up to the row that closes it."""
    found: list[str] = []
    for row in rows[at:]:
        found.append(row)
        plain = re.sub(r'"(?:[^"\\]|\\.)*"|\s#.*', "", "\n".join(found))
        if plain.count("{") <= plain.count("}"):
            return found
    return []


def _keyed(row: str, space: str, key: str, reply: FillReply, said: str) -> Iterator[str]:
    extents = {"grid": reply.grid, "block": reply.block}.get(key, ()) if space else ()
    if extents:
        yield f"{space}{key}: [{', '.join(yaml_extent(str(e)) for e in extents)}]  # {said}"
    elif not (key == "shared_bytes" and reply.shared_bytes != ""):
        yield row
    if key == "block" and space and reply.shared_bytes != "":
        yield f"{space}shared_bytes: {yaml_extent(str(reply.shared_bytes))}  # {said}"
    if key == "workloads" and not space:
        yield from (f"  - dimensions: {yaml_flow(dict(w))}  # {said}" for w in reply.workloads)


def _name(item: str) -> str:
    """The name of a list's item that is an argument; empty for other items."""
    found = read_yaml(item)
    held = found[0] if isinstance(found, list) and found else None
    return str(held.get("name")) if isinstance(held, dict) and "role" in held else ""


def _reference(source: str, said: str) -> Iterator[str]:
    yield f"# {said[0].upper()}{said[1:]}. Look at it: it decides what is right."
    yield "reference:"
    yield "  kind: numpy"
    yield "  source: |2"
    rows = source.expandtabs(4).strip("\n").split("\n")
    yield from (f"    {row.rstrip()}" if row.strip() else "" for row in rows)
