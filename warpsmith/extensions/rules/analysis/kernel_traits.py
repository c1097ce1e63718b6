"""Forms by which a kernel is told from others, for advice only: nothing may be rewritten because of them."""

import re
from collections.abc import Iterator
from enum import StrEnum

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.indices.index_parts import IndexParts, parts_of
from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import carried, is_reduction, team_loops
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.source.tree.syntax_tree import LOOPS, Variable, ancestors, find, walk

_COLLECTIVE = re.compile(r"shfl|reduce|Reduce|sub_group_scan|__ballot")
_MATRIX_UNIT = re.compile(r"\bwmma\b|mma_sync|\bw?gmma|\bmma\.|\bmfma")
_MULTIPLY_ADD = re.compile(r"fmaf?|mad|__fmaf_rn|__hfma2?")
_MOST_STEPS = 4
"""Locals through which a value is followed to the memory that it was read from."""


class Trait(StrEnum):
    """A form of a kernel."""

    ROW = "row"
    """The threads of a block share the iterations of a loop."""
    REDUCTION = "reduction"
    """Threads of a warp or block combine their values."""
    GATHER = "gather"
    """A place in memory depends on a value read from memory."""
    TRANSPOSE = "transpose"
    """Neighbours where memory is read have a stride where it is written, and the other way round."""
    STENCIL = "stencil"
    """An array is read at several fixed distances, before and behind a place."""
    PRODUCT = "product"
    """Products of two arrays are summed, of which each is used again along a direction of the result."""


def traits_of(facts: Facts) -> frozenset[Trait]:
    """The forms of a kernel and of the functions that it calls."""
    bodies = [b for f in facts.source.reachable if (b := f.child_by_field_name("body")) is not None]
    accesses = [a for body in bodies for a in facts.accesses(body)]
    assignments = [n for body in bodies for n in find(body, "assignment_expression")]
    loops = [n for body in bodies for n in find(body, "for_statement")]
    joined = {_joined(facts, node) for node in assignments}
    tests = {
        Trait.ROW: any(_is_shared_loop(facts, loop) for loop in loops),
        Trait.REDUCTION: any(joined) or _reduces(facts, bodies),
        Trait.GATHER: any(_gathers(facts, a) for a in accesses),
        Trait.TRANSPOSE: _transposes(facts, accesses),
        Trait.STENCIL: _reads_around(facts, accesses, joined),
        Trait.PRODUCT: _multiplies(facts, assignments),
    }
    return frozenset(trait for trait, holds in tests.items() if holds)


def _multiplies(facts: Facts, assignments: list[Node]) -> bool:
    in_unit = _MATRIX_UNIT.search(facts.source.text) is not None
    return in_unit or any(_is_product(facts, node) for node in assignments)


def _is_shared_loop(facts: Facts, loop: Node) -> bool:
    """True for a loop over memory that starts at the thread's own place in its block, and steps over the
    others' places."""
    start, update = loop.child_by_field_name("initializer"), loop.child_by_field_name("update")
    if start is None or update is None or update.type != "assignment_expression":
        return False
    places = parts_of(facts, *_set_by(start)).places
    of_block = any(p.startswith("tid.") for p in places) and not any(p.startswith("bid.") for p in places)
    return of_block and any(_in_memory(a.root) and not _is_atomic(facts, a) for a in facts.accesses(loop))


def _set_by(start: Node) -> list[Node]:
    """The values in the first part of a loop's header."""
    declared = [
        v for d in find(start, "init_declarator") if (v := d.child_by_field_name("value")) is not None
    ]
    return declared or [operands(a)[1] for a in find(start, "assignment_expression")]


def _reduces(facts: Facts, bodies: list[Node]) -> bool:
    if any(is_reduction(facts, loop, v) for loop in team_loops(facts) for v, _ in carried(facts, loop)):
        return True
    calls = (facts.source.callee(call) for body in bodies for call in find(body, "call_expression"))
    return any(_COLLECTIVE.search(name) for name in calls)


def _joined(facts: Facts, assignment: Node) -> str:
    """The array of the block of which an element is joined with another one, as in `s[i] += s[i + step]`;
    empty if there is none."""
    target, right = operands(assignment)
    root = facts.root(target) if target.type == "subscript_expression" else None
    if root is None or not root.is_shared:
        return ""
    places = {facts.source.of(node) for name, node in _reads(facts, right).values() if name == root.name}
    return root.name if places - {facts.source.of(target)} else ""


def _in_memory(v: Variable | None) -> bool:
    """True for a buffer of the job, as far as can be seen."""
    return v is not None and v.is_parameter and not v.is_shared


def _gathers(facts: Facts, a: Access) -> bool:
    if not _in_memory(a.root) or _is_atomic(facts, a):
        return False
    return bool(parts_of(facts, a.index, a.pointer).read)


def _is_atomic(facts: Facts, a: Access) -> bool:
    around = [a.node, *ancestors(a.node)]
    return any(n.type == "call_expression" and "atom" in facts.source.callee(n) for n in around)


def _transposes(facts: Facts, accesses: list[Access]) -> bool:
    found = [(a, parts_of(facts, a.index, a.pointer)) for a in accesses if _in_memory(a.root)]
    reads = [parts for a, parts in found if a.reads]
    writes = [parts for a, parts in found if a.writes]
    return any(_are_turned(r, w) for r in reads for w in writes)


def _are_turned(read: IndexParts, written: IndexParts) -> bool:
    there, back = written.near & read.far, read.near & written.far
    return bool(there - read.near) and bool(back - written.near)


def _reads_around(facts: Facts, accesses: list[Access], joined: set[str]) -> bool:
    """True if some array is read at three places or more, one of them before and one behind another.

    Args:
        joined: arrays of the block whose elements are joined; they do not count.
    """
    by_array: dict[str, dict[str, Access]] = {}
    for a in accesses:
        if a.reads and a.index is not None and a.root is not None and a.root.name not in joined:
            places = by_array.setdefault(a.root.name, {})
            places.setdefault(re.sub(r"\s+", "", facts.source.of(a.node)), a)
    return any(
        len(places) >= 3
        and any(_shifts(facts, a, "-") for a in places.values())
        and any(_shifts(facts, a, "+") for a in places.values())
        for places in by_array.values()
    )


def _shifts(facts: Facts, a: Access, sign: str) -> bool:
    """True if an index adds or subtracts an extent or a number to or from what differs between threads."""
    for node in _with_locals(facts, a.node):
        if node.type == "binary_expression" and operator(node) == sign:
            left, right = operands(node)
            if _varies(facts, left) and not _varies(facts, right):
                return True
    return False


def _varies(facts: Facts, node: Node) -> bool:
    """True if a value differs between threads or between iterations."""
    parts = parts_of(facts, node)
    return bool(parts.places | parts.read)


def _with_locals(facts: Facts, node: Node, steps: int = _MOST_STEPS) -> Iterator[Node]:
    """The nodes of an expression, and of the values of the locals in it."""
    for n in walk(node):
        yield n
        v = facts.variable(n)
        if v is None or v.is_parameter or v.is_array or v.is_pointer or v.scope is None or steps == 0:
            continue
        for value in _values(facts, v):
            if not value.start_byte <= n.start_byte < value.end_byte:
                yield from _with_locals(facts, value, steps - 1)


def _values(facts: Facts, v: Variable) -> Iterator[Node]:
    """Values that a local is set to."""
    if v.init is not None:
        yield v.init
    for place in facts.assigned(v):
        statement = place.parent
        if statement is not None and statement.type == "assignment_expression" and operator(statement) == "=":
            yield operands(statement)[1]


def _is_product(facts: Facts, assignment: Node) -> bool:
    loops = [a for a in ancestors(assignment) if a.type in LOOPS]
    target, right = operands(assignment)
    if not loops or operator(assignment) not in ("+=", "="):
        return False
    if operator(assignment) == "=" and facts.source.of(target) not in facts.source.of(right):
        return False
    kept = parts_of(facts, target).places if target.type == "subscript_expression" else frozenset()
    return any(
        _are_operands(facts, a, b, kept)
        for one, other in _factors(facts, right)
        for a in _reads(facts, one).values()
        for b in _reads(facts, other).values()
    )


def _factors(facts: Facts, node: Node) -> Iterator[tuple[Node, Node]]:
    for n in walk(node):
        if n.type == "binary_expression" and operator(n) == "*":
            yield operands(n)
        elif n.type == "call_expression" and _MULTIPLY_ADD.fullmatch(facts.source.callee(n)):
            arguments = facts.source.arguments(n)
            if len(arguments) == 3:
                yield arguments[0], arguments[1]


def _reads(facts: Facts, node: Node) -> dict[int, tuple[str, Node]]:
    """Elements from which a value is made, by way of locals: array, or macro for its elements, and place."""
    found: dict[int, tuple[str, Node]] = {}
    for n in _with_locals(facts, node):
        if n.type == "subscript_expression":
            element = next((a for a in facts.accesses(n) if a.node == n and a.reads), None)
            if element is not None and element.root is not None:
                found[n.id] = element.root.name, n
        elif n.type == "call_expression" and _is_element_macro(facts, facts.source.callee(n)):
            found[n.id] = facts.source.callee(n), n
    return found


def _is_element_macro(facts: Facts, name: str) -> bool:
    """True for `#define AT(i, j) tile[j][i]`."""
    pattern = rf"#[ \t]*define[ \t]+{re.escape(name)}\([^)]*\)[ \t]+\w+\["
    return bool(name) and re.search(pattern, facts.source.text) is not None


def _are_operands(facts: Facts, a: tuple[str, Node], b: tuple[str, Node], kept: frozenset[str]) -> bool:
    """True if each of two elements lies along a direction that the other does not know.

    Args:
        kept: what tells a thread's own sums apart, if it has several.
    """
    if a[0] == b[0]:
        return False
    one, other = (parts_of(facts, node).places for _, node in (a, b))
    if kept & one - other and (kept & other - one or one & other):
        return True
    if kept & other - one and one & other:
        return True
    mine, others = ({p for p in places if "." in p} for places in (one, other))
    return bool(mine - others) and bool(others - mine) and bool(one & other)
