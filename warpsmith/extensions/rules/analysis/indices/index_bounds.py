"""Upper bounds that a kernel's own guards put on an axis, as expressions of the job."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.space import Constraint
from warpsmith.errors import ExpressionError
from warpsmith.extensions.rules.analysis.calls.callees import is_known_pure
from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.rules.analysis.operations import assignment_to, both_ways, operands, operator, use
from warpsmith.source.tree.syntax_tree import Variable, find, strip

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "=="}
_DENIED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "!=": "=="}
_NARROW = re.compile(r"\b(?:char|short|uchar|ushort|u?int(?:8|16)_t|half|float|bool)\b")
_HIDING = re.compile(r"[\[({*=]|->|\+\+|--")
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")


@dataclass(frozen=True)
class GuardedBody:
    """A kernel's body as guards on the index, and the statements that run if they hold."""

    prefix: tuple[Node, ...]
    """Statements before and between the guards; none accesses memory."""
    guards: tuple[tuple[Node, bool], ...]
    """Conditions, each with its value if the region is reached."""
    region: tuple[Node, ...]
    """Statements that run if every guard holds."""


def statements(block: Node) -> list[Node]:
    """Statements of a block, or the single one."""
    if block.type != "compound_statement":
        return [block]
    return [n for n in block.named_children if n.type != "comment"]


def touches(facts: Facts, node: Node) -> bool:
    """True if code may access memory or has unknown effects: calls and macros that may."""
    if any(True for _ in facts.accesses(node)):
        return True
    if any(not is_known_pure(facts.source.callee(c)) for c in find(node, "call_expression")):
        return True
    if find(node, "gnu_asm_expression", "new_expression", "delete_expression") or _sets_global(facts, node):
        return True
    names = {facts.source.of(n) for n in find(node, "identifier") if facts.variable(n) is None}
    return any(_HIDING.search(body) for name in names for body in macro_bodies(facts, name))


def _sets_global(facts: Facts, node: Node) -> bool:
    """True if a variable of the file changes, which all threads share."""
    written = (n for n in find(node, "identifier") if use(n, facts.inside)[1])
    return any((v := facts.variable(n)) is not None and v.scope is None for n in written)


def is_idle(facts: Facts, statement: Node) -> bool:
    """True for a call without arguments of a function of this source that accesses no memory."""
    call = statement.named_child(0) if statement.type == "expression_statement" else None
    if call is None or call.type != "call_expression" or facts.source.arguments(call):
        return False
    defined = facts.source.definitions(facts.source.callee(call))
    quiet = all(not any(True for _ in facts.accesses(f)) for f in defined)
    return bool(defined) and quiet and facts.unsafe(call, in_order=True) is None


def macro_bodies(facts: Facts, name: str) -> list[str]:
    """The source's definitions of a macro without arguments."""
    return re.findall(rf"(?m)^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}[ \t]+(.+)$", facts.source.text)


def guarded(facts: Facts) -> GuardedBody:
    """The guards at the top of the kernel."""
    rest = statements(facts.source.body)
    prefix: list[Node] = []
    guards: list[tuple[Node, bool]] = []
    while rest:
        head = rest[0]
        plain = head.type in ("declaration", "expression_statement") and not touches(facts, head)
        if plain or is_idle(facts, head):
            prefix.append(rest.pop(0))
            continue
        condition, then = head.child_by_field_name("condition"), head.child_by_field_name("consequence")
        alone = head.type == "if_statement" and head.child_by_field_name("alternative") is None
        if not alone or condition is None or then is None:
            break
        inner = statements(then)
        if [n.type for n in inner] == ["return_statement"] and not touches(facts, condition):
            guards.append((condition, False))
            rest.pop(0)
        elif all(_is_return(n) or not touches(facts, n) for n in rest[1:]):
            guards.append((condition, True))
            rest = inner
        else:
            break
    return GuardedBody(tuple(prefix), tuple(guards), tuple(rest))


def _is_return(node: Node) -> bool:
    return node.type == "return_statement" and node.named_child_count == 0


def bound(facts: Facts, kernel: Kernel, found: GuardedBody, axis: str, place: str = "gid") -> str | None:
    """An expression that bounds from above every index along `axis` at which memory is accessed.

    None if the guards give no bound.

    Args:
        place: the index that is bounded: of threads over the whole grid (`gid`), or of blocks (`bid`).
    """
    for condition, holds in found.guards:
        for term in _terms(facts, condition, "&&" if holds else "||"):
            limit = _limit(facts, kernel, term, f"{place}.{axis}", holds=holds)
            if limit is not None:
                return limit
    return None


def _terms(facts: Facts, node: Node, joined_by: str) -> Iterator[Node]:
    """Terms that are evaluated before any term that accesses memory."""
    for term in _split(node, joined_by):
        if touches(facts, term):
            return
        yield term


def _split(node: Node, joined_by: str) -> Iterator[Node]:
    node = strip(node)
    if node.type == "binary_expression" and operator(node) == joined_by:
        for side in operands(node):
            yield from _split(side, joined_by)
    else:
        yield node


def _limit(facts: Facts, kernel: Kernel, term: Node, index: str, *, holds: bool) -> str | None:
    term = strip(term)
    if term.type != "binary_expression":
        return None
    sign = operator(term) if holds else _DENIED.get(operator(term), "")
    left, right = operands(term)
    for place, limit, found in ((left, right, sign), (right, left, _TURNED.get(sign, ""))):
        if found not in ("<", "<=", "=="):
            continue
        shift = _shift(facts, kernel, place, index, term)
        value = expression_of(facts, kernel, limit, term)
        if shift is not None and value is not None:
            return f"({value}) - ({shift})" + ("" if found == "<" else " + 1")
    return None


def _shift(facts: Facts, kernel: Kernel, node: Node, index: str, at: Node, depth: int = 0) -> str | None:
    """The offset `c`, if the value is the coordinate `index` plus `c`; else None."""
    node = strip(node)
    if facts.coordinate(node) == index and not (node.type == "identifier" and _narrow(facts, node)):
        return "0"
    if node.type == "identifier" and depth < 8 and not _narrow(facts, node):
        value = value_at(facts, node, at)
        return None if value is None else _shift(facts, kernel, value, index, at, depth + 1)
    if node.type == "cast_expression":
        value = _widely_cast(facts, node)
        return None if value is None else _shift(facts, kernel, value, index, at, depth)
    for moved, by in _moved_by(node):
        shift = _shift(facts, kernel, moved, index, at, depth)
        other = None if shift is None else expression_of(facts, kernel, by, at)
        if other is not None:
            return f"({shift}) {operator(node)} ({other})"
    return None


def _moved_by(node: Node) -> tuple[tuple[Node, Node], ...]:
    """Operands that a sum or difference may move, each with its distance; empty for any other expression."""
    if node.type != "binary_expression" or operator(node) not in ("+", "-"):
        return ()
    return both_ways(node) if operator(node) == "+" else (operands(node),)


def _widely_cast(facts: Facts, cast: Node) -> Node | None:
    """The operand of a cast to a type that holds every index; None if the type is narrower."""
    value, kind = cast.child_by_field_name("value"), cast.child_by_field_name("type")
    return None if kind is None or _NARROW.search(facts.source.of(kind)) else value


def _narrow(facts: Facts, node: Node) -> bool:
    v = facts.variable(node)
    return v is None or _NARROW.search(v.kind) is not None


def value_at(facts: Facts, node: Node, at: Node) -> Node | None:
    """The value last assigned to a variable before `at`, which the kernel's body reaches in order."""
    v = facts.variable(node)
    if v is None or v.is_array or v.is_pointer or v.is_parameter:
        return None
    before = [n for n in facts.assigned(v) if n.start_byte < at.start_byte]
    if not before:
        return v.init
    changed = assignment_to(before[0])
    if len(before) > 1 or v.init is not None or changed is None:
        return None
    assignment, statement = changed
    always = operator(assignment) == "=" and statement.parent == facts.source.body
    return operands(assignment)[1] if always else None


def expression_of(facts: Facts, kernel: Kernel, node: Node, at: Node, depth: int = 0) -> str | None:
    """An integer of the source in the job's terms; None if it differs between threads."""
    node = strip(node)
    text = facts.source.of(node)
    if node.type == "number_literal":
        return _number(text)
    if node.type == "cast_expression":
        value = _widely_cast(facts, node)
        return None if value is None else expression_of(facts, kernel, value, at, depth)
    if node.type == "identifier" and depth < 8:
        return _named(facts, kernel, node, at, depth)
    if node.type == "binary_expression" and operator(node) in ("+", "-", "*"):
        parts = [expression_of(facts, kernel, o, at, depth) for o in operands(node)]
        return None if None in parts else f"({parts[0]}) {operator(node)} ({parts[1]})"
    return None


def _named(facts: Facts, kernel: Kernel, node: Node, at: Node, depth: int) -> str | None:
    v = facts.variable(node)
    if v is None:
        bodies = macro_bodies(facts, facts.source.of(node))
        return _number(bodies[0].strip(" \t()")) if len(bodies) == 1 else None
    if v.is_parameter:
        return _given(facts, kernel, v)
    value = None if _NARROW.search(v.kind) else value_at(facts, node, at)
    return None if value is None else expression_of(facts, kernel, value, at, depth + 1)


def _given(facts: Facts, kernel: Kernel, v: Variable) -> str | None:
    """The job's expression for an integer parameter; None if the kernel changes the parameter."""
    source = facts.source
    order = [p.name for p in source.variables if p.is_parameter and p.scope == source.kernel]
    if v.scope != source.kernel or facts.assigned(v) or len(order) != len(kernel.arguments):
        return None
    argument = kernel.arguments[order.index(v.name)]
    return None if argument.value is None or argument.dtype.is_float else argument.value.text


def _number(text: str) -> str | None:
    """An integer literal as a decimal number; None for any other text."""
    number = _NUMBER.fullmatch(text)
    return None if number is None else str(int(number.group(1), 0))


def parsed(text: str) -> Expression | None:
    """The parsed expression; None if it is longer than the language permits."""
    try:
        return Expression(text)
    except ExpressionError:
        return None


def covered(job: Job, blocks: str, threads: str, limit: str) -> bool | str:
    """True if a grid of `blocks` blocks of `threads` always reaches the limit; else the condition for it."""
    rounded = re.fullmatch(rf"ceil_div\((.*), ?{re.escape(threads)}\)", blocks)
    known = rounded is not None and parsed(rounded.group(1)) is not None
    always = parsed(f"0 <= {limit} <= {rounded.group(1)}") if rounded is not None and known else None
    if always is not None and all(_holds(always, w) for w in job.workloads):
        return True
    return f"0 <= {limit} <= ({blocks}) * ({threads})"


def _holds(expression: Expression, workload: Workload) -> bool:
    try:
        return bool(expression.evaluate(workload.scope()))
    except ExpressionError:  # names a parameter
        return False


def beyond(job: Job, launch: Launch, axis: int, items: str, limit: str | None) -> list[Constraint]:
    """Constraint under which elements beyond the original launch do nothing; empty if it always holds.

    Args:
        axis: 0 for x.
        items: name of the parameter by which the grid is divided.
        limit: bound of the kernel's own checks.
    """
    blocks = launch.grid[axis].text
    threads = launch.block[axis].text if axis < len(launch.block) else "1"
    inside = None if limit is None else covered(job, blocks, threads, limit)
    if inside is True:
        return []
    divides = f"({blocks}) % {items} == 0"
    expression = parsed(f"{divides} or {inside}") if inside is not None else None
    reason = f"elements beyond the last block along {AXES[axis]} would not be kept from memory"
    return [Constraint(expression=expression or Expression(divides), reason=reason)]
