"""Named integer constants of a kernel, and the meaning of each of their uses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import operands, operator, wrapped
from warpsmith.extensions.rules.analysis.threads.block_places import addends, is_warps, mentions
from warpsmith.source.tree.syntax_tree import find, split_arguments, walk

SMALLEST, LARGEST = 2, 4096
_INTEGERS = re.compile(
    r"^(?:const\s+|constexpr\s+|static\s+|unsigned\s+)*(?:int|unsigned|uint|size_t|long|short|u?int\d+_t)\b"
)

_NUMBER = re.compile(r"\s*(\d+)\s*(?://.*|/\*.*\*/\s*)?", re.S)
"""A macro's integer value, with an optional comment after it."""


@dataclass(frozen=True)
class Constant:
    """A name with an integer value fixed at compile time."""

    name: str
    value: int
    kind: str
    """`macro`, `variable` or `template`."""
    literal: Node | None
    """Node of the value; None for a template argument, whose value stands in the entry."""


def constants(facts: Facts) -> list[Constant]:
    """Macros, constants and template arguments with an integer value that the kernel may use."""
    found = [*_macros(facts), *_variables(facts), *_template_arguments(facts)]
    return [c for c in found if SMALLEST <= c.value <= LARGEST and uses(facts, c)]


def _macros(facts: Facts) -> Iterator[Constant]:
    source = facts.source
    for node in find(source.root, "preproc_def"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        number = None if value is None else _NUMBER.fullmatch(source.of(value))
        if name is None or number is None:
            continue
        pattern = rf"^[ \t]*#[ \t]*(?:define|undef|ifdef|ifndef|if|elif)\b.*\b{re.escape(source.of(name))}\b"
        if len(re.findall(pattern, source.text, re.M)) == 1:
            yield Constant(source.of(name), int(number.group(1)), "macro", value)


def _variables(facts: Facts) -> Iterator[Constant]:
    source = facts.source
    for v in source.variables:
        plain = v.is_const and not (v.is_pointer or v.is_array or v.is_parameter)
        if not plain or v.init is None or not _INTEGERS.match(v.kind):
            continue
        if v.init.type == "number_literal" and source.of(v.init).isdigit():
            yield Constant(v.name, int(source.of(v.init)), "variable", v.init)


def _template_arguments(facts: Facts) -> Iterator[Constant]:
    parent = facts.source.kernel.parent
    listed = None if parent is None else parent.child_by_field_name("parameters")
    if listed is None or "<" not in facts.entry:
        return
    values = split_arguments(facts.entry[facts.entry.index("<") + 1 : facts.entry.rindex(">")])
    for node, value in zip(listed.named_children, values, strict=False):
        names = find(node, "identifier")
        if value.isdigit() and names and node.type.endswith("parameter_declaration"):
            yield Constant(facts.source.of(names[-1]), int(value), "template", None)


def uses(facts: Facts, constant: Constant) -> list[Node]:
    """Every use in the kernel and in the functions that it calls."""
    found = []
    functions = facts.source.reachable if constant.kind != "template" else (facts.source.kernel,)
    for function in functions:
        for n in walk(function):
            named = n.type in ("identifier", "type_identifier") and facts.source.of(n) == constant.name
            declares = n.parent is not None and n.parent.type == "init_declarator" and n.parent.child(0) == n
            if named and not declares:
                found.append(n)
    return found


def meaning(facts: Facts, use: Node) -> str | None:
    """The proven meaning of a use: `extent`, `step`, `bound`, `tree`, `scale`, `type`, `grid.x`, `block.x`,
    `place.x`, `warps.x`; None if nothing is proven.

    `place.x` is both a grid and a block meaning: `blockIdx.x * C + threadIdx.x`. `warps.x` is the same for
    warps: `blockIdx.x * C + threadIdx.x / 32`.
    """
    node = wrapped(use)
    parent = node.parent
    if parent is None:
        return None
    if parent.type == "array_declarator":
        return "extent"
    if parent.type == "type_descriptor":
        return "type"
    if parent.type == "assignment_expression" and parent.parent is not None:
        return _step(facts, parent) if parent.parent.type == "for_statement" else None
    if parent.type == "binary_expression":
        return _binary(facts, parent, node)
    return None


def _step(facts: Facts, update: Node) -> str | None:
    loop = update.parent
    assert loop is not None
    init = loop.child_by_field_name("initializer")
    declarator = None if init is None else init.child_by_field_name("declarator")
    value = None if declarator is None else declarator.child_by_field_name("value")
    coordinate = None if value is None else facts.coordinate(value)
    if coordinate is not None and coordinate.startswith("tid."):
        return f"block.{coordinate[-1]}"
    return "step"


def _binary(facts: Facts, parent: Node, node: Node) -> str | None:
    left, right = operands(parent)
    other = left if right == node else right
    sign, above = operator(parent), parent.parent
    if sign == "*":
        return _factor(facts, parent, other)
    if sign == "<" and right == node and above is not None and above.type == "for_statement":
        return "bound"
    return "tree" if sign == "/" and left == node and facts.source.of(right) == "2" else None


def _factor(facts: Facts, product: Node, other: Node) -> str | None:
    """The meaning of a factor, by the other one."""
    coordinate = facts.coordinate(other)
    if coordinate is not None and coordinate.startswith("bid."):
        return _of_block(facts, product, coordinate[-1])
    if find(other, "subscript_expression", "call_expression"):
        return None
    return "scale" if all(_is_integer(facts, n) for n in find(other, "identifier")) else None


def _of_block(facts: Facts, product: Node, axis: str) -> str | None:
    """The meaning of a factor of the block's index, by the terms that are added to the product.

    `warps.x` is a factor of `blockIdx.x * C + threadIdx.x / 32`.
    """
    said: set[str | None] = set()
    for added in addends(facts, product):
        if facts.coordinate(added) == f"tid.{axis}":
            said.add(f"place.{axis}")
        elif is_warps(facts, added, "tid"):
            said.add(f"warps.{axis}")
        elif mentions(facts, added, "tid"):
            said.add(None)
    if len(said) > 1:
        return None
    return said.pop() if said else f"grid.{axis}"


def _is_integer(facts: Facts, node: Node) -> bool:
    v = facts.variable(node)
    return v is not None and not v.is_pointer and _INTEGERS.match(v.kind) is not None
