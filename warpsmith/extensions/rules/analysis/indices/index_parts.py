"""Parts of an index: those that move it by neighbours, those that move it by strides, and values read from
memory."""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import (
    assignment_to,
    both_ways,
    element_of,
    operands,
    operator,
)
from warpsmith.source.tree.syntax_tree import Variable, contains, strip, walk

_DEPTH = 24
_PLACES = {"bid": ("bid",), "tid": ("tid",), "gid": ("bid", "tid")}
"""Places that move each coordinate of a thread: a global index is made of two."""


@dataclass(frozen=True)
class IndexParts:
    """Coordinates of the thread (`tid.x`, `bid.y`) and counters of loops (`k`) of an index, by factor."""

    near: frozenset[str] = frozenset()
    """Parts with a factor that is the same in every launch: a number, a macro, an extent of the block."""
    far: frozenset[str] = frozenset()
    """Parts with an argument of the kernel as a factor: a stride."""
    other: frozenset[str] = frozenset()
    """Parts inside of calls, quotients and conditions."""
    read: frozenset[str] = frozenset()
    """Buffers from which a part of the index was read."""

    @property
    def places(self) -> frozenset[str]:
        """All coordinates and counters."""
        return self.near | self.far | self.other


def parts_of(facts: Facts, *nodes: Node | None) -> IndexParts:
    """The parts of a sum of expressions, such as the index and the pointer of an access."""
    found: dict[str, set[str]] = {"near": set(), "far": set(), "other": set(), "read": set()}
    for node in nodes:
        if node is not None:
            for kind, name in _parts(facts, node, "near", _DEPTH):
                found[kind].add(name)
    return IndexParts(**{kind: frozenset(names) for kind, names in found.items()})


def _parts(facts: Facts, node: Node, kind: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth == 0:
        return
    node = strip(node)
    coordinate = facts.coordinate(node)
    if coordinate is not None:
        what, _, axis = coordinate.partition(".")
        yield from ((kind, f"{place}.{axis}") for place in _PLACES.get(what, ()))
    elif node.type == "identifier":
        yield from _of_variable(facts, node, kind, depth)
    else:
        yield from _read_by(facts, node)
        for part, its_kind in _made_of(facts, node, kind, depth):
            yield from _parts(facts, part, its_kind, depth - 1)


def _made_of(facts: Facts, node: Node, kind: str, depth: int) -> Iterator[tuple[Node, str]]:
    """The expressions that an expression of some kind is made of, each with its own kind."""
    match node.type:
        case "binary_expression" if operator(node) in "+-":
            yield from ((operand, kind) for operand in operands(node))
        case "binary_expression" if operator(node) == "*":
            for factor, scale in both_ways(node):
                far = kind == "near" and _is_argument(facts, scale, depth)
                yield factor, "far" if far else kind
        case "cast_expression" | "pointer_expression":
            yield from ((value, kind) for value in _pointed(facts, node))
        case _:
            yield from ((child, "other") for child in node.named_children)


def _pointed(facts: Facts, node: Node) -> tuple[Node, ...]:
    """Operands of a cast or a pointer expression: `p` and `i` of `&p[i]`, which reads nothing."""
    value = node.child_by_field_name("value") or node.child_by_field_name("argument")
    inner = None if value is None else strip(value)
    if inner is None:
        return ()
    if not facts.source.of(node).startswith("&"):
        return (inner,)
    return element_of(inner) or (inner,)


def _read_by(facts: Facts, node: Node) -> Iterator[tuple[str, str]]:
    """The buffer of which a value is an element."""
    base = node.child_by_field_name("argument") if node.type == "subscript_expression" else None
    root = None if base is None else facts.root(base)
    if root is not None and root.is_parameter and not root.is_shared:
        yield "read", root.name


def _of_variable(facts: Facts, node: Node, kind: str, depth: int) -> Iterator[tuple[str, str]]:
    v = facts.variable(node)
    if v is None or v.is_parameter or v.is_array or v.scope is None:
        return
    value = _last_value(facts, v, node)
    if value is v.init and facts.assigned(v) and not v.is_pointer:
        yield kind, v.name
    if value is not None and not contains(value, node):
        yield from _parts(facts, value, kind, depth - 1)


def _last_value(facts: Facts, v: Variable, at: Node) -> Node | None:
    """The value that a local was last given before a place, in the order of the text: by a statement, else by
    its declaration."""
    value = v.init
    for place in facts.assigned(v):
        assignment, statement = assignment_to(place) or (None, None)
        if assignment is None or statement is None or statement.type != "expression_statement":
            continue
        if operator(assignment) == "=" and assignment.end_byte <= at.start_byte:
            value = operands(assignment)[1]
    return value


def _is_argument(facts: Facts, node: Node, depth: int) -> bool:
    """True if a factor is known at the launch only."""
    for n in walk(node):
        v = facts.variable(n)
        if v is None or v.is_array or v.is_pointer:
            continue
        if v.is_parameter or (_follows(v, n) and depth and _is_argument(facts, v.init or n, depth - 1)):
            return True
    return False


def _follows(v: Variable, node: Node) -> bool:
    return v.init is not None and v.scope is not None and not contains(v.init, node)
