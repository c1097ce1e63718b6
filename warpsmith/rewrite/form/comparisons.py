"""Comparisons in their usual form: what moves on the left, `<` and `>=` instead of `<=`, `>` and `!`."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.domain.dtype import Dtype
from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.form.expressions import (
    OF_32_BITS,
    Edits,
    Spelling,
    cast_of,
    dtype_of,
    is_extent,
    is_integer,
    is_nonnegative,
    is_one,
    is_signed_int,
    moves,
    uncast,
)
from warpsmith.rewrite.source.syntax_tree import LOOPS, Edit, Variable, find, strip

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_DENIED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}
_OTHER = {"&&": "||", "||": "&&"}


def denials(spelling: Spelling) -> Iterator[Edits]:
    """`!(a >= b)` of integers becomes `a < b`; of floats it is true for a NaN, and stays.

    `!(a < b && c < d)` becomes `a >= b || c >= d`, which asks the same in the same order.
    """
    facts = spelling.facts
    for node in find(facts.source.body, "unary_expression"):
        inner = node.child_by_field_name("argument")
        if operator(node) != "!" or inner is None or inner.type != "parenthesized_expression":
            continue
        text = _denied(facts, strip(inner))
        if text is not None:
            parent = node.parent
            whole = parent is not None and parent.type in ("parenthesized_expression", "condition_clause")
            yield (Edit(node.start_byte, node.end_byte, text if whole else f"({text})"),)


def _denied(facts: Facts, node: Node, around: str = "") -> str | None:
    """The opposite of a condition in words of its own; None if that is not sure to be the same."""
    node = strip(node)
    if node.type == "unary_expression":
        return _denied_before(facts, node)
    if node.type != "binary_expression":
        return None
    left, right = operands(node)
    sign = operator(node)
    if sign in _DENIED and is_integer(facts, left) and is_integer(facts, right):
        return f"{facts.source.of(left)} {_DENIED[sign]} {facts.source.of(right)}"
    if sign not in _OTHER:
        return None
    parts = [_denied(facts, o, _OTHER[sign]) for o in (left, right)]
    if None in parts:
        return None
    text = f" {_OTHER[sign]} ".join(p for p in parts if p is not None)
    return f"({text})" if around == "&&" and _OTHER[sign] == "||" else text


def _denied_before(facts: Facts, node: Node) -> str | None:
    """The condition in parentheses behind a `!`; of what is no condition, the `!` makes one."""
    inner = node.child_by_field_name("argument")
    if operator(node) != "!" or inner is None or inner.type != "parenthesized_expression":
        return None
    asked = strip(inner)
    is_truth = asked.type == "binary_expression" and operator(asked) in (*_DENIED, *_OTHER)
    return facts.source.of(inner) if is_truth else None


def without_sign_casts(spelling: Spelling) -> Iterator[Edits]:
    """`(unsigned)i < (unsigned)n` becomes `i < n` where neither is ever negative."""
    facts = spelling.facts
    for node in _comparisons(facts):
        inner = [_widened(facts, o) for o in operands(node)]
        # One side alone decides how the other is compared.
        if any(v is not None for v in inner) and all(
            is_nonnegative(spelling, v or o) for v, o in zip(inner, operands(node), strict=True)
        ):
            yield tuple(
                Edit(whole.start_byte, whole.end_byte, facts.source.of(value))
                for value, whole in zip(inner, operands(node), strict=True)
                if value is not None
            )


def _widened(facts: Facts, node: Node) -> Node | None:
    """The number of 32 bits that a cast makes unsigned or wider."""
    to, value = cast_of(facts, strip(node))
    own = None if value is None else facts.variable(strip(value))
    wide = to in (Dtype.UINT32, Dtype.INT64, Dtype.UINT64)
    return value if wide and own is not None and dtype_of(own) in OF_32_BITS else None


def turned(spelling: Spelling) -> Iterator[Edits]:
    """`n > i` becomes `i < n` where `i` moves and `n` does not, or `i` counts the loop."""
    facts = spelling.facts
    for node in _comparisons(facts):
        left, right = operands(node)
        counter = _counter(facts, node)
        if counter is not None:
            turn = facts.variable(strip(right)) == counter and facts.variable(strip(left)) != counter
        else:
            turn = moves(facts, right) and not moves(facts, left)
        if turn:
            text = f"{facts.source.of(right)} {_TURNED[operator(node)]} {facts.source.of(left)}"
            yield (Edit(node.start_byte, node.end_byte, text),)


def without_equality(spelling: Spelling) -> Iterator[Edits]:
    """`i <= n - 1` and `i + 1 <= n` become `i < n`; `i > n - 1` becomes `i >= n`.

    For unsigned numbers `n - 1` may be the largest of all: then only where `n` is an extent, which is not 0.
    """
    facts = spelling.facts
    for node in _comparisons(facts):
        left, right = operands(node)
        sign = {"<=": "<", ">": ">="}.get(operator(node))
        whole = None if sign is None else _without_one(facts, right, "-")
        signed = is_signed_int(facts, left) and is_signed_int(facts, right)
        if whole is not None and (
            signed or (is_extent(spelling, whole) and is_nonnegative(spelling, uncast(facts, left)))
        ):
            text = f"{facts.source.of(left)} {sign} {facts.source.of(whole)}"
            yield (Edit(node.start_byte, node.end_byte, text),)
            continue
        more = _without_one(facts, left, "+") if sign is not None and signed else None
        if more is not None:
            text = f"{facts.source.of(more)} {sign} {facts.source.of(right)}"
            yield (Edit(node.start_byte, node.end_byte, text),)


def _without_one(facts: Facts, node: Node, sign: str) -> Node | None:
    node = strip(node)
    if node.type != "binary_expression" or operator(node) != sign:
        return None
    left, right = operands(node)
    return left if is_one(facts, right) else None


def _comparisons(facts: Facts) -> Iterator[Node]:
    for node in find(facts.source.body, "binary_expression"):
        if operator(node) not in _TURNED:
            continue
        if not any(strip(o) == o and _is_chained(o) for o in operands(node)):
            yield node


def _is_chained(node: Node) -> bool:
    return node.type == "binary_expression" and operator(node) in (*_TURNED, "==", "!=", "<=>")


def _counter(facts: Facts, condition: Node) -> Variable | None:
    """What the loop counts whose whole condition this is."""
    node, parent = condition, condition.parent
    while parent is not None and parent.type in ("parenthesized_expression", "condition_clause"):
        node, parent = parent, parent.parent
    if parent is None or parent.type not in LOOPS or parent.child_by_field_name("condition") != node:
        return None
    update = parent.child_by_field_name("update")
    if update is None:
        return None
    target = update.child_by_field_name("left") or update.child_by_field_name("argument")
    return None if target is None else facts.variable(target)
