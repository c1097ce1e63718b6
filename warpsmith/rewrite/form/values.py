"""Values in their usual form: locals of an iteration written out, casts left out that change nothing."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.form.expressions import dtype_of, one_type
from warpsmith.rewrite.reader.type_words import element_type
from warpsmith.rewrite.source.syntax_tree import LOOPS, Edit, Variable, ancestors, find, strip


def needless_casts(facts: Facts) -> Iterator[Edit]:
    """`(int)i` becomes `i` where `i` is an `int`."""
    for node in find(facts.source.body, "cast_expression"):
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        v = None if value is None else facts.variable(strip(value))
        if kind is None or v is None or find(kind, "abstract_pointer_declarator"):
            continue
        dtype, lanes = element_type(facts.source.of(kind), {})
        if dtype is not None and lanes == 1 and dtype_of(v) is dtype:
            yield Edit(node.start_byte, node.end_byte, v.name)


def places_written_out(facts: Facts) -> Iterator[Edit]:
    """`int at = row * n + i; ... x[at]` in a loop becomes `... x[row * n + i]`.

    Only integers that never change, made of what does not change either until they are used.
    """
    for v in facts.source.variables:
        uses = _uses(facts, v)
        if uses and v.init is not None:
            yield Edit(v.declaration.start_byte, v.declaration.end_byte, "")
            text = facts.source.of(v.init)
            bare = not v.init.named_children
            for n in uses:
                alone = bare or (n.parent is not None and n.parent.type == "subscript_argument_list")
                yield Edit(n.start_byte, n.end_byte, text if alone else f"({text})")


def _uses(facts: Facts, v: Variable) -> list[Node]:
    """Where a local of an iteration is used; nothing if it may not be written out."""
    d, dtype = v.declaration, dtype_of(v)
    scope = d.parent
    if (
        v.is_parameter
        or v.init is None
        or dtype is None
        or dtype.is_float
        or facts.assigned(v)
        or scope is None
    ):
        return []
    inside = facts.source.body.start_byte <= d.start_byte < facts.source.body.end_byte
    in_loop = scope.type == "compound_statement" and any(a.type in LOOPS for a in ancestors(d))
    if not inside or not in_loop or len(d.children_by_field_name("declarator")) != 1:
        return []
    if one_type(facts, v.init) is not dtype:
        return []
    uses = [n for n in find(scope, "identifier") if facts.variable(n) == v and n.start_byte > d.end_byte]
    for n in find(v.init, "identifier"):
        w = facts.variable(n)
        if w is None:
            continue  # a coordinate
        if any(scope.start_byte <= place.start_byte < scope.end_byte for place in facts.assigned(w)):
            return []
        if any(facts.source.lookup(w.name, use) != w for use in uses):
            return []
    return uses
