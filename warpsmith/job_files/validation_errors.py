"""Pydantic's validation errors in words that name the field and the correction."""

import difflib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel

Place = tuple[int | str, ...]
MOST = 100
"""Limit on the problems that are put into words."""

_ALIASES: dict[str, str] = {
    "float16": "fp16 f16 half __half",
    "bfloat16": "bf16 __nv_bfloat16 nv_bfloat16",
    "float32": "fp32 f32 float single",
    "float64": "fp64 f64 double",
    "int8": "i8 char s8",
    "int16": "i16 short s16",
    "int32": "i32 int s32",
    "int64": "i64 long s64",
    "uint8": "u8 uchar byte bool",
    "uint16": "u16 ushort",
    "uint32": "u32 uint unsigned",
    "uint64": "u64 ulong size_t",
}
_NO_FIELDS = ("dict_type", "model_type", "model_attributes_type")
"""Types of problems in which a field holds something else than fields of its own."""
_WRITTEN = {
    "reference": ', such as {kind: numpy, source: "def reference(inputs, dims): ..."}',
    "launch": ', such as {grid: ["ceil_div(n, 256)"], block: [256]}',
    "budget": ", such as {trials: 200, seconds: 300}",
}
"""Examples of fields that are often given as text or as a list."""
_MEANT = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}


def field_problems(
    problems: Iterable[Mapping[str, Any]], model: type[BaseModel], data: object = None
) -> list[tuple[str, str]]:
    """Dotted field and message of the first problems, with the likely intended field or word for an unknown
    one.

    Args:
        problems: problems as pydantic lists them (`ValidationError.errors`).
        model: model whose field names are suggested.
        data: the validated data; messages then name the argument with that index.
    """
    listed = list(itertools.islice(problems, MOST))
    missing = [p["loc"] for p in listed if p["type"] == "missing"]
    meant = {p["loc"]: _meant(p["loc"], missing, model) for p in listed if p["type"] == "extra_forbidden"}
    found = []
    for problem in listed:
        loc: Place = problem["loc"]
        if problem["type"] == "too_short" and _has_inner(loc, listed):
            continue
        if problem["type"] == "missing" and any(loc == (*p[:-1], name) for p, name in meant.items()):
            continue
        place = [str(part) for part in loc]
        message = _message(problem, meant.get(loc, ""), data)
        field, _, rest = message.partition(": ")
        if rest and _is_path(field):
            place, message = [*place, field], rest
        found.append((".".join(place), message))
    return found


def _message(problem: Mapping[str, Any], meant: str, data: object) -> str:
    """Message on a problem; `meant` is the field that an unknown one probably stands for."""
    loc, kind = problem["loc"], problem["type"]
    if kind == "extra_forbidden":
        return "no such field" + (f"; did you mean {meant!r}?" if meant else "")
    if kind == "missing":
        return "is missing"
    if loc and kind in _NO_FIELDS:
        return "must be a mapping of fields to values" + _WRITTEN.get(str(loc[-1]), "")
    text: str = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return _argument(loc, data) + _word(problem) + text if kind in ("enum", "literal_error") else text


def _meant(loc: Place, missing: Sequence[Place], model: type[BaseModel]) -> str:
    """The field that a misspelt one stands for; missing fields beside it come first."""
    name = str(loc[-1])
    siblings = [str(p[-1]) for p in missing if p[:-1] == loc[:-1]]
    near = difflib.get_close_matches(name, siblings, n=1, cutoff=0.5)
    near = near or difflib.get_close_matches(name, list(_known_fields(model)), n=1)
    return near[0] if near else ""


def _word(problem: Mapping[str, Any]) -> str:
    """Message for a word that is none of those allowed."""
    given = problem.get("input")
    if not isinstance(given, str) or len(given) > 40:
        return ""
    if given == "TODO":
        return "is still TODO. "
    expected = re.findall(r"'([^']*)'", str(problem.get("ctx", {}).get("expected", "")))
    alias = _MEANT.get(given.lower(), "")
    near = [alias] if alias in expected else difflib.get_close_matches(given.lower(), expected, n=1)
    return f"{given!r}: did you mean {near[0]!r}? " if near else ""


def _argument(loc: Place, data: object) -> str:
    """The prefix `argument x: ` if a problem lies within an argument; else empty."""
    if loc[:2] != ("kernel", "arguments") or len(loc) < 4:
        return ""
    try:
        name = data["kernel"]["arguments"][loc[2]]["name"]  # type: ignore[index]
    except (LookupError, TypeError):
        return ""
    return f"argument {name}: " if isinstance(name, str) and len(name) <= 64 else ""


def _has_inner(place: Place, problems: Iterable[Mapping[str, Any]]) -> bool:
    """True if an item of the list has a problem. Pydantic then also calls the list too short, which adds
    nothing."""
    return any(len(p["loc"]) > len(place) and p["loc"][: len(place)] == place for p in problems)


def _is_path(text: str) -> bool:
    return bool(text) and all(part.isidentifier() or part.isdigit() for part in text.split("."))


@cache
def _known_fields(model: type[BaseModel]) -> Iterable[str]:
    """Names of all fields anywhere in the schema."""
    schema = model.model_json_schema()
    known: set[str] = set(schema.get("properties", {}))
    for definition in schema.get("$defs", {}).values():
        known |= set(definition.get("properties", {}))
    return known
