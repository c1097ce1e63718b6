"""Sums and products in their usual form: `row * n + i`, what moves first, and numbers last."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import element_of, operands, operator
from warpsmith.rewrite.form.expressions import (
    Edits,
    Spelling,
    as_operand,
    is_integer,
    moves,
    one_type,
    terms_of,
)
from warpsmith.rewrite.source.syntax_tree import Edit, find

_ALONE = ("identifier", "number_literal", "field_expression", "call_expression", "subscript_expression")
_AROUND = ("binary_expression", "subscript_argument_list", "init_declarator", "parenthesized_expression")


def ordered(spelling: Spelling) -> Iterator[Edits]:
    """Operands of `+` and `*` in indices change places where that brings them into order.

    Only the two operands of one operator, which keeps every type and every value; of numbers of one type also
    the terms of a whole sum.
    """
    facts = spelling.facts
    for index in _indices(facts):
        for node in find(index, "binary_expression"):
            terms = [term for _, term in terms_of(node)] if operator(node) == "+" else []
            if len(terms) > 2 and one_type(facts, node) and _is_all_plus(node):
                right_order = sorted(terms, key=_term)
                if right_order != terms:
                    text = " + ".join(as_operand(facts, term) for term in right_order)
                    yield (Edit(node.start_byte, node.end_byte, text),)
                continue
            left, right = operands(node)
            if operator(node) == "*":
                wrong = _factor(facts, left) > _factor(facts, right)
            else:
                wrong = operator(node) == "+" and _term(left) > _term(right)
            if wrong and _is_whole(node, left) and _is_whole(node, right):
                text = f"{facts.source.of(right)} {operator(node)} {facts.source.of(left)}"
                yield (Edit(node.start_byte, node.end_byte, text),)


def bare_operands(spelling: Spelling) -> Iterator[Edits]:
    """Parentheses around a name, a number, an element or a coordinate go."""
    facts = spelling.facts
    for node in find(facts.source.body, "parenthesized_expression"):
        inner, around = node.named_children[0] if node.named_children else None, node.parent
        if inner is not None and inner.type in _ALONE and around is not None and around.type in _AROUND:
            yield (Edit(node.start_byte, node.end_byte, facts.source.of(inner)),)


def _indices(facts: Facts) -> Iterator[Node]:
    for node in find(facts.source.body, "subscript_expression"):
        element = element_of(node)
        if element is not None and is_integer(facts, element[1]):
            yield element[1]


def _factor(facts: Facts, node: Node) -> tuple[bool, bool, str]:
    number = node.type == "number_literal"
    return (number, not moves(facts, node), facts.source.of(node))


def _term(node: Node) -> tuple[bool, bool]:
    """Numbers behind everything else, and what has no product behind what has one."""
    products = [n for n in find(node, "binary_expression") if operator(n) == "*"]
    return node.type == "number_literal", not products


def _is_whole(node: Node, operand: Node) -> bool:
    """True for an operand that stays together on either side of the operator."""
    if operand.type != "binary_expression":
        return operand.type not in ("conditional_expression", "assignment_expression")
    return operator(node) == "+" and operator(operand) in ("*", "/", "%")


def _is_all_plus(node: Node) -> bool:
    return all(sign == "+" for sign, _ in terms_of(node))
