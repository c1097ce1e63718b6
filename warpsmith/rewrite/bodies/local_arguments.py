"""Sizes of OpenCL's `__local` arguments after a rule changed the block."""

from collections import Counter

from tree_sitter import Node

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernel import Argument, Kernel, Role
from warpsmith.domain.launch import Launch
from warpsmith.domain.space import Constraint
from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import operator
from warpsmith.rewrite.source.syntax_tree import strip

MOST_STEPS = 8
"""Limit on the chain of local names that is followed to a value."""


def grown(kernel: Kernel, launch: Launch) -> tuple[Argument, ...]:
    """The kernel's arguments with local memory for the blocks of `launch`.

    Each extent of the block that was a number `v` and is now `P` multiplies the elements by
    `max(P, v) / v`. That is enough for whatever needs `a + b * v` elements, and for products of such
    terms of several axes: see `why_not` for what it is not enough for.
    """
    factors = [
        (new.text, int(old.text))
        for old, new in zip(kernel.launch.block, launch.block, strict=True)
        if new.text != old.text and old.text.isdecimal()
    ]
    return tuple(_grown(a, factors) if a.role is Role.LOCAL else a for a in kernel.arguments)


def _grown(argument: Argument, factors: list[tuple[str, int]]) -> Argument:
    first = argument.shape[0].text
    for name, value in factors:
        larger = f"max({name}, {value})"
        exact = first == str(value)
        first = larger if exact else f"ceil_div(({first}) * {larger}, {value})"
    return argument.model_copy(update={"shape": (Expression(first), *argument.shape[1:])})


def why_not(facts: Facts, constant: str = "", axes: int = 0) -> str | None:
    """The reason why a local argument may need more memory than `grown` provides; None if it does not.

    Args:
        constant: a name that is lifted together with extents of the block.
        axes: number of extents that follow that name.
    """
    for a in facts.accesses(facts.source.body):
        if a.root is None or not (a.root.is_shared and a.root.is_parameter):
            continue
        if a.index is None:
            return f"where `{facts.source.of(a.node)[:60]}` reaches in local memory is not clear"
        powers = _powers(facts, a.index, constant)
        steep = sum(powers.values()) > axes if constant else any(n > 1 for n in powers.values())
        if steep:
            return f"local memory is indexed by `{facts.source.of(a.index)[:60]}`, which outgrows the block"
    return None


def _powers(facts: Facts, node: Node, constant: str, depth: int = 0) -> Counter[str]:
    """Powers of a thread's index or of the block's extent in a product, by axis."""
    node = strip(node)
    coordinate = facts.coordinate(node)
    if coordinate is not None:
        return Counter({coordinate[-1]: 1})
    if constant and node.type == "identifier" and facts.source.of(node) == constant:
        return Counter({constant: 1})
    value = facts.value_of(node) if node.type == "identifier" and depth < MOST_STEPS else None
    if value is not None:
        return _powers(facts, value, constant, depth + 1)
    product = node.type == "binary_expression" and operator(node) in ("*", "<<")
    product |= node.type == "call_expression" and facts.source.callee(node) in (
        "mul24",
        "mad24",
        "mad",
        "fma",
    )
    found: Counter[str] = Counter()
    for child in facts.source.arguments(node) if node.type == "call_expression" else node.named_children:
        inner = _powers(facts, child, constant, depth)
        found = found + inner if product else found | inner
    return found


def fits(arguments: tuple[Argument, ...]) -> tuple[Constraint, ...]:
    """The constraint that the device has the local memory for these arguments; empty if they need none."""
    listed = [a.bytes_expression.text for a in arguments if a.role is Role.LOCAL]
    if not listed:
        return ()
    expression = Expression(f"{' + '.join(listed)} <= device.max_shared_per_block")
    return (Constraint(expression=expression, reason="the device has no more local memory for a block"),)
