"""Looks up the places of fields in a form's JSON schema, and the values that a union allows."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any

from pydantic import BaseModel

Place = tuple[int | str, ...]
_NAME = "NAME"
"""Stands in paths for keys that are the user's own, such as names of arguments."""
_NULL = {"type": "null"}
_WORDS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "a mapping",
}


class FormPlaces:
    """Fields of all mappings of a form.

    Args:
        model: the form's model, from whose schema all of this is read.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        self._schema = model.model_json_schema()
        self._fields: dict[str, list[str]] = {}
        self._walk(self._schema, "", ())

    def fields_at(self, loc: Place) -> list[str]:
        """Names of the fields of a mapping."""
        return self._fields[self.place_of(loc)]

    def places_of(self, name: str, loc: Place) -> list[str]:
        """Paths of the mappings that have a field, the nearest to `loc` first; empty: the top level."""
        here = self.place_of(loc)
        found = [place for place, fields in self._fields.items() if name in fields and place != here]
        return sorted(found, key=lambda place: _distance(place, here))

    def names(self) -> list[str]:
        """Names of all fields."""
        return list(dict.fromkeys(name for fields in self._fields.values() for name in fields))

    def place_of(self, loc: Place) -> str:
        """The path of a mapping; without indices of lists and what the form does not know."""
        at = ""
        for part in loc:
            kinds = (p for p in self._fields if p.startswith(f"{at} (") and p.endswith(f": {part})"))
            inner = (_under(at, str(part)), _under(at, _NAME), *kinds)
            if not isinstance(part, int):
                at = next((p for p in inner if p in self._fields), at)
        return at

    def union_at(self, loc: Place) -> tuple[int, str] | None:
        """Index of the part of `loc` that names a member of a union, and what the union allows, in words."""
        node: Any = self._schema
        for n, part in enumerate(loc):
            node = self._resolved(node)
            members = node.get("anyOf", ())
            if part == "[key]" or not isinstance(node, Mapping):
                return None
            if members:
                return n, _in_words(self._kinds(members))
            if isinstance(part, int):
                node = node.get("items", {})
                continue
            mapping = node.get("discriminator", {}).get("mapping", {})
            own: Any = next(_of_own_keys(node), {})
            node = {"$ref": mapping[part]} if part in mapping else node.get("properties", {}).get(part, own)
        return None

    def _walk(self, node: Any, place: str, around: tuple[str, ...]) -> None:
        if not isinstance(node, Mapping):
            return
        reference = node.get("$ref", "")
        node = self._resolved(node)
        known = self._fields.setdefault(place, [])
        known += node.get("properties", {})
        if reference in around:
            return  # a form within itself
        around = (*around, reference) if reference else around
        for name, inner in node.get("properties", {}).items():
            self._walk(inner, _under(place, name), around)
        for inner in _of_own_keys(node):
            self._walk(inner, _under(place, _NAME), around)
        kinds = node.get("discriminator", {"mapping": {}})
        for kind, inner in kinds["mapping"].items():
            self._walk({"$ref": inner}, f"{place} ({kinds['propertyName']}: {kind})", around)
        for inner in (*node.get("anyOf", ()), *node.get("prefixItems", ()), node.get("items")):
            self._walk(inner, place, around)

    def _resolved(self, node: Any) -> Any:
        """The node behind references and optional unions."""
        while True:
            rest = [m for m in node.get("anyOf", ()) if m != _NULL]
            if len(rest) == 1:
                node = rest[0]
            elif "$ref" in node:
                node = self._schema["$defs"][node["$ref"].rpartition("/")[2]]
            else:
                return node

    def _kinds(self, members: Sequence[Any]) -> Iterator[str]:
        for member in map(self._resolved, (m for m in members if m != _NULL)):
            yield from self._kinds(member.get("anyOf", ()))
            is_word = str(member.get("pattern", "")).startswith("^[A-Za-z_][A-Za-z0-9_]")
            listed = f"one of {', '.join(map(str, member.get('enum', ())))}" if "enum" in member else ""
            yield listed or ("one word of letters, digits and _" if is_word else member.get("type", ""))


@cache
def places_of_form(model: type[BaseModel]) -> FormPlaces:
    """The places of a model's form."""
    return FormPlaces(model)


def _in_words(kinds: Iterator[str]) -> str:
    found = dict.fromkeys(filter(None, kinds))
    if "number" in found:
        found.pop("integer", None)
    words = [_WORDS.get(kind, kind) for kind in found]
    return ", ".join(words[:-1]) + ("," if len(words) > 2 else "") + " or " * (len(words) > 1) + words[-1]


def _of_own_keys(node: Mapping[str, Any]) -> Iterator[Any]:
    yield from node.get("patternProperties", {}).values()
    if isinstance(node.get("additionalProperties"), Mapping):
        yield node["additionalProperties"]


def _under(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _distance(one: str, other: str) -> int:
    first, second = (place.split(".") if place else [] for place in (one, other))
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    return len(first) + len(second) - 2 * shared
