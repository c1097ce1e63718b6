"""Loops of the form `for (T i = start; i < bound; update) body`, and the parts of their headers."""

from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.source.tree.syntax_tree import Source, Variable, contains, strip


@dataclass(frozen=True)
class ForLoop:
    """A loop from a start up to a bound."""

    node: Node
    variable: Variable
    start: Node
    bound: Node
    body: Node

    @property
    def line(self) -> int:
        """Line of the loop, from 1."""
        return self.node.start_point[0] + 1

    def contains(self, node: Node) -> bool:
        """True if `node` lies in this loop."""
        return contains(self.node, node)

    def declares(self, v: Variable) -> bool:
        """True if a variable belongs to one iteration."""
        return v != self.variable and self.contains(v.declaration)

    def first_byte(self, source: Source) -> int:
        """The loop's first byte, or that of the unroll pragma before it, which goes with the loop."""
        return (unroll_before(source, self.node) or self.node).start_byte


@dataclass(frozen=True)
class ForHeader:
    """`for (variable = start; comparison; update) body`; the variable may be declared outside."""

    variable: Variable
    start: Node
    comparison: Node
    """A binary expression."""
    update: Node
    body: Node


def unroll_before(source: Source, node: Node) -> Node | None:
    """The unroll pragma right before a node; None if there is none."""
    previous = node.prev_sibling
    if previous is None or previous.type != "preproc_call":
        return None
    return previous if "unroll" in source.of(previous) else None


def header_of(facts: Facts, loop: Node) -> ForHeader | None:
    """The parts of a `for` that sets one variable and goes on while a comparison holds; else None."""
    fields = ("initializer", "condition", "update", "body")
    parts = [part for f in fields if (part := loop.child_by_field_name(f)) is not None]
    if len(parts) < len(fields):
        return None
    init, condition, update, body = parts
    started, comparison = _start(facts, init), strip(condition)
    if started is None or comparison.type != "binary_expression":
        return None
    return ForHeader(*started, comparison, update, body)


def _start(facts: Facts, init: Node) -> tuple[Variable, Node] | None:
    """The only variable that the first part of a header sets, and the value."""
    if init.type == "declaration":
        if len(init.children_by_field_name("declarator")) != 1:
            return None
        v = next(iter(facts.declared_by(init)), None)
        return None if v is None or v.init is None else (v, v.init)
    if init.type != "assignment_expression" or operator(init) != "=":
        return None
    left, right = operands(init)
    v = facts.variable(left)
    return None if v is None else (v, right)
