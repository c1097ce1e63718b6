"""Fenced blocks of Markdown in a reply, and the fields of an answer that may stand in them. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel

from warpsmith.domain.base import Fenced

FENCE = r"^(?P<indent>[\ufeff \t]*+)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^`\n]*+)$"
"""An opening or closing line."""
_END = re.compile(
    r"(?<!/)(?P<comment>/\*)"
    r"|^(?P<indent>[ \t]*+)(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?P<json>json\w*+)?+[ \t\r]*+$",
    re.M | re.I,
)
_OTHER = re.compile(r"[ \t{.]*+(?:json|markdown|md)\w*+(?!\w)", re.I)
_OBJECT = re.compile(r"\s*+\{\s*+[\"}]")


@dataclass(frozen=True)
class FencedBlock:
    """A fenced block that holds no JSON."""

    text: str
    about: str
    """Its info string, and the line before it."""
    is_closed: bool


def is_block(text: str, opening: re.Match[str]) -> bool:
    """True if a fence begins a block of its own; what stands in another is read as a part of the reply."""
    return not (_OTHER.match(opening["info"]) or _OBJECT.match(text, opening.end()))


def read_block(text: str, opening: re.Match[str], begin: int) -> tuple[FencedBlock, int]:
    """The block that a fence opens, and the place behind it.

    Args:
        begin: begin of the answer in the text.
    """
    start, indent = opening.end() + 1, len(opening["indent"].strip("\ufeff"))
    end, behind = _end(text, opening, indent)
    inset = re.compile(rf"^[ \t]{{1,{indent}}}+", re.M) if indent else None
    plain = text[start:end].replace("\r\n", "\n")
    before = text[max(begin, opening.start() - 200) : opening.start()].rstrip().rpartition("\n")[2]
    about = f"{opening['info']} {before}"
    return FencedBlock(inset.sub("", plain) if inset else plain, about, behind >= 0), behind % (len(text) + 1)


def _end(text: str, opening: re.Match[str], indent: int) -> tuple[int, int]:
    """The end of a block's text, and the place behind the closing fence; -1: there is none.

    A fence in a comment of C closes nothing. One that opens JSON closes what is open, and is read again.
    """
    at, comments = opening.end(), True
    while found := _END.search(text, at):
        at = found.end()
        if found["comment"]:
            closing = text.find("*/", at) if comments else -1
            comments = closing >= 0
            at = closing + 2 if comments else at
        elif found["fence"].startswith(opening["fence"]) and len(found["indent"]) <= indent + 3:
            return found.start(), found.start() if found["json"] else found.end()
    return len(text), -1


def completed(
    data: dict[str, Any], model: type[BaseModel] | None, blocks: Sequence[FencedBlock]
) -> tuple[dict[str, Any], str]:
    """An object with blocks in the fields that it leaves out, and the complaint if they do not fit."""
    places = _left_out(data, model) if model is not None and blocks else []
    for name in {name: None for _, name in places}:
        if not blocks[-1].is_closed:
            return data, f"the reply ends within its fenced {name}; close the fence, or answer shorter"
        wanting = [inside for inside, other in places if other == name]
        named = [b for b in blocks if re.search(rf"\b{name}\b", b.about, re.I)]
        chosen = named or list(blocks)
        if len(wanting) == 1:
            chosen = [chosen[-1] if named else max(chosen, key=lambda block: len(block.text))]
        if len(wanting) != len(chosen):
            words = f"{len(wanting)} objects leave {name} out, and {len(chosen)} fenced blocks are there"
            return data, f"{words}; write one block for each, in their order"
        for inside, block in zip(wanting, chosen, strict=True):
            inside[name] = block.text
    return data, ""


def may_be_fenced(model: type[BaseModel]) -> bool:
    """True if a field of a model, or of a part of it, may stand in a fenced block."""
    return bool(_fenced_fields(model)) or any(may_be_fenced(part) for part in _parts(model).values())


def _fenced_fields(model: type[BaseModel]) -> dict[str, Fenced]:
    marks = ((name, mark) for name, field in model.model_fields.items() for mark in field.metadata)
    return {name: mark for name, mark in marks if isinstance(mark, Fenced)}


@lru_cache
def _parts(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The fields that hold models, with these."""
    found = {}
    for name, field in model.model_fields.items():
        left: list[Any] = [field.annotation]
        while left:
            kind = left.pop()
            left += get_args(kind)
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found[name] = kind
    return found


def _left_out(data: Any, model: type[BaseModel]) -> list[tuple[dict[str, Any], str]]:
    """The fenced fields that an object and its parts leave out, each with the object around it."""
    if isinstance(data, list):
        return [place for item in data for place in _left_out(item, model)]
    if not isinstance(data, dict):
        return []
    mine = [
        (data, name)
        for name, mark in _fenced_fields(model).items()
        if data.get(name) in (None, "") and not any(data.get(other) for other in mark.unless)
    ]
    return mine + [place for name, part in _parts(model).items() for place in _left_out(data.get(name), part)]
