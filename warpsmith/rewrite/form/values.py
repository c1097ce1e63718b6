"""Values in their usual form: locals written out, global indices by name, needless casts left out."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.rewrite.analysis.kernel_facts import AXES, Facts
from warpsmith.rewrite.analysis.operations import operands, operator, strip_index
from warpsmith.rewrite.form.expressions import (
    Spelling,
    coordinate_text,
    dtype_of,
    one_type,
    removed,
    stays,
)
from warpsmith.rewrite.reader.type_words import element_type
from warpsmith.rewrite.source.syntax_tree import Edit, Variable, ancestors, find, strip

_OF_32_BITS = (Dtype.INT32, Dtype.UINT32)
_OF_64_BITS = (Dtype.INT64, Dtype.UINT64)


def needless_casts(spelling: Spelling) -> Iterator[Edit]:
    """`(int)i` becomes `i` where `i` is an `int`."""
    facts = spelling.facts
    for node in find(facts.source.body, "cast_expression"):
        dtype, value = _cast_to(facts, node)
        v = None if value is None else facts.variable(strip(value))
        if v is not None and dtype is not None and dtype_of(v) is dtype:
            yield Edit(node.start_byte, node.end_byte, v.name)


def narrow_indices(spelling: Spelling) -> Iterator[Edit]:
    """`x[(size_t)row * n + i]` becomes `x[row * n + i]` where an `int` numbers the elements.

    Sums, differences and products keep their value, which an `int` holds, whatever carries are dropped.
    """
    facts = spelling.facts
    if not spelling.is_small:
        return
    for node in find(facts.source.body, "subscript_expression"):
        listed = node.child_by_field_name("indices")
        index = None if listed is None else strip_index(listed)
        if index is None or not _is_ring(facts, index):
            continue
        for cast in find(index, "cast_expression"):
            value = cast.child_by_field_name("value")
            assert value is not None
            yield Edit(cast.start_byte, cast.end_byte, facts.source.of(value))


def _is_ring(facts: Facts, node: Node) -> bool:
    """True for sums, differences and products of numbers of 32 bits, some of them widened."""
    node = strip(node)
    match node.type:
        case "number_literal":
            return facts.source.of(node).isdigit()
        case "identifier":
            v = facts.variable(node)
            return v is not None and dtype_of(v) in _OF_32_BITS
        case "field_expression":
            return facts.coordinate(node) is not None
        case "binary_expression" if operator(node) in ("+", "-", "*"):
            return all(_is_ring(facts, o) for o in operands(node))
        case "cast_expression":
            dtype, value = _cast_to(facts, node)
            return value is not None and dtype in _OF_64_BITS and _is_ring(facts, value)
    return False


def _cast_to(facts: Facts, node: Node) -> tuple[Dtype | None, Node | None]:
    """The type of a cast to a number, and what is cast."""
    kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    if kind is None or value is None or find(kind, "abstract_pointer_declarator"):
        return None, None
    dtype, lanes = element_type(facts.source.of(kind), {})
    return (dtype, value) if lanes == 1 else (None, None)


def places_written_out(spelling: Spelling) -> Iterator[Edit]:
    """`int at = row * n + i; ... x[at]` becomes `... x[row * n + i]`.

    Only integers that never change, made of what does not change either until they are used.
    """
    facts = spelling.facts
    for v in facts.source.variables:
        uses = _uses(facts, v)
        if uses and v.init is not None:
            yield removed(v.declaration)
            text = facts.source.of(v.init)
            bare = not v.init.named_children
            for n in uses:
                alone = bare or (n.parent is not None and n.parent.type == "subscript_argument_list")
                yield Edit(n.start_byte, n.end_byte, text if alone else f"({text})")


def _uses(facts: Facts, v: Variable) -> list[Node]:
    """Where a local is used; nothing if it may not be written out."""
    d, dtype = v.declaration, dtype_of(v)
    scope = d.parent
    if v.is_parameter or v.init is None or dtype is None or dtype.is_float or facts.assigned(v):
        return []
    inside = facts.source.body.start_byte <= d.start_byte < facts.source.body.end_byte
    if scope is None or scope.type != "compound_statement" or not inside:
        return []
    if len(d.children_by_field_name("declarator")) != 1 or facts.coordinate(v.init):
        return []
    uses = [n for n in find(scope, "identifier") if facts.variable(n) == v and n.start_byte > d.end_byte]
    return uses if one_type(facts, v.init) is dtype and stays(facts, v.init, scope, uses) else []


def unused_locals(spelling: Spelling) -> Iterator[Edit]:
    """Locals that nothing uses go, if computing them does nothing else."""
    facts = spelling.facts
    for v in facts.source.variables:
        d, scope = v.declaration, v.declaration.parent
        inside = facts.source.body.start_byte <= d.start_byte < facts.source.body.end_byte
        if not inside or scope is None or scope.type != "compound_statement" or v.is_shared:
            continue
        alone = len(d.children_by_field_name("declarator")) == 1 and dtype_of(v) is not None
        if not alone or "volatile" in facts.source.of(d) or not _has_no_effect(facts, d):
            continue
        if all(facts.variable(n) != v or n.end_byte <= d.end_byte for n in find(scope, "identifier")):
            yield removed(d)


def _has_no_effect(facts: Facts, node: Node) -> bool:
    if find(node, "assignment_expression", "update_expression", "subscript_expression", "pointer_expression"):
        return False
    return all(facts.coordinate(c) is not None for c in find(node, "call_expression"))


def global_indices(spelling: Spelling) -> Iterator[Edit]:
    """`blockIdx.x * size + threadIdx.x` is written with the block's extent, whatever local holds that.

    Only where the type is the same, or a local takes the value.
    """
    facts = spelling.facts
    for node in find(facts.source.body, "binary_expression"):
        name = facts.coordinate(node)
        if name is None or name[:-2] not in ("gid", "gsize") or _inside_of_one(facts, node):
            continue
        text = coordinate_text(facts, name)
        if facts.source.of(node) != text and (_is_taken(facts, node) or _has_own(node)):
            yield Edit(node.start_byte, node.end_byte, text)


def _inside_of_one(facts: Facts, node: Node) -> bool:
    parents = (a for a in ancestors(node) if a.type == "binary_expression")
    return any(facts.coordinate(a) for a in parents)


def _is_taken(facts: Facts, node: Node) -> bool:
    """True if a value of 32 bits is all that is made of an expression."""
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        node, parent = parent, parent.parent
    if parent is None or parent.type != "init_declarator":
        return False
    taker = next((v for v in facts.source.variables if v.init == node), None)
    return taker is not None and dtype_of(taker) in _OF_32_BITS


def _has_own(node: Node) -> bool:
    """True if an operand is a coordinate of the language itself, whose type wins."""
    words = find(node, "field_expression", "call_expression")
    return any(
        not any(a.type == "cast_expression" and node.start_byte <= a.start_byte for a in ancestors(w))
        for w in words
    )


def named_indices(spelling: Spelling) -> Iterator[Edit]:
    """A global index that stands in an expression is declared at the kernel's top and used by name."""
    facts = spelling.facts
    body = facts.source.body
    made: dict[str, str] = {}
    for node in find(body, "binary_expression", "call_expression"):
        name = facts.coordinate(node)
        if name is None or not name.startswith("gid.") or _inside_of_one(facts, node) or _is_value(node):
            continue
        if facts.source.of(node) != coordinate_text(facts, name):
            continue
        local = made.setdefault(name, _free_name(facts, f"global_{name[-1]}"))
        yield Edit(node.start_byte, node.end_byte, local)
    kind = "size_t" if facts.source.backend is Backend.OPENCL else "unsigned int"
    declared = [
        f"const {kind} {made[n]} = {coordinate_text(facts, n)};" for a in AXES if (n := f"gid.{a}") in made
    ]
    if declared:
        yield Edit(body.start_byte + 1, body.start_byte + 1, "\n  " + " ".join(declared))


def _is_value(node: Node) -> bool:
    """True for the whole value of a declaration."""
    parent = node.parent
    while parent is not None and parent.type in ("parenthesized_expression", "cast_expression"):
        node, parent = parent, parent.parent
    return parent is not None and parent.type == "init_declarator"


def _free_name(facts: Facts, wish: str) -> str:
    while wish in facts.source.text:
        wish += "_"
    return wish
