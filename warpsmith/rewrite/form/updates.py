"""Updates in their usual form: `i += s` instead of `i = i + s` and `i = s + i`."""

from collections.abc import Iterator

from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.form.expressions import (
    Edits,
    Spelling,
    is_plain_number,
    names_in,
)
from warpsmith.rewrite.source.syntax_tree import Edit, find, strip


def shortened(spelling: Spelling) -> Iterator[Edits]:
    """`v = v + e` and `v = e + v` become `v += e`, products alike; sums of floats keep their order.

    Only numbers on which the language defines the operators: a class may have one without the other.
    """
    facts = spelling.facts
    for node in find(facts.source.body, "assignment_expression"):
        left, right = operands(node)
        v, right = facts.variable(left), strip(right)
        if operator(node) != "=" or v is None or not is_plain_number(v):
            continue
        if right.type != "binary_expression" or operator(right) not in ("+", "*"):
            continue
        first, second = operands(right)
        other = second if facts.variable(strip(first)) == v else first
        own = first if other == second else second
        if facts.variable(strip(own)) == v and v not in names_in(facts, other):
            text = f"{facts.source.of(left)} {operator(right)}= {facts.source.of(other)}"
            yield (Edit(node.start_byte, node.end_byte, text),)
