"""Elements of memory in their usual form: `x[e]` instead of `*(x + e)`, `(x + a)[b]` and moved pointers."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import operator, strip_index
from warpsmith.rewrite.form.expressions import (
    Edits,
    Spelling,
    as_operand,
    block_of,
    is_integer,
    is_seen_everywhere,
    is_whole_buffer,
    locals_of,
    removed,
    stays,
    terms_of,
    uses_of,
)
from warpsmith.rewrite.source.syntax_tree import Edit, Variable, find, strip


def subscripts(spelling: Spelling) -> Iterator[Edits]:
    """Every element whose place is a sum with the name of one pointer.

    The sum of integers may wrap where that of pointers does not; it is right again for every element that a
    buffer of less than 2**31 elements has, counted from its first.
    """
    facts = spelling.facts
    if not spelling.is_small:
        return
    for node in find(facts.source.body, "pointer_expression", "subscript_expression"):
        place = _sum_of_place(node)
        found = None if place is None else _pointer_and_rest(facts, place)
        if place is None or found is None:
            continue
        pointer, rest = found
        single = sum(1 for _ in terms_of(place)) == 2 and node.type == "pointer_expression"
        index = _index(facts, node, rest) if single or is_whole_buffer(facts, pointer) else None
        if index is not None:
            yield (Edit(node.start_byte, node.end_byte, f"{pointer.name}[{index}]"),)


def _sum_of_place(element: Node) -> Node | None:
    """The sum whose value an element's place, or the place from which it is counted, is."""
    base = element.child_by_field_name("argument")
    place = None if base is None else strip(base)
    is_sum = place is not None and place.type == "binary_expression" and operator(place) in ("+", "-")
    return place if is_sum else None


def _index(facts: Facts, element: Node, rest: str) -> str | None:
    """The index of `*(x + rest)` or `(x + rest)[own]`; None for `&`, and for several indices."""
    if element.type == "pointer_expression":
        return rest if operator(element) == "*" else None
    listed = element.child_by_field_name("indices")
    own = None if listed is None else strip_index(listed)
    return None if own is None or own == listed else _sum(rest, as_operand(facts, own))


def pointers_written_out(spelling: Spelling) -> Iterator[Edits]:
    """`const float *p = x + row * n; ... p[i]` becomes `... x[row * n + i]`."""
    facts = spelling.facts
    for v in locals_of(facts) if spelling.is_small else ():
        found = _moved_pointer(facts, v)
        if found is None:
            continue
        name, before, uses = found
        edits = [removed(facts, v.declaration)]
        for element, own in uses:
            index = _sum(before, as_operand(facts, own)) if before else facts.source.of(own)
            edits.append(Edit(element.start_byte, element.end_byte, f"{name}[{index}]"))
        yield tuple(edits)


def _moved_pointer(facts: Facts, v: Variable) -> tuple[str, str, list[tuple[Node, Node]]] | None:
    """What a local points into, the sum by which it is moved, and its elements with their indices."""
    block, moved = block_of(v), _counted_from(facts, v)
    if block is None or v.init is None or moved is None or not is_seen_everywhere(facts, v):
        return None
    uses = uses_of(facts, v, block)
    elements = [_element_of(n) for n in uses]
    if not uses or None in elements or not stays(facts, strip(v.init), block, uses):
        return None
    return (moved[0].name, moved[1], [e for e in elements if e is not None])


def _counted_from(facts: Facts, v: Variable) -> tuple[Variable, str] | None:
    """The buffer into which a local that never moves points, and the sum by which it is moved."""
    if not v.is_pointer or v.is_array or v.is_reference or v.init is None or facts.assigned(v):
        return None
    init = strip(v.init)
    # What memory holds may change, and is not read twice.
    if find(init, "subscript_expression", "pointer_expression"):
        return None
    whole = facts.variable(init)
    moved = (whole, "") if whole is not None else _pointer_and_rest(facts, init)
    return moved if moved and moved[0].kind == v.kind and is_whole_buffer(facts, moved[0]) else None


def _sum(first: str, second: str) -> str:
    return f"{first} - {second[1:]}" if second.startswith("-") else f"{first} + {second}"


def _element_of(identifier: Node) -> tuple[Node, Node] | None:
    """The element `p[i]` and its index, of the identifier `p`."""
    element = identifier.parent
    listed = None if element is None else element.child_by_field_name("indices")
    if element is None or listed is None or element.child_by_field_name("argument") != identifier:
        return None
    index = strip_index(listed)
    return None if index == listed else (element, index)


def _pointer_and_rest(facts: Facts, place: Node) -> tuple[Variable, str] | None:
    """The pointer and the sum of the other terms."""
    pointers: list[Variable] = []
    rest = ""
    for sign, term in terms_of(place):
        v = facts.variable(term)
        if v is not None and (v.is_pointer or v.is_array):
            if sign == "-":
                return None
            pointers.append(v)
            continue
        # Only integers can be moved between sums: `&x[0]` and calls may be pointers themselves.
        if not _is_index(facts, term) or (sign == "-" and not rest):
            return None
        text = as_operand(facts, term)
        rest = f"{rest} {sign} {text}" if rest else text
    return (pointers[0], rest) if len(pointers) == 1 and rest else None


def _is_index(facts: Facts, term: Node) -> bool:
    term = strip(term)
    if term.type == "cast_expression":
        value = term.child_by_field_name("value")
        return (
            value is not None
            and "*" not in facts.source.of(term).split(")", 1)[0]
            and _is_index(facts, value)
        )
    if term.type == "binary_expression" and operator(term) in ("+", "-", "*", "/", "%"):
        sides = (term.child_by_field_name("left"), term.child_by_field_name("right"))
        return all(side is not None and _is_index(facts, side) for side in sides)
    if term.type == "subscript_expression":
        base = term.child_by_field_name("argument")
        v = None if base is None else facts.variable(strip(base))
        return v is not None and (v.is_pointer or v.is_array) and "*" not in v.type_text
    return is_integer(facts, term)
