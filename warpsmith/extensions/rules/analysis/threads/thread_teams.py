"""Threads that share the iterations of a loop: those of a block, of a warp, or of the whole grid."""

import re
from enum import Enum

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import both_ways, object_of, operands, operator, wrapped
from warpsmith.extensions.rules.analysis.threads.warp_width import WARP, is_warp_width
from warpsmith.source.tree.syntax_tree import contains, find, strip

_DEEPEST = 8


class Team(Enum):
    """Threads that share a loop. Each thread starts at its own iteration and steps by the team's size."""

    BLOCK = "block"
    WARP = "warp"
    GRID = "grid"
    GRID_OF_LANES = "grid of lanes"
    """The lanes of one warp of every block along an axis of the grid."""


def team_of(facts: Facts, start: Node, step: Node) -> tuple[Team, str] | None:
    """The team, and the axis along which its threads are numbered; None if start and step name none."""
    first, width = facts.coordinate(start), facts.coordinate(step)
    if first is not None and width is not None and first[-1] == width[-1]:
        kinds = (first[:-2], width[:-2])
        if kinds == ("tid", "bdim"):
            return Team.BLOCK, first[-1]
        if kinds == ("gid", "gsize"):
            return Team.GRID, first[-1]
    if facts.is_opencl:
        return None
    if (_rank_in(facts, start), _size_of(facts, step)) == (Team.BLOCK, Team.BLOCK):
        return Team.BLOCK, "x"
    if is_lane(facts, start) and constant(facts, step) == WARP:
        return Team.WARP, "x"
    first_block, of_blocks = _lanes_of(facts, start), _warps_of(facts, step)
    if first_block is not None and first_block == of_blocks:
        return Team.GRID_OF_LANES, first_block
    return None


def _lanes_of(facts: Facts, node: Node) -> str | None:
    """The axis `a` of `blockIdx.a * 32 + lane`."""
    node = _value(facts, node)
    if node.type != "binary_expression" or operator(node) != "+":
        return None
    for block, lane in both_ways(node):
        if is_lane(facts, lane):
            return _warps_of(facts, block, "bid")
    return None


def _warps_of(facts: Facts, node: Node, kind: str = "gdim") -> str | None:
    """The axis `a` of `gridDim.a * 32`."""
    node = _value(facts, node)
    if node.type != "binary_expression" or operator(node) != "*":
        return None
    for number, other in both_ways(node):
        where = facts.coordinate(number)
        if where is not None and where[:-2] == kind and constant(facts, other) == WARP:
            return where[-1]
    return None


def is_lane(facts: Facts, node: Node) -> bool:
    """True for `threadIdx.x % 32`, `threadIdx.x & 31`, `tile.thread_rank()` and variables of that value."""
    node = _value(facts, node)
    if _rank_in(facts, node) is Team.WARP:
        return True
    if node.type != "binary_expression" or operator(node) not in ("%", "&"):
        return False
    left, right = operands(node)
    size = constant(facts, right)
    return facts.coordinate(left) == "tid.x" and size == (WARP if operator(node) == "%" else WARP - 1)


def _group_of(facts: Facts, node: Node, *methods: str) -> Team | None:
    """The team of the cooperative group whose method a call is; None if it is none of a block or a warp."""
    holder = object_of(node)
    if holder is None or holder.type != "identifier":
        return None
    if facts.source.callee(node) not in methods or facts.source.arguments(node):
        return None
    # The grammar takes `tile<32> name = ...` for a comparison, so the text is read.
    name = re.escape(facts.source.of(holder))
    made = re.findall(rf"[^;{{}}]*\b{name}\s*(?:=[^;]*)?;", facts.source.of(facts.source.body))
    if len(made) != 1:
        return None
    if re.search(rf"\bthread_block_tile<\s*32\s*>\s+{name}\b|\btiled_partition<\s*32\s*>", made[0]):
        return Team.WARP
    flat = all(extent == "1" for extent in facts.block[1:])
    whole = re.search(r"=\s*(?:\w+::)*this_thread_block\(\)\s*;", made[0])
    return Team.BLOCK if whole and flat else None


def _rank_in(facts: Facts, node: Node) -> Team | None:
    """The team in which a cooperative group numbers its threads."""
    return _group_of(facts, _value(facts, node), "thread_rank")


def _size_of(facts: Facts, node: Node) -> Team | None:
    """The team whose threads a cooperative group counts."""
    return _group_of(facts, _value(facts, node), "size", "num_threads")


def _value(facts: Facts, node: Node) -> Node:
    """The value of a local that never changes, or of a cast."""
    for _ in range(_DEEPEST):
        node = strip(node)
        inner = node.child_by_field_name("value") if node.type == "cast_expression" else facts.value_of(node)
        if inner is None:
            return node
        node = inner
    return node


def constant(facts: Facts, node: Node) -> int | None:
    """The number that an expression of literals, macros and constants is; None if it is another."""
    node = _value(facts, node)
    text = facts.source.of(node)
    if node.type == "number_literal":
        digits = text.rstrip("uUlL")
        return int(digits, 0) if re.fullmatch(r"0[xX][0-9a-fA-F]+|[1-9]\d*|0", digits) else None
    if node.type == "binary_expression" and operator(node) in "+-*":
        left, right = (constant(facts, o) for o in operands(node))
        if left is None or right is None:
            return None
        return {"+": left + right, "-": left - right, "*": left * right}[operator(node)]
    if _size_of(facts, node) is Team.WARP:
        return WARP
    return _named_number(facts, text) if node.type == "identifier" and facts.variable(node) is None else None


def _named_number(facts: Facts, name: str) -> int | None:
    """The number that a macro or a template parameter stands for; None for any other name."""
    if is_warp_width(name, facts.source.backend):
        return WARP
    bodies = re.findall(rf"(?m)^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(.*?)[ \t]*$", facts.source.text)
    numbers = {body.strip("()").rstrip("uUlL") for body in bodies} or {facts.source.template_argument(name)}
    only = numbers.pop()
    return int(only) if not numbers and only.isdecimal() else None


def own_value(facts: Facts, team: Team, axis: str, node: Node, depth: int = 0) -> str | None:
    """A value under `node` that differs between the threads of a team; None if there is none.

    What is assigned after its declaration is left out: it may have been combined over the threads.
    """
    for n in find(node, "field_expression", "call_expression", "identifier"):
        if n.type == "identifier":
            value = _value_outside(facts, n, node) if depth <= _DEEPEST else None
            own = value is not None and own_value(facts, team, axis, value, depth + 1) is not None
        else:
            own = facts.coordinate(n) in _own_coordinates(team, axis) or _is_own_rank(facts, team, n)
        if own and not (_by_lanes(team) and _is_warp(facts, n)):
            return facts.source.of(n)
    return None


def _value_outside(facts: Facts, name: Node, node: Node) -> Node | None:
    """The initialiser of a local that never changes and is declared outside of a node."""
    v = facts.variable(name)
    outside = v is not None and not node.start_byte <= v.declaration.start_byte < node.end_byte
    return facts.value_of(name) if outside else None


def _by_lanes(team: Team) -> bool:
    return team in (Team.WARP, Team.GRID_OF_LANES)


def _own_coordinates(team: Team, axis: str) -> frozenset[str]:
    """Coordinates along an axis that differ between the threads of a team."""
    of_grid = {f"bid.{axis}"} if team in (Team.GRID, Team.GRID_OF_LANES) else set[str]()
    return frozenset((f"gid.{axis}", "tid.x" if team is Team.GRID_OF_LANES else f"tid.{axis}", *of_grid))


def _is_own_rank(facts: Facts, team: Team, node: Node) -> bool:
    """True where a cooperative group is asked for what differs between the threads of a team."""
    called = facts.source.callee(node)
    return called == "thread_rank" or (called == "meta_group_rank" and not _by_lanes(team))


def _is_warp(facts: Facts, node: Node) -> bool:
    """True if a thread's index is only divided by the size of a warp, so that its lanes have one value."""
    if facts.coordinate(node) != "tid.x":
        return False
    parent = wrapped(node).parent
    if parent is None or parent.type != "binary_expression" or operator(parent) not in ("/", ">>"):
        return False
    left, right = operands(parent)
    size = constant(facts, right)
    by_warp = size is not None and (size == 5 if operator(parent) == ">>" else size % WARP == 0)
    return by_warp and contains(left, node)
