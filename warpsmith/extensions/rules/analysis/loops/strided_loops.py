"""Loops over which the threads of a block stride, and the data shared by their iterations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.loops.for_loops import ForLoop, header_of
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.extensions.rules.analysis.threads.thread_teams import Team, own_value, team_of
from warpsmith.source.tree.syntax_tree import (
    LOOPS,
    Edit,
    Variable,
    ancestors,
    apply_edits,
    contains,
    find,
    strip,
)

NO_ROW = "no loop of the form `for (i = thread; i < n; i += threads of the block)`"
"""Reason of rules for rows if a kernel has no strided loop."""
_DEEPEST = 8
_ACCUMULATES = ("+=", "*=", "|=", "&=", "^=")
_REDUCERS = re.compile(r"^(?:__)?(?:fmax|fmin|max|min)f?$")


@dataclass(frozen=True)
class StridedLoop(ForLoop):
    """`for (T i = thread; i < bound; i += threads of its team) body`."""

    step: Node
    axis: str
    team: Team = Team.BLOCK


def strided_loops(facts: Facts) -> list[StridedLoop]:
    """Every such loop of the kernel's own body that the threads of a block share."""
    return [loop for loop in team_loops(facts) if loop.team is Team.BLOCK]


def team_loops(facts: Facts) -> list[StridedLoop]:
    """Every such loop of the kernel's own body."""
    return [loop for n in find(facts.source.body, "for_statement") if (loop := _strided(facts, n))]


def _strided(facts: Facts, node: Node) -> StridedLoop | None:
    head = header_of(facts, node)
    if head is None or head.variable.is_pointer or head.variable.declaration.parent != node:
        return None
    counter, bound = operands(head.comparison)
    if operator(head.comparison) != "<" or facts.source.of(counter) != head.variable.name:
        return None
    step = step_of(facts, head.update, head.variable.name)
    found = None if step is None else team_of(facts, head.start, step)
    if step is None or found is None:
        return None
    team, axis = found
    return StridedLoop(node, head.variable, head.start, bound, head.body, step, axis, team)


def step_of(facts: Facts, update: Node, name: str) -> Node | None:
    """The value that the update of a loop adds to its variable; None if it does something else."""
    if update.type != "assignment_expression" or facts.source.of(operands(update)[0]) != name:
        return None
    right = operands(update)[1]
    # The grammar gives `i += n` and `i = i + n` the same type; only the operator differs.
    if operator(update) == "+=" or facts.source.of(update).replace(" ", "").startswith(f"{name}+="):
        return right
    if right.type == "binary_expression" and operator(right) == "+":
        left, other = operands(right)
        return other if facts.source.of(left) == name else None
    return None


def leaves(loop: StridedLoop) -> str | None:
    """The statement by which an iteration may end the loop early; None if there is none."""
    for n in find(loop.body, "break_statement", "return_statement", "goto_statement"):
        if n.type == "break_statement" and any(
            a.type in (*LOOPS, "switch_statement") and loop.contains(a) and a != loop.node
            for a in ancestors(n)
        ):
            continue
        return n.type.removesuffix("_statement")
    return None


def changed_variables(facts: Facts, node: Node) -> list[tuple[Variable, Node]]:
    """Variables that code under `node` assigns, with the place."""
    return [(v, p) for v in facts.source.variables for p in facts.assigned(v) if contains(node, p)]


def carried(facts: Facts, loop: StridedLoop) -> list[tuple[Variable, Node]]:
    """Assignments in the loop to variables that outlive an iteration."""
    update = loop.node.child_by_field_name("update")
    changed = (c for c in changed_variables(facts, loop.node) if not loop.declares(c[0]))
    return [(v, n) for v, n in changed if update is None or not contains(update, n)]


def is_reduction(facts: Facts, loop: StridedLoop, v: Variable) -> bool:
    """True if every use of `v` in the loop is one update of it, or of each field, whose order does not
    matter."""
    uses = facts.names_of(v, loop.node)
    targets = [_target(n) for w, n in carried(facts, loop) if w == v]
    updates = [t.parent for t in targets if t.parent is not None and t.parent.type == "assignment_expression"]
    if not len(updates) == len(targets) == len({facts.source.of(t) for t in targets}):
        return False
    if all(operator(n) in _ACCUMULATES for n in updates):
        return len(uses) == len(targets) > 0
    alone = len(targets) == 1 and targets[0].type == "identifier" and len(uses) == 2
    return alone and _picks(facts, updates[0], v.name)


def _picks(facts: Facts, update: Node, name: str) -> bool:
    """True for `v = max(v, value)` and the like."""
    right = operands(update)[1]
    if right.type != "call_expression" or _REDUCERS.match(facts.source.callee(right)) is None:
        return False
    direct = [a for a in facts.source.arguments(right) if facts.source.of(a) == name]
    return operator(update) == "=" and len(direct) == 1


def _target(place: Node) -> Node:
    """The variable or the field of a variable that an assignment changes."""
    while place.parent is not None and place.parent.type == "field_expression":
        place = place.parent
    return place


def depends(facts: Facts, node: Node, loop: StridedLoop, depth: int = 0) -> bool:
    """True if a value differs between iterations."""
    for n in find(node, "identifier"):
        v = facts.variable(n)
        if v == loop.variable:
            return True
        if v is None or not loop.declares(v):
            continue
        if v.init is None or depth > 8 or facts.assigned(v) or depends(facts, v.init, loop, depth + 1):
            return True
    return False


def memory_conflict(facts: Facts, loop: StridedLoop) -> str | None:
    """The reason why iterations may conflict in memory; None if each keeps to its own elements.

    Buffers of a job are distinct, so only accesses with the same root can conflict.
    """
    accesses = [a for a in facts.accesses(loop.body) if (a.reads or a.writes) and not _private(loop, a)]
    unclear = next((a for a in accesses if a.root is None), None)
    if unclear is not None:
        return f"where {facts.source.of(unclear.pointer)!r} points is not clear"
    reasons = (_write_conflict(facts, loop, w, accesses) for w in accesses if w.writes)
    return next((reason for reason in reasons if reason), None)


def _write_conflict(facts: Facts, loop: StridedLoop, w: Access, accesses: list[Access]) -> str | None:
    """The reason why a write of one iteration may meet an access of another one; None if it meets none."""
    assert w.root is not None
    where = w.where(facts.source)
    if w.root.is_shared:
        return f"it writes shared memory ({w.root.name})"
    if not (depends(facts, w.index or w.pointer, loop) or depends(facts, w.pointer, loop)):
        return f"it writes {where} in every iteration"
    for a in accesses:
        if a.root == w.root and element_text(facts, loop, a) != element_text(facts, loop, w):
            return f"it writes {where} and uses {a.where(facts.source)} of the same buffer"
    return None


def element_text(facts: Facts, loop: StridedLoop, a: Access) -> str:
    """An element as buffer and sorted terms, with locals written out: equal texts are equal elements.

    The loop's counter is `{i}`, so elements of loops with the same iterations can be compared.
    """
    name = "" if a.root is None else a.root.name
    if a.index is None:
        return a.where(facts.source)
    terms = [*_terms(facts, loop, a.pointer, a.root), *_terms(facts, loop, a.index, a.root)]
    return "+".join([name, *sorted(t for t in terms if t != name)])


def place_text(facts: Facts, loop: StridedLoop, pointer: Node) -> str:
    """An address as sorted terms, like `element_text`: equal texts are equal addresses."""
    return "+".join(sorted(_terms(facts, loop, pointer, None)))


def written_value(facts: Facts, identifier: Node) -> Node | None:
    """The value that a local has at a place: its initialiser, or what a pointer was last set to.

    None for parameters, for values that more than the body's top level sets, and for what is not a local.
    """
    value = facts.value_of(identifier)
    v = facts.variable(identifier)
    if value is not None or v is None or not v.is_pointer or facts.root(identifier) is None or v.is_parameter:
        return value
    before = [place for place in facts.assigned(v) if place.end_byte <= identifier.start_byte]
    last = max(before, key=lambda place: place.start_byte, default=None)
    if last is None:
        return v.init
    return None if last.parent is None else operands(last.parent)[1]


def _terms(
    facts: Facts, loop: StridedLoop, node: Node, root: Variable | None, depth: int = 0
) -> Iterator[str]:
    node = strip(node)
    if node.type == "binary_expression" and operator(node) == "+":
        for part in operands(node):
            yield from _terms(facts, loop, part, root, depth)
        return
    if node.type == "identifier" and depth < _DEEPEST:
        v = facts.variable(node)
        if v == loop.variable:
            yield "{i}"
            return
        value = None if v == root else written_value(facts, node)
        if value is not None:
            yield from _terms(facts, loop, value, root, depth + 1)
            return
    yield _written_term(facts, loop, node, depth)


def _written_term(facts: Facts, loop: StridedLoop, node: Node, depth: int) -> str:
    """A term that is no sum, with the loop's own values written out and its counter as `{i}`."""
    edits = []
    for n in find(node, "identifier"):
        v = facts.variable(n)
        text = "{i}" if v == loop.variable else None
        if v is not None and loop.declares(v) and depth < _DEEPEST:
            value = facts.value_of(n)
            text = None if value is None else f"({_written_term(facts, loop, value, depth + 1)})"
        if text is not None:
            edits.append(Edit(n.start_byte - node.start_byte, n.end_byte - node.start_byte, text))
    return re.sub(r"\s+", "", apply_edits(facts.source.of(node), edits))


def _private(loop: StridedLoop, a: Access) -> bool:
    return a.root is not None and not a.root.is_parameter and loop.declares(a.root)


def why_not_packs(facts: Facts, loop: StridedLoop) -> str | None:
    """The reason why a thread may not take several contiguous iterations at once; None if it may."""
    left = leaves(loop)
    if left or find(loop.body, "continue_statement"):
        return f"an iteration may end early ({left or 'continue'})"
    unsafe = facts.unsafe(loop.body)
    if unsafe:
        return unsafe
    reasons = (_carries(facts, loop, v) for v, _ in carried(facts, loop))
    return next((r for r in reasons if r), None) or _moving_bound(facts, loop) or memory_conflict(facts, loop)


def _carries(facts: Facts, loop: StridedLoop, v: Variable) -> str | None:
    """The reason why a variable that outlives an iteration ties iterations together; None if it does not."""
    if v == loop.variable:
        return "the loop variable is changed in the body"
    if not is_reduction(facts, loop, v):
        return f"{v.name} carries a value from one iteration to the next, not as a sum, minimum or maximum"
    if _stays_own(facts, loop, v):
        return f"{v.name}, of which every thread has another, is used by other iterations"
    return None


def _moving_bound(facts: Facts, loop: StridedLoop) -> str | None:
    """The reason why the bound of a loop may differ between iterations; None if it is the same."""
    for v in facts.variables_in(loop.bound):
        if facts.changes_in(v, loop.node):
            return f"its bound changes with {v.name}"
    if any(True for _ in facts.accesses(loop.bound)):
        return "its bound reads memory"
    if any(c for c in find(loop.bound, "call_expression") if facts.coordinate(c) is None):
        return "its bound calls a function"
    return None


def own_of_threads(facts: Facts, loop: StridedLoop) -> str | None:
    """The reason why an iteration must stay with its thread; None if another of the team may have it."""
    for part in (loop.bound, loop.body):
        name = own_value(facts, loop.team, loop.axis, part)
        if name is not None:
            return f"an iteration uses {name}, of which every thread has another"
    return None


def _stays_own(facts: Facts, loop: StridedLoop, v: Variable) -> bool:
    """True if another strided loop uses what this one gathered, and nothing combined it before."""
    after = loop.node.end_byte
    for other in team_loops(facts):
        combined = any(after <= n.start_byte < other.node.start_byte for n in facts.assigned(v))
        if other.node.start_byte < after or combined:
            continue
        if facts.names_of(v, other.node):
            return True
    return False


def outside(facts: Facts, loops: list[StridedLoop]) -> list[Access]:
    """Accesses of the kernel's body that lie in none of the loops."""
    return [a for a in facts.accesses(facts.source.body) if not any(p.contains(a.node) for p in loops)]
