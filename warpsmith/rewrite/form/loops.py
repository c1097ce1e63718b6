"""Loops in their usual form: `for` with its own counter, instead of `while` and counters declared before."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import AXES, Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.form.expressions import (
    OF_32_BITS,
    Edits,
    Spelling,
    block_of,
    coordinate_text,
    dtype_of,
    is_seen_everywhere,
    names_in,
    removed,
    words_of_directives,
)
from warpsmith.rewrite.source.syntax_tree import LOOPS, Edit, Variable, ancestors, find, strip


def counted_whiles(spelling: Spelling) -> Iterator[Edits]:
    """`while (i < n) { ...; i += s; }` becomes `for (; i < n; i += s) { ... }`.

    Not where an iteration may skip the update, or the update needs what the body declares.
    """
    facts = spelling.facts
    for node in find(facts.source.body, "while_statement"):
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        last = None if body is None else _last_update(facts, body)
        if condition is None or body is None or last is None or _has_continue(node):
            continue
        update = last.named_children[0]
        target = _target(facts, update)
        if target is None or target not in names_in(facts, condition):
            continue
        if any(body.start_byte <= v.declaration.start_byte < body.end_byte for v in names_in(facts, update)):
            continue
        inner = condition.named_children[0] if condition.type == "condition_clause" else strip(condition)
        head = f"for (; {facts.source.of(inner)}; {facts.source.of(update)})"
        yield Edit(node.start_byte, condition.end_byte, head), removed(facts, last)


def _last_update(facts: Facts, body: Node) -> Node | None:
    """The statement at the end of a loop's body, if it changes a variable."""
    inside = (
        [c for c in body.named_children if c.type != "comment"] if body.type == "compound_statement" else []
    )
    last = inside[-1] if inside else None
    if last is None or last.type != "expression_statement" or not last.named_children:
        return None
    return last if _target(facts, last.named_children[0]) is not None else None


def _target(facts: Facts, update: Node) -> Variable | None:
    """The variable that an update changes."""
    if update.type not in ("assignment_expression", "update_expression"):
        return None
    changed = update.child_by_field_name("left") or update.child_by_field_name("argument")
    return None if changed is None else facts.variable(changed)


def _has_continue(loop: Node) -> bool:
    for n in find(loop, "continue_statement", "goto_statement", "labeled_statement"):
        if n.type != "continue_statement" or next(a for a in ancestors(n) if a.type in LOOPS) == loop:
            return True
    return False


@dataclass(frozen=True)
class _Headed:
    """A `for` that sets a variable declared before it, or finds it set."""

    node: Node
    start: Node
    """The value with which it begins."""
    at: slice
    """Bytes of the header that set it; empty if nothing does."""


def set_in_headers(spelling: Spelling) -> Iterator[Edits]:
    """`i = e; for (; i < n; i += s)` becomes `for (i = e; i < n; i += s)`."""
    facts = spelling.facts
    for node in find(facts.source.body, "for_statement"):
        update, before = node.child_by_field_name("update"), node.prev_named_sibling
        if node.child_by_field_name("initializer") is not None or update is None or before is None:
            continue
        assigned = before.named_children[0] if before.type == "expression_statement" else None
        if assigned is None or assigned.type != "assignment_expression" or operator(assigned) != "=":
            continue
        if _target(facts, assigned) is not None and _target(facts, assigned) == _target(facts, update):
            first = _first_byte(facts, node)
            yield removed(facts, before), Edit(first, first, facts.source.of(assigned))


def steps_of_blocks(spelling: Spelling) -> Iterator[Edits]:
    """A step that is the block's or the grid's extent is written as that, whatever local or number holds it.

    A number is the block's extent only where the block has one axis and a thread's place begins the loop.
    """
    facts = spelling.facts
    for node in find(facts.source.body, "for_statement"):
        update = node.child_by_field_name("update")
        if update is None or update.type != "assignment_expression" or operator(update) != "+=":
            continue
        step, v = operands(update)[1], _target(facts, update)
        named = None if v is None or dtype_of(v) not in OF_32_BITS else _named_step(facts, node, v, step)
        if named is None or named[:-2] not in ("bdim", "gsize"):
            continue
        text = coordinate_text(facts, named)
        if facts.source.of(step) != text:
            yield (Edit(step.start_byte, step.end_byte, text),)


def _named_step(facts: Facts, loop: Node, v: Variable, step: Node) -> str | None:
    """The coordinate that a loop's counter is moved by."""
    is_extent = step.type == "number_literal" and facts.block[:1] == (facts.source.of(step),)
    if not is_extent or _start(facts, loop, v) != f"tid.{AXES[0]}":
        return facts.coordinate(step)
    # Of a block with more axes, rows of threads share the work otherwise.
    return f"bdim.{AXES[0]}" if set(facts.block[1:]) <= {"1"} else None


def _start(facts: Facts, loop: Node, counter: Variable) -> str | None:
    """The coordinate to which a loop's header sets the counter that it declares."""
    is_own = counter.declaration == loop.child_by_field_name("initializer")
    return facts.coordinate(counter.init) if is_own and counter.init is not None else None


def bare_blocks(spelling: Spelling) -> Iterator[Edits]:
    """Braces in a block of statements go if nothing is declared between them."""
    facts = spelling.facts
    hidden = words_of_directives(facts)
    for node in find(facts.source.body, "compound_statement"):
        outer, inside = node.parent, [c for c in node.named_children if c.type != "comment"]
        if outer is None or outer.type != "compound_statement" or not inside:
            continue
        # A macro may declare something.
        if any(facts.source.callee(c) in hidden for c in find(node, "call_expression")):
            continue
        if all(c.type.endswith("_statement") and c.type != "labeled_statement" for c in inside):
            first, last = node.start_byte, node.end_byte
            yield Edit(first, first + 1, ""), Edit(last - 1, last, "")


def own_counters(spelling: Spelling) -> Iterator[Edits]:
    """Counters that are declared before their loops, and used in nothing else, are declared in them."""
    facts = spelling.facts
    for v in _lone_integers(facts):
        loops = _headed(facts, v)
        if loops and _use_only(facts, v, loops) and is_seen_everywhere(facts, v):
            kind = facts.source.between(v.declaration.start_byte, v.declarator.start_byte)
            starts = [f"{kind}{v.name} = {facts.source.of(loop.start)}" for loop in loops]
            yield (
                removed(facts, v.declaration),
                *(Edit(h.at.start, h.at.stop, text) for h, text in zip(loops, starts, strict=True)),
            )


def _lone_integers(facts: Facts) -> Iterator[Variable]:
    """Integers that the kernel declares alone in a statement of their own."""
    body = facts.source.body
    for v in facts.source.variables:
        d = v.declaration
        inside = body.start_byte <= d.start_byte < body.end_byte
        if not inside or v.is_parameter or v.is_const or v.is_shared or not facts.assigned(v):
            continue
        dtype = None if block_of(v) is None else dtype_of(v)
        if dtype is not None and not dtype.is_float and "static" not in facts.source.of(d).split():
            yield v


def _headed(facts: Facts, v: Variable) -> list[_Headed]:
    """The loops with a header that sets the variable; or the one behind its declaration that sets nothing."""
    found = []
    scope = v.declaration.parent
    assert scope is not None
    for node in find(scope, "for_statement"):
        init, update = node.child_by_field_name("initializer"), node.child_by_field_name("update")
        if update is None or _target(facts, update) != v:
            continue
        if init is None:
            first = _first_byte(facts, node)
            if v.init is None or not _holds_at(facts, v, node):
                return []
            found.append(_Headed(node, v.init, slice(first, first)))
            continue
        if init.type != "assignment_expression" or operator(init) != "=" or _target(facts, init) != v:
            return []
        found.append(_Headed(node, operands(init)[1], slice(init.start_byte, init.end_byte)))
    # Only the first may begin with what the declaration set: another one begins where a loop ended.
    return [] if any(h.at.start == h.at.stop for h in found[1:]) else found


def _first_byte(facts: Facts, loop: Node) -> int:
    """Where the header of a `for` begins, inside of its parentheses."""
    return facts.source.data.index(b"(", loop.start_byte) + 1


def _holds_at(facts: Facts, v: Variable, loop: Node) -> bool:
    """True if the initialiser of a variable has the same value where the loop begins, in the same scope."""
    declaration, init = v.declaration, v.init
    assert init is not None
    if loop.parent != declaration.parent:
        return False
    before = loop.prev_named_sibling
    while before is not None and before.type == "comment":
        before = before.prev_named_sibling
    if before == declaration:
        return True
    if find(init, "subscript_expression", "pointer_expression", "update_expression", "assignment_expression"):
        return False
    calls = find(init, "call_expression")
    if any(facts.coordinate(call) is None for call in calls):
        return False
    for n in find(init, "identifier"):
        w = facts.variable(n)
        if w is None and not _is_of_coordinate(n):
            return False
        if w is not None and (facts.source.lookup(w.name, loop) != w or w.is_reference):
            return False
        places = [] if w is None else facts.assigned(w)
        if any(declaration.end_byte <= p.start_byte < loop.start_byte for p in places):
            return False
    return True


def _is_of_coordinate(identifier: Node) -> bool:
    parent = identifier.parent
    return parent is not None and parent.type in ("field_expression", "call_expression")


def _use_only(facts: Facts, v: Variable, loops: Sequence[_Headed]) -> bool:
    """True if the variable is used in these loops alone, none of which lies in another."""
    nodes = [h.node for h in loops]
    if any(a in nodes for n in nodes for a in ancestors(n)):
        return False
    scope = v.declaration.parent
    assert scope is not None
    for n in find(scope, "identifier"):
        if facts.variable(n) != v or v.declaration.start_byte <= n.start_byte < v.declaration.end_byte:
            continue
        inside = [h for h in loops if h.node.start_byte <= n.start_byte < h.node.end_byte]
        # What sets it is no use, and no loop may begin with what it left.
        if not inside or any(h.start.start_byte <= n.start_byte < h.start.end_byte for h in inside):
            return False
    return True
