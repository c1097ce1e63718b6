"""Sequential loops of a thread that count up by one."""

from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.source.syntax_tree import LOOPS, Variable, ancestors, find, strip


@dataclass(frozen=True)
class CountedLoop:
    """`for (T k = start; k < bound; ++k) body`; `k` may be declared outside."""

    node: Node
    variable: Variable
    start: Node
    bound: Node
    inclusive: bool
    """True for `k <= bound`."""
    body: Node

    @property
    def line(self) -> int:
        """Line of the loop, from 1."""
        return self.node.start_point[0] + 1

    @property
    def sign(self) -> str:
        """Comparison sign of its condition."""
        return "<=" if self.inclusive else "<"

    def contains(self, node: Node) -> bool:
        """True if `node` lies in this loop."""
        return self.node.start_byte <= node.start_byte and node.end_byte <= self.node.end_byte

    def declares(self, v: Variable) -> bool:
        """True if a variable belongs to one iteration."""
        return v != self.variable and self.contains(v.declaration)


def counted(facts: Facts, node: Node) -> CountedLoop | None:
    """The loop, if it has this form and only its header changes its variable; else None."""
    if node.type != "for_statement":
        return None
    init, condition = node.child_by_field_name("initializer"), node.child_by_field_name("condition")
    update, body = node.child_by_field_name("update"), node.child_by_field_name("body")
    if init is None or condition is None or update is None or body is None:
        return None
    started = _start(facts, init)
    condition = strip(condition)
    if started is None or condition.type != "binary_expression":
        return None
    v, start = started
    left, right, sign = *operands(condition), operator(condition)
    if sign in (">", ">="):
        left, right, sign = right, left, {">": "<", ">=": "<="}[sign]
    if sign not in ("<", "<=") or facts.variable(strip(left)) != v or not _counts(facts, update, v):
        return None
    if v.is_pointer or v.is_array or v.is_parameter:
        return None
    of_bound = [w for n in find(right, "identifier") if (w := facts.variable(n)) is not None]
    if any(_changes_in(facts, body, w) for w in (v, *of_bound)):
        return None
    return CountedLoop(node, v, start, right, sign == "<=", body)


def _changes_in(facts: Facts, body: Node, v: Variable) -> bool:
    return any(body.start_byte <= place.start_byte < body.end_byte for place in facts.assigned(v))


def _start(facts: Facts, init: Node) -> tuple[Variable, Node] | None:
    if init.type == "declaration":
        if len(init.children_by_field_name("declarator")) != 1:
            return None
        v = next((v for v in facts.source.variables if v.declaration == init), None)
        return None if v is None or v.init is None else (v, v.init)
    if init.type != "assignment_expression" or operator(init) != "=":
        return None
    left, right = operands(init)
    v = facts.variable(left)
    return None if v is None else (v, right)


def _counts(facts: Facts, update: Node, v: Variable) -> bool:
    text = facts.source.of(update).replace(" ", "")
    return text in (f"{v.name}++", f"++{v.name}", f"{v.name}+=1", f"{v.name}={v.name}+1")


def ends_early(loop: CountedLoop) -> bool:
    """True if an iteration may end the loop, or skip the rest of its body."""
    for n in find(loop.body, "break_statement", "continue_statement", "return_statement", "goto_statement"):
        inner = any(a.type in LOOPS and a != loop.node and loop.contains(a) for a in ancestors(n))
        if not (inner and n.type in ("break_statement", "continue_statement")):
            return True
    return False


def counter_is_free(facts: Facts, loop: CountedLoop) -> bool:
    """True if nothing reads the counter after the loop: every use lies in a loop that sets it anew."""
    v = loop.variable
    if loop.contains(v.declaration):
        return True
    for n in find(facts.source.body, "identifier"):
        if facts.variable(n) != v or (
            v.declaration.start_byte <= n.start_byte and n.end_byte <= v.declaration.end_byte
        ):
            continue
        around = [counted(facts, a) for a in ancestors(n) if a.type == "for_statement"]
        if not any(a is not None and a.variable == v for a in around):
            return False
    return True
