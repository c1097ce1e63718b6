"""Forms by which a kernel is told from others, for advice only: nothing may be rewritten because of them."""

import re
from collections.abc import Iterator
from enum import StrEnum

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import carried, is_reduction, team_loops
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.source.tree.syntax_tree import Variable, ancestors, find, walk

_COLLECTIVE = re.compile(r"shfl|reduce|Reduce|sub_group_scan|__ballot")
_MOST_STEPS = 4
"""Locals through which a value is followed to what it is made of."""


class Trait(StrEnum):
    """A form of a kernel."""

    ROW = "row"
    """The threads of a block share the iterations of a loop."""
    REDUCTION = "reduction"
    """Threads of a warp or block combine their values."""


def traits_of(facts: Facts) -> frozenset[Trait]:
    """The forms of a kernel and of the functions that it calls."""
    bodies = [b for f in facts.source.reachable if (b := f.child_by_field_name("body")) is not None]
    assignments = [n for body in bodies for n in find(body, "assignment_expression")]
    loops = [n for body in bodies for n in find(body, "for_statement")]
    tests = {
        Trait.ROW: any(_is_shared_loop(facts, loop) for loop in loops),
        Trait.REDUCTION: any(_joins(facts, node) for node in assignments) or _reduces(facts, bodies),
    }
    return frozenset(trait for trait, holds in tests.items() if holds)


def _is_shared_loop(facts: Facts, loop: Node) -> bool:
    """True for a loop over memory that starts at the thread's own place in its block, and steps over the
    others' places."""
    start, update = loop.child_by_field_name("initializer"), loop.child_by_field_name("update")
    if start is None or update is None or update.type != "assignment_expression":
        return False
    made_of = {facts.coordinate(n) or "" for value in _set_by(start) for n in _with_locals(facts, value)}
    places = {coordinate.partition(".")[0] for coordinate in made_of}
    of_block = "tid" in places and not places & {"bid", "gid"}
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


def _joins(facts: Facts, assignment: Node) -> bool:
    """True if an element of an array of the block is joined with another one, as in `s[i] += s[i + step]`."""
    target, right = operands(assignment)
    root = facts.root(target) if target.type == "subscript_expression" else None
    if root is None or not root.is_shared:
        return False
    places = {facts.source.of(a.node) for a in _reads(facts, right) if a.root == root}
    return bool(places - {facts.source.of(target)})


def _in_memory(v: Variable | None) -> bool:
    """True for a buffer of the job, as far as can be seen."""
    return v is not None and v.is_parameter and not v.is_shared


def _is_atomic(facts: Facts, a: Access) -> bool:
    around = [a.node, *ancestors(a.node)]
    return any(n.type == "call_expression" and "atom" in facts.source.callee(n) for n in around)


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


def _reads(facts: Facts, node: Node) -> Iterator[Access]:
    """Elements from which a value is made, by way of locals."""
    for n in _with_locals(facts, node):
        if n.type == "subscript_expression":
            yield from (a for a in facts.accesses(n) if a.node == n and a.reads)
