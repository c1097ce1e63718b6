"""What an index is made of: what moves it by neighbours, what by strides, and what was read from memory."""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import operands, operator, strip_index
from warpsmith.rewrite.source.syntax_tree import Variable, strip, walk

_DEPTH = 24


@dataclass(frozen=True)
class IndexParts:
    """Coordinates of the thread (`tid.x`, `bid.y`) and counters of loops (`k`) of an index, by factor."""

    near: frozenset[str] = frozenset()
    """Those with a factor that is the same in every launch: a number, a macro, an extent of the block."""
    far: frozenset[str] = frozenset()
    """Those with an argument of the kernel as a factor: a stride."""
    other: frozenset[str] = frozenset()
    """Those inside of calls, quotients and conditions."""
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
    node = strip(node)
    if depth == 0:
        return
    coordinate = facts.coordinate(node)
    if coordinate is not None:
        what, _, axis = coordinate.partition(".")
        for part in ("bid", "tid") if what == "gid" else (what,):
            if part in ("bid", "tid"):
                yield kind, f"{part}.{axis}"
        return
    match node.type:
        case "identifier":
            yield from _of_variable(facts, node, kind, depth)
        case "binary_expression" if operator(node) in "+-":
            for operand in operands(node):
                yield from _parts(facts, operand, kind, depth - 1)
        case "binary_expression" if operator(node) == "*":
            left, right = operands(node)
            for factor, scale in ((left, right), (right, left)):
                far = kind == "near" and _is_argument(facts, scale, depth)
                yield from _parts(facts, factor, "far" if far else kind, depth - 1)
        case "cast_expression" | "pointer_expression":
            for value in _pointed(facts, node):
                yield from _parts(facts, value, kind, depth - 1)
        case "subscript_expression":
            yield from _of_element(facts, node, depth)
        case _:
            for child in node.named_children:
                yield from _parts(facts, child, "other", depth - 1)


def _pointed(facts: Facts, node: Node) -> tuple[Node, ...]:
    """What a cast or a pointer expression is about: of `&p[i]`, which reads nothing, `p` and `i`."""
    value = node.child_by_field_name("value") or node.child_by_field_name("argument")
    inner = None if value is None else strip(value)
    if inner is None:
        return ()
    if not facts.source.of(node).startswith("&"):
        return (inner,)
    base, indices = inner.child_by_field_name("argument"), inner.child_by_field_name("indices")
    return (inner,) if base is None or indices is None else (base, strip_index(indices))


def _of_element(facts: Facts, node: Node, depth: int) -> Iterator[tuple[str, str]]:
    """The parts of a value that is an element of an array."""
    base, indices = node.child_by_field_name("argument"), node.child_by_field_name("indices")
    root = None if base is None else facts.root(base)
    if root is not None and root.is_parameter and not root.is_shared:
        yield "read", root.name
    for part in (base, indices):
        if part is not None:
            yield from _parts(facts, part, "other", depth - 1)


def _of_variable(facts: Facts, node: Node, kind: str, depth: int) -> Iterator[tuple[str, str]]:
    v = facts.variable(node)
    if v is None or v.is_parameter or v.is_array or v.scope is None:
        return
    value = _last_value(facts, v, node)
    if value is v.init and facts.assigned(v) and not v.is_pointer:
        yield kind, v.name
    if value is not None and not _holds(value, node):
        yield from _parts(facts, value, kind, depth - 1)


def _last_value(facts: Facts, v: Variable, at: Node) -> Node | None:
    """What a local was last set to before a place, as the text goes: by a statement, else where declared."""
    value = v.init
    for place in facts.assigned(v):
        statement = place.parent
        top = None if statement is None else statement.parent
        if statement is None or top is None or top.type != "expression_statement":
            continue
        if operator(statement) == "=" and statement.end_byte <= at.start_byte:
            value = operands(statement)[1]
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
    return v.init is not None and v.scope is not None and not _holds(v.init, node)


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte < outer.end_byte
