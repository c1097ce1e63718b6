"""Checks that the iterations of a sequential loop write disjoint elements."""

from tree_sitter import Node

from warpsmith.errors import ExpressionError
from warpsmith.rewrite.analysis.draft import Draft
from warpsmith.rewrite.analysis.kernel_facts import Access, Facts
from warpsmith.rewrite.analysis.loops.counted_loops import CountedLoop
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.analysis.values.uniform_values import names_in
from warpsmith.rewrite.source.syntax_tree import find, strip


def separate_writes(draft: Draft, loop: CountedLoop, accesses: list[Access]) -> str | None:
    """The reason why iterations may conflict in memory; None if each keeps to its own elements.

    Args:
        accesses: accesses of the body to memory that outlives an iteration.
    """
    facts = draft.facts
    for w in (a for a in accesses if a.writes):
        where = w.where(facts.source)
        if w.index is None or w.node.type != "subscript_expression":
            return f"it writes {where}"
        if any(a.root == w.root and a.where(facts.source) != where for a in accesses):
            return f"it writes {where} and uses other elements of the same buffer"
        names = names_in(facts, w.node) - {loop.variable.name}
        if any((v := facts.source.lookup(n, w.node)) is not None and loop.declares(v) for n in names):
            return f"{where} differs in more than the counter"
        others = [n for n in find(w.node, "identifier") if facts.variable(n) != loop.variable]
        if any(loop.contains(place) for n in others for place in _changes(facts, n)):
            return f"the address of {where} changes"
        if not _own(draft, w.index, loop.variable.name):
            return f"{where} may be the same element in two iterations"
        if list(facts.accesses(w.index)):
            return f"the address of {where} is read from memory"
    return None


def _changes(facts: Facts, identifier: Node) -> list[Node]:
    v = facts.variable(identifier)
    return [] if v is None else facts.assigned(v)


def _own(draft: Draft, index: Node, name: str) -> bool:
    """True if an index differs in every iteration: a sum with `k`, or `k * m` with m not 0."""
    index, source = strip(index), draft.source
    if source.of(index) == name:
        return True
    if index.type != "binary_expression":
        return False
    left, right = operands(index)
    has = [name in names_in(draft.facts, o) for o in (left, right)]
    if has[0] == has[1]:
        return False
    inner, other = (left, right) if has[0] else (right, left)
    if operator(index) == "+" or (operator(index) == "-" and has[0]):
        return _own(draft, inner, name)
    return operator(index) == "*" and _own(draft, inner, name) and _never_zero(draft, other)


def _never_zero(draft: Draft, node: Node) -> bool:
    """True if a factor is a number, or arguments that are not 0 in any workload of the job."""
    node = strip(node)
    if node.type == "number_literal":
        return draft.source.of(node).strip("uUlL0x") != ""
    if node.type == "binary_expression" and operator(node) == "*":
        return all(_never_zero(draft, o) for o in operands(node))
    v = draft.facts.variable(node)
    if v is None or not v.is_parameter or draft.facts.assigned(v):
        return False
    order = [p.name for p in draft.source.variables if p.is_parameter and p.scope == draft.source.kernel]
    arguments = draft.kernel.arguments
    if v.name not in order or order.index(v.name) >= len(arguments):
        return False
    value = arguments[order.index(v.name)].value
    try:
        found = [value.evaluate(w.scope()) for w in draft.job.workloads] if value is not None else [0]
    except ExpressionError:
        return False
    return all(n != 0 for n in found)
