"""Pydantic's validation errors in words that name the field and the correction."""

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from pydantic import BaseModel

from warpsmith.job_files.form_places import FormPlaces, Place, places_of_form

MOST = 100
"""Limit on the problems that are put into words."""
_UNION = "union"
_MOST_PLACES = 3
_MOST_SHOWN = 60
"""Limit on the characters of a value in a message."""

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
    form = places_of_form(model)
    listed = list(_of_unions(itertools.islice(problems, MOST), form))
    missing = [p["loc"] for p in listed if p["type"] == "missing"]
    meant = {p["loc"]: _meant(p["loc"], missing, form) for p in listed if p["type"] == "extra_forbidden"}
    said = {(place, name) for _, places, name in meant.values() for place in places}
    names = set(re.findall(r"'(\w+)' is a word of the expression", " ".join(p["msg"] for p in listed)))
    return [
        _placed(p["loc"], _message(p, meant[p["loc"]][0] if p["loc"] in meant else "", data))
        for p in listed
        if not (_has_inner(p, listed) or _has_place(p, said, form) or _has_word(p, names))
    ]


def _placed(loc: Place, message: str) -> tuple[str, str]:
    """Dotted field and message; a message may begin with a field within."""
    field, _, rest = message.partition(": ")
    parts = [*map(str, loc), field] if rest and _is_path(field) else map(str, loc)
    return ".".join(parts), rest if rest and _is_path(field) else message


def _has_place(
    problem: Mapping[str, Any], said: Set[tuple[Place | str, int | str]], form: FormPlaces
) -> bool:
    """True for a missing field that was found in a wrong place, or misspelt."""
    around, name = problem["loc"][:-1], problem["loc"][-1:]
    both = {(place, *name) for place in (around, form.place_of(around))}
    return problem["type"] == "missing" and not both.isdisjoint(said)


def _has_word(problem: Mapping[str, Any], names: Set[str]) -> bool:
    """True for an expression that is invalid because of a name that is refused where it is declared."""
    is_one = problem["msg"].endswith("is not a valid expression")
    return is_one and not names.isdisjoint(re.findall(r"\w+", str(problem.get("input"))))


def _of_unions(problems: Iterable[Mapping[str, Any]], form: FormPlaces) -> Iterator[Mapping[str, Any]]:
    """The problems, with one for each value that fits no member of a union; pydantic has one a member."""
    groups: dict[Place | int, list[Mapping[str, Any]]] = {}
    for n, problem in enumerate(problems):
        loc = problem["loc"]
        at, words = form.union_at(loc) or (len(loc), "")
        # What lies inside, and our own words, are about the member that was meant.
        if not words or len(loc) > at + 1 or problem["type"] == "value_error":
            kept = {**problem, "loc": loc[:at] + loc[at + 1 :]}
        else:
            given = repr(problem.get("input"))
            shown = f" (was {given})" if len(given) <= _MOST_SHOWN else ""
            kept = {"loc": loc[:at], "type": _UNION, "msg": f"must be {words}{shown}"}
        groups.setdefault(loc[:at] if words else n, []).append(kept)
    for found in groups.values():
        yield from [p for p in found if p["type"] != _UNION] or found[:1]


def _message(problem: Mapping[str, Any], meant: str, data: object) -> str:
    """Message on a problem; `meant` says where an unknown field belongs."""
    loc, kind = problem["loc"], problem["type"]
    if kind == "extra_forbidden":
        return f"no such field{meant}"
    if kind == "missing":
        return "is missing"
    if loc and kind in _NO_FIELDS:
        return "must be a mapping of fields to values" + _WRITTEN.get(str(loc[-1]), "")
    if kind in ("float_parsing", "int_parsing"):
        wanted = "an integer" if kind == "int_parsing" else "a number"
        return f"must be {wanted}, and is {problem['input']!r}{_number_in(str(problem['input']))}"[:160]
    text: str = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return _argument(loc, data) + _word(problem) + text if kind in ("enum", "literal_error") else text


def _number_in(given: str) -> str:
    """Advice on a number that was given with a unit, such as `60s`; else empty."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:s|sec|secs|seconds?)?\s*", given)
    return f"; write {found[1]}" if found else ""


def _meant(loc: Place, missing: Sequence[Place], form: FormPlaces) -> tuple[str, list[Place | str], str]:
    """Words on an unknown field; the places, and the name there, that it probably stands for."""
    name, around = str(loc[-1]), loc[:-1]
    siblings = [str(p[-1]) for p in missing if p[:-1] == around]
    beside = [*siblings, *form.fields_at(around)]
    exact = [name] if form.places_of(name, around) else []
    tries = ((beside, 0.8), (exact, 1), (siblings, 0.5), (beside, 0.6), (form.names(), 0.6))
    near = (difflib.get_close_matches(name.lower(), names, n=1, cutoff=cutoff) for names, cutoff in tries)
    found = next(filter(None, near), [""])[0]
    if found in beside and found != name:
        return f"; did you mean {found!r}?", [around], found
    places: list[Place | str] = list(form.places_of(found, around))
    under = " or ".join(f"under {p}" if p else "at the top level" for p in places[:_MOST_PLACES])
    words = f" here; belongs {under}" if found == name else f"; did you mean {found!r} {under}?"
    return words if places else "", places, found


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


def _has_inner(problem: Mapping[str, Any], problems: Iterable[Mapping[str, Any]]) -> bool:
    """True for a list with a problem in an item, which pydantic then also calls too short."""
    place = problem["loc"]
    inner = (p["loc"] for p in problems if len(p["loc"]) > len(place))
    return problem["type"] == "too_short" and any(loc[: len(place)] == place for loc in inner)


def _is_path(text: str) -> bool:
    return bool(text) and all(part.isidentifier() or part.isdigit() for part in text.split("."))
