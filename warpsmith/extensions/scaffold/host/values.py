"""The value of an expression at a place of host code, followed through assignments, macros and functions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpsmith.extensions.scaffold.host import arithmetic
from warpsmith.extensions.scaffold.host.code import Callable, HostCode
from warpsmith.extensions.scaffold.host.events import Event
from warpsmith.extensions.scaffold.host.expressions import Node, Unreadable, parsed
from warpsmith.extensions.scaffold.host.places import (
    HostPlace,
    always_before,
    as_float,
    number,
    path_of,
    seen,
    symbol,
    touches,
)
from warpsmith.extensions.scaffold.host.regions import Region
from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.lexing.tokens import Token, tokenise
from warpsmith.source.tree.work_limit import spend

_DEPTH = 24
_UNKNOWN = Node("unknown")
_AXES = (".x", ".y", ".z")
_DIMENSIONS = frozenset(("dim3", "NDRange"))
_CEILING = re.compile(
    r"i?(?:div|integer|int)?(?:ceil(?:ing)?div(?:ide)?|div(?:ide)?(?:round)?(?:up|ceil)|cdiv|updiv)"
)
_ROUNDED = re.compile(r"(?:shr)?(?:i?(?:round|align)up\w*|roundto\w*)")
_OPERATIONS = ((_CEILING, "ceil_div"), (_ROUNDED, "round"))
_TO_WHOLE = {
    **dict.fromkeys(("ceil", "ceilf"), arithmetic.rounded_up),
    **dict.fromkeys(("floor", "floorf", "trunc", "truncf"), arithmetic.whole),
}
_EXTREMES = ("min", "max", "imin", "imax")


class HostValues:
    """Values of expressions in texts that belong together.

    Args:
        constants: numbers by name, for names that the texts do not declare.
    """

    def __init__(self, codes: Sequence[HostCode], constants: Mapping[str, int]) -> None:
        self._codes = codes
        self._constants = constants
        self._known: dict[tuple[str, int, str], Node | None] = {}

    def of(self, items: Sequence[Token], place: HostPlace) -> Node | None:
        """The value of an expression; None if it cannot be said."""
        try:
            return self.resolved(parsed(items), place)
        except Unreadable:
            return None

    def extents(self, items: Sequence[Token], place: HostPlace) -> tuple[Node | None, ...]:
        """Values along x, y and z of a number, a `dim3` or a list."""
        try:
            return self._extents(parsed(items), place)
        except Unreadable:
            return (None, None, None)

    def _extents(self, node: Node, place: HostPlace) -> tuple[Node | None, ...]:
        made = node.parts[1:] if node.kind == "call" and node.parts[0].text in _DIMENSIONS else None
        made = node.parts if node.kind == "list" else made
        if made is not None and len(made) == 1:
            return self._extents(made[0], replace(place, depth=place.depth + 1))
        if made is not None:
            found = [self.resolved(p, place) for p in made[:3]]
            return (*map(arithmetic.whole, found), *[arithmetic.ONE] * (3 - len(made)))
        path = path_of(node)
        if path is not None and self._is_dimensions(path[0], place):
            return tuple(self.variable(path[0], path[1] + axis, place) for axis in _AXES)
        return (arithmetic.whole(self.resolved(node, place)), arithmetic.ONE, arithmetic.ONE)

    def _is_dimensions(self, name: str, place: HostPlace) -> bool:
        declared, events = seen(name, place)
        for e in (declared, *events):
            words = () if e is None else (*e.type_words, *(t.text for t in (e.value or ())[:3]))
            if _DIMENSIONS & set(words) or (e is not None and e.member.endswith(_AXES)):
                return True
        return False

    def resolved(self, node: Node, place: HostPlace) -> Node | None:
        """The value of an expression's tree."""
        spend(1)
        if place.depth > _DEPTH:
            return None
        if node.kind == "number":
            return number(node.text)
        if node.kind == "cast":
            inner = self.resolved(node.parts[0], place)
            if node.text != "float":
                return arithmetic.whole(inner)
            return as_float(inner)
        if node.kind == "sizeof":
            dtype, lanes = element_type(node.text, {})
            return None if dtype is None else Node("num", str(dtype.size_bytes * lanes))
        if node.kind == "unary":
            return self._unary(node, place)
        if node.kind == "binary":
            a, b = (self.resolved(p, place) for p in node.parts)
            return arithmetic.combined(node.text, a, b)
        if node.kind == "choice":
            return arithmetic.chosen(*(self.resolved(p, place) for p in node.parts))
        if node.kind == "call" and node.parts[0].kind == "name":
            return self._called(node.parts[0].text, node.parts[1:], place)
        path = path_of(node)
        return None if path is None else self.variable(*path, place)

    def _unary(self, node: Node, place: HostPlace) -> Node | None:
        inner = self.resolved(node.parts[0], place)
        if node.text == "+" or inner is None:
            return inner
        if node.text == "-":
            return arithmetic.combined("-", Node("num", "0"), inner)
        known = arithmetic.number_of(inner)
        return Node("num", str(~known)) if node.text == "~" and known is not None else None

    def _called(self, name: str, given: Sequence[Node], place: HostPlace) -> Node | None:
        values = [self.resolved(a, place) for a in given]
        plain = name.lower().replace("_", "")
        if plain in _TO_WHOLE and len(values) == 1:
            return as_float(_TO_WHOLE[plain](values[0]))
        if plain in _EXTREMES and len(values) == 2:
            return _of_two(plain[-3:], values)
        code, found = self._callables(name, len(given), place)
        if found and all(f.body for f in found):
            return _only({self._result(f, values, place, code) for f in found})
        sign = next((s for names, s in _OPERATIONS if names.fullmatch(plain)), "")
        return _of_two(sign, values) if sign else None

    def _callables(self, name: str, count: int, place: HostPlace) -> tuple[HostCode, list[Callable]]:
        """Functions and macros of that many parameters in the nearest text that has some."""
        for code in (place.code, *self._codes):
            found = [f for f in code.callables.get(name, ()) if len(f.parameters) == count]
            if found:
                return code, found
        return place.code, []

    def _result(
        self, made: Callable, values: Sequence[Node | None], place: HostPlace, code: HostCode
    ) -> Node | None:
        bound = dict(zip(made.parameters, values, strict=True))
        bound |= {n: as_float(v) for n, v in bound.items() if n in made.float_parameters}
        if made.gives:
            bound |= {n: arithmetic.whole(v) for n, v in bound.items() if n not in made.float_parameters}
            result = self.of(made.body, HostPlace(code, -1, bound, place.depth + 1))
            return as_float(result) if made.gives == "float" else arithmetic.whole(result)
        return self.of(made.body, replace(place, bound={**place.bound, **bound}, depth=place.depth + 1))

    def variable(self, name: str, member: str, place: HostPlace) -> Node | None:
        """The value of a variable or of a part of it.

        If it is not known, it is a `sym`, and the same one wherever the variable has the same value.
        """
        if name in place.bound:
            return None if member else place.bound[name]
        key = (f"{place.code.name}:{name}{member}", place.at, "")
        if key in self._known and not place.bound:
            return self._known[key]
        found = self._variable(name, member, place)
        if place.depth <= _DEPTH // 2 and not place.bound:
            self._known[key] = found
        return found

    def _variable(self, name: str, member: str, place: HostPlace) -> Node | None:
        place = replace(place, depth=place.depth + 1)
        macro = self._macro(name, member, place)
        if macro is not None:
            return None if macro == _UNKNOWN else macro
        declared, events = seen(name, place)
        changes = [e for e in events if touches(e.member, member)]
        before = [e for e in changes if e.at < place.at]
        last = before[-1] if before else declared
        if last is None and not changes:
            return self._of_file(name, member, place)
        is_float = declared is not None and declared.is_float
        label = f"{place.code.name}:{name}{member}@{-1 if last is None else last.at}"
        loop = _changing_loop(place, changes, last)
        if loop is not None:
            return symbol(f"{label}:{loop.start}", is_float)
        value = None if last is None else self._set(last, before, declared, (name, member), place)
        if value is None:
            return symbol(label, is_float)
        return _labelled(_converted(value, declared), label)

    def _set(
        self,
        last: Event,
        before: Sequence[Event],
        declared: Event | None,
        path: tuple[str, str],
        place: HostPlace,
    ) -> Node | None:
        """Value that the events before a place leave; None if it depends on the branch taken."""
        results: set[Node | None] = set()
        for e in (*reversed(before), *([] if declared is None else [declared])):
            if e is not declared or e.value is None or e.value:
                results.add(self._after(e, path, place))
            if always_before(e, place):
                break
            if len(results) > 1:
                return None
        return _only(results)

    def _after(self, event: Event, path: tuple[str, str], place: HostPlace) -> Node | None:
        """Value that an event gives a variable or a part of it."""
        name, member = path
        if not event.value:
            return None
        there = replace(place, at=event.at)
        if event.member == member:
            value = self.of(event.value, there)
        elif not event.member and member in _AXES:
            value = self.extents(event.value, there)[_AXES.index(member)]
        else:
            return None
        if not event.sign:
            return value
        return arithmetic.combined(event.sign, self.variable(name, member, there), value)

    def _macro(self, name: str, member: str, place: HostPlace) -> Node | None:
        for code in (place.code, *self._codes):
            texts = code.macros.get(name)
            if not texts:
                continue
            if len(texts) > 1:
                return Node("sym", f"{name}@macro") if all(t.isdecimal() for t in texts) else _UNKNOWN
            value = None if member else self.of(tokenise(next(iter(texts))).items, place)
            is_number = value is not None and value.kind == "num"
            return (
                Node("named", f"{name}@macro", (value,))
                if value is not None and is_number
                else value or _UNKNOWN
            )
        return None

    def _of_file(self, name: str, member: str, place: HostPlace) -> Node | None:
        """The value of a name that the function does not declare."""
        for code in (place.code, *self._codes):
            found = [e for e in code.events.get(name, ()) if code.function(e.at) is None]
            if not found:
                continue
            first = found[0]
            value = None if member else self._fixed(found, HostPlace(code, first.at, {}, place.depth))
            if value is None:
                return symbol(f"{code.name}:{name}{member}@file", first.is_float)
            if value.kind == "num" and not first.is_float:
                return Node("named", f"{name}@file", (value,))
            return as_float(value) if first.is_float else value
        if name in self._constants and not member:
            return Node("named", f"{name}@file", (Node("num", str(self._constants[name])),))
        return Node("sym", f"{place.code.name}:{name}{member}@-1")

    def _fixed(self, events: Sequence[Event], place: HostPlace) -> Node | None:
        """The value of a constant of a file; None for what may change."""
        words = events[0].type_words
        is_constant = ("const" in words or "constexpr" in words) and len(events) == 1
        return self.of(events[0].value, place) if is_constant and events[0].value else None


def _changing_loop(place: HostPlace, changes: Sequence[Event], last: Event | None) -> Region | None:
    """The first loop around a place whose earlier rounds may change a variable, given what sets it last."""
    for r in place.code.around(place.at):
        fixed = last is not None and r.body <= last.at <= r.end and always_before(last, place)
        if r.kind == "loop" and not fixed and any(r.start <= e.at <= r.end for e in changes):
            return r
    return None


def _of_two(sign: str, values: Sequence[Node | None]) -> Node | None:
    """An operation on two values; None for another number of them, or if one is unknown."""
    known = [v for v in values if v is not None]
    return arithmetic.op(sign, *known) if len(known) == len(values) == 2 else None


def _only(results: set[Node | None]) -> Node | None:
    """The result if there is a single one; None if it depends on what is run."""
    return results.pop() if len(results) == 1 else None


def _labelled(value: Node | None, label: str) -> Node | None:
    """A value with the name of the variable that holds it."""
    if value is None or value.kind == "quotient":
        return value
    if value.kind == "float":
        return as_float(Node("named", label, value.parts))
    return Node("named", label, (value,))


def _converted(value: Node, declared: Event | None) -> Node | None:
    """A value as a variable holds it."""
    if declared is None:
        return value
    if declared.is_float:
        return as_float(value)
    is_typed = declared.type_words and "auto" not in declared.type_words
    return arithmetic.whole(value) if is_typed else value
