"""Elements of memory in their usual form: `p[e]` instead of `*(p + e)` and `(p + a)[b]`."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import operator, strip_index
from warpsmith.rewrite.form.expressions import as_operand, is_integer, terms_of
from warpsmith.rewrite.source.syntax_tree import Edit, find, strip


def subscripts(facts: Facts) -> Iterator[Edit]:
    """Every element whose place is a sum with the name of one pointer.

    The sum of integers may wrap where that of pointers does not; it is right again for every element that a
    buffer of less than 2**31 elements has.
    """
    for node in find(facts.source.body, "pointer_expression", "subscript_expression"):
        base = node.child_by_field_name("argument")
        if base is None or (node.type == "pointer_expression" and operator(node) != "*"):
            continue
        place = strip(base)
        if place.type != "binary_expression" or operator(place) not in ("+", "-"):
            continue
        found = _pointer_and_rest(facts, place)
        if found is None:
            continue
        pointer, index = found
        if node.type == "subscript_expression":
            listed = node.child_by_field_name("indices")
            own = None if listed is None else strip_index(listed)
            if own is None or own == listed:
                continue
            index = f"{index} + {as_operand(facts, own)}"
        yield Edit(node.start_byte, node.end_byte, f"{pointer}[{index}]")


def _pointer_and_rest(facts: Facts, place: Node) -> tuple[str, str] | None:
    """The pointer's name and the sum of the other terms."""
    pointers, rest = [], ""
    for sign, term in terms_of(place):
        v = facts.variable(term)
        if v is not None and (v.is_pointer or v.is_array):
            if sign == "-":
                return None
            pointers.append(facts.source.of(term))
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
