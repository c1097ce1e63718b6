"""Loops by rounds (`for (i = 0; i < rounds; ++i)`) that load what an earlier one has loaded."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.loops.counted_loops import CountedLoop, counted, ends_early
from warpsmith.extensions.rules.analysis.memory.loaded_objects import is_named, object_filled, only_read
from warpsmith.source.tree.syntax_tree import Variable, ancestors, find, strip, walk

_DEEPEST = 8
_IMPURE = ("call_expression", "assignment_expression", "update_expression", "subscript_expression")


@dataclass(frozen=True)
class RoundLoad:
    """`v.load(p);` in a round."""

    loop: int
    """Number of the loop."""
    variable: Variable
    statement: Node


@dataclass(frozen=True)
class KeptRounds:
    """Loops with the same rounds, and for each kept object its first load and those that repeat it."""

    loops: tuple[CountedLoop, ...]
    objects: tuple[tuple[RoundLoad, ...], ...]


@dataclass(frozen=True)
class _FoundLoad:
    load: RoundLoad
    way: tuple[str, ...]
    """Type, method, address, and what is done to the object before."""
    conditions: frozenset[str]


def kept_rounds(facts: Facts) -> KeptRounds | str:
    """The loops of a kernel that load the same objects in the same rounds.

    The reason if there are none, empty for a kernel without loops by rounds.
    """
    reason = ""
    for loops in _alike(facts):
        reason = reason or "no two loops by rounds load the same objects"
        if any(ends_early(p) or find(p.body, "goto_statement", "labeled_statement") for p in loops):
            reason = "a round may end early"
            continue
        objects = tuple(_objects(facts, loops))
        if objects:
            return KeptRounds(tuple(loops), objects)
    return reason


def _alike(facts: Facts) -> Iterator[list[CountedLoop]]:
    """Loops of one block that count from 0 to the same bound, which does not change between."""
    by: dict[tuple[int, str, str], list[CountedLoop]] = {}
    for n in find(facts.source.body, "for_statement"):
        loop = counted(facts, n)
        block = n.parent
        if loop is None or loop.inclusive or block is None or block.type != "compound_statement":
            continue
        own = loop.variable.declaration.parent == n
        if own and facts.source.of(loop.start) in ("0", "0u") and strip(loop.bound).type == "identifier":
            key = (block.id, facts.source.of(loop.bound), loop.variable.type_text)
            by.setdefault(key, []).append(loop)
    for loops in by.values():
        span = (loops[0].node.start_byte, loops[-1].node.end_byte)
        v = facts.variable(strip(loops[0].bound))
        changes = [] if v is None else [*facts.assigned(v), *facts.waits(facts.source.body)]
        steady = v is not None and not any(span[0] <= n.start_byte < span[1] for n in changes)
        if len(loops) > 1 and steady:
            yield loops


def _objects(facts: Facts, loops: Sequence[CountedLoop]) -> Iterator[tuple[RoundLoad, ...]]:
    """Loads of the same value; the first one has the fewest conditions."""
    span = (loops[0].node.start_byte, loops[-1].node.end_byte)
    written = {a.root for a in facts.accesses(facts.source.body) if a.writes}
    by: dict[tuple[str, ...], list[_FoundLoad]] = {}
    for n, loop in enumerate(loops):
        for statement in find(loop.body, "expression_statement"):
            found = _load(facts, n, loop, statement, span)
            if found is not None and _is_steady(facts, statement, written):
                by.setdefault(found.way, []).append(found)
    bodies = [p.body for p in loops]
    for way, loads in by.items():
        implied = all(loads[0].conditions <= f.conditions for f in loads)
        one_each = 1 < len({f.load.loop for f in loads}) == len(loads)
        if implied and one_each and is_named(facts, way[0], bodies):
            yield tuple(f.load for f in loads)


def _is_steady(facts: Facts, statement: Node, written: set[Variable | None]) -> bool:
    """True if a statement only uses buffers that nothing writes while the kernel runs."""
    for root in (a.root for a in facts.accesses(statement) if a.reads or a.writes):
        if root is None or not root.is_parameter or facts.is_volatile(root) or written & {root, None}:
            return False
    return True


def _load(
    facts: Facts, number: int, loop: CountedLoop, statement: Node, span: tuple[int, int]
) -> _FoundLoad | None:
    call = statement.named_child(0)
    v = None if call is None else object_filled(facts, loop.body, call)
    if call is None or v is None or only_read(facts, call) is None:
        return None
    given = facts.source.arguments(call)
    if len(given) != 1:
        return None
    address = _text(facts, loop, given[0], span)
    conditions = _conditions(facts, loop, statement, span)
    before = _before(facts, loop, v, statement)
    if address is None or conditions is None or before is None:
        return None
    way = (v.type_text, facts.source.callee(call), address, *before)
    return _FoundLoad(RoundLoad(number, v, statement), way, conditions)


def _conditions(
    facts: Facts, loop: CountedLoop, statement: Node, span: tuple[int, int]
) -> frozenset[str] | None:
    """Conditions under which a statement is executed; None if they are unclear."""
    found: set[str] = set()
    child = statement
    for a in ancestors(statement):
        if a == loop.body:
            return frozenset(found)
        if a.type == "if_statement":
            condition = a.child_by_field_name("condition")
            taken = child == a.child_by_field_name("consequence")
            text = None if condition is None else _text(facts, loop, strip(condition), span)
            if text is None:
                return None
            found.add(text if taken else f"!({text})")
        elif a.type not in ("compound_statement", "else_clause"):
            return None
        child = a
    return None


def _before(facts: Facts, loop: CountedLoop, v: Variable, statement: Node) -> tuple[str, ...] | None:
    """Statements of the round's own block that use an object before it is loaded; its name is left out.

    None if anything else uses it.
    """
    found = []
    for n in facts.names_of(v, loop.body):
        if n.start_byte >= statement.start_byte or n.end_byte <= v.declarator.end_byte:
            continue
        own = next((s for s in loop.body.named_children if s.start_byte <= n.start_byte < s.end_byte), None)
        text = "" if own is None else facts.source.of(own)
        if re.fullmatch(rf"{re.escape(v.name)}\.\w+\([-\w.]*\);", text) is None:
            return None
        found.append(text.removeprefix(v.name))
    return tuple(found)


def _text(facts: Facts, loop: CountedLoop, node: Node, span: tuple[int, int], depth: int = 0) -> str | None:
    """An expression with the counter as `{i}` and locals of the round written out.

    None if something that it names may change from one loop to the next, or if it has effects.
    """
    if depth > _DEEPEST or find(node, *_IMPURE):
        return None
    parts = []
    for n in walk(node):
        if n.child_count > 0:
            continue
        v = facts.variable(n) if n.type == "identifier" else None
        if v is None:
            parts.append(facts.source.of(n))
        elif v == loop.variable:
            parts.append("{i}")
        elif any(span[0] <= place.start_byte < span[1] for place in facts.assigned(v)):
            return None
        elif span[0] <= v.declaration.start_byte < span[1]:
            inner = None if v.init is None else _text(facts, loop, v.init, span, depth + 1)
            if inner is None or not loop.declares(v):
                return None
            parts.append(f"({inner})")
        else:
            parts.append(v.name)
    return " ".join(parts)
