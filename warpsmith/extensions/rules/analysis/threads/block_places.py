"""Factors of the block's index in a kernel, which say which rows or elements a block takes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import both_ways, object_of, operands, operator, wrapped
from warpsmith.source.tree.syntax_tree import Variable, contains, find, strip

_WARP_WORDS = {"/": ("32", "warpSize"), ">>": ("5",), "%": ("32", "warpSize"), "&": ("31", "0x1f")}
_GROUP_SIZES = re.compile(r"^(?:num_threads|size|group_dim|dim_threads|group_index)$")
MOST_STEPS = 8
"""Limit on the chain of local names that is followed to a value."""


class BlockFactor(Enum):
    """Factor of a block's index."""

    THREADS = "threads of a block"
    WARPS = "warps of a block"
    FIXED = "something that does not follow the block"
    UNCLEAR = "something else that depends on the block"


@dataclass(frozen=True)
class BlockPlace:
    """`blockIdx * unit`."""

    node: Node
    unit: BlockFactor
    factor: Node


def places(facts: Facts, axis: str) -> Iterator[BlockPlace]:
    """Every product of the block's index along an axis in the kernel and the functions that it calls."""
    for function in facts.source.reachable:
        for node in find(function, "binary_expression"):
            if operator(node) != "*":
                continue
            for index, factor in both_ways(node):
                if facts.coordinate(index) == f"bid.{axis}":
                    yield BlockPlace(node, _unit(facts, factor, axis), factor)
                    break


def _unit(facts: Facts, factor: Node, axis: str) -> BlockFactor:
    if facts.coordinate(factor) == f"bdim.{axis}":
        return BlockFactor.THREADS
    if is_warps(facts, factor, "bdim"):
        return BlockFactor.WARPS
    return BlockFactor.UNCLEAR if mentions(facts, factor, "bdim") else BlockFactor.FIXED


def resolved(facts: Facts, node: Node) -> Node:
    """The value at the end of a chain of locals that never change."""
    node = strip(node)
    for _ in range(MOST_STEPS):
        value = facts.value_of(node) if node.type == "identifier" else None
        if value is None:
            return node
        node = strip(value)
    return node


def is_warps(facts: Facts, node: Node, kind: str) -> bool:
    """True for `threads / 32` (`kind` bdim) or `thread / 32` (`kind` tid) along x."""
    node = resolved(facts, node)
    if node.type == "call_expression":
        method = {"bdim": "meta_group_size", "tid": "meta_group_rank"}[kind]
        return facts.source.callee(node) == method and _is_of_warps(facts, node)
    if node.type != "binary_expression" or operator(node) not in ("/", ">>"):
        return False
    left, right = operands(node)
    return facts.coordinate(left) == f"{kind}.x" and is_warp_size(facts, operator(node), right)


def is_warp_size(facts: Facts, sign: str, node: Node) -> bool:
    """True if `thread sign node` is the thread's warp or its place there."""
    node = resolved(facts, node)
    text = facts.source.of(node)
    if node.type == "identifier":
        # A macro or a template argument of 32.
        pattern = rf"(?m)^[ \t]*#[ \t]*define[ \t]+{re.escape(text)}[ \t]+(\d+)[ \t]*$"
        values = re.findall(pattern, facts.source.text)
        text = values[0] if len(values) == 1 else text
    return text in _WARP_WORDS.get(sign, ())


def _is_of_warps(facts: Facts, call: Node) -> bool:
    """True for a method of a tile of 32 threads of the block."""
    base = object_of(call)
    v = None if base is None else facts.variable(strip(base))
    made = "" if v is None or v.init is None else facts.source.of(v.init)
    return re.search(r"tiled_partition\s*<\s*32\s*>", made) is not None


def mentions(facts: Facts, node: Node, kind: str, depth: int = 0, axis: str = "") -> bool:
    """True if a value may depend on a coordinate (`tid`, `bdim`); unknown methods of groups count.

    Args:
        axis: the coordinate's axis; empty for any axis.
    """
    for n in find(node, "identifier", "field_expression", "call_expression"):
        coordinate = facts.coordinate(n)
        if coordinate is not None:
            of_axis = axis in ("", coordinate[-1])
            if of_axis and (coordinate[:-2] == kind or coordinate[:-2] in ("gid", "gsize")):
                return True
            continue
        if n.type == "call_expression":
            name = facts.source.callee(n)
            if name.startswith("meta_group") or name == "thread_rank" or _GROUP_SIZES.match(name):
                return True
        value = facts.value_of(n) if n.type == "identifier" and depth < MOST_STEPS else None
        if value is not None and mentions(facts, value, kind, depth + 1, axis):
            return True
    return False


def addends(facts: Facts, product: Node, depth: int = 0) -> Iterator[Node]:
    """Terms added to `product`, followed through constant locals unless a term contains a thread's index."""
    threads = False
    node = wrapped(product)
    while (sum_of := node.parent) is not None and sum_of.type == "binary_expression":
        if operator(sum_of) not in "+-":
            break
        left, right = operands(sum_of)
        other = right if left == node else left
        yield other
        node, threads = wrapped(sum_of), threads or mentions(facts, other, "tid")
    if threads:
        return
    kept = next((v for v in facts.source.variables if v.init == node), None)
    if kept is None or facts.assigned(kept) or depth > MOST_STEPS:
        return
    for use in uses_of(facts, kept):
        yield from addends(facts, use, depth + 1)


def uses_of(facts: Facts, v: Variable) -> list[Node]:
    """Reads of a local, its own declarator left out."""
    return [n for n in facts.names_of(v, v.scope or facts.source.body) if not contains(v.declarator, n)]


def only_warps(facts: Facts) -> bool:
    """True if the kernel reads its thread index as warp and lane only, and never the number of threads."""
    if facts.uses("gid") or facts.uses("bdim") or facts.uses("tid", "y") or facts.uses("tid", "z"):
        return False
    for function in facts.source.reachable:
        for n in find(function, "field_expression", "call_expression"):
            if facts.source.callee(n) in ("this_thread_block", "thread_rank"):
                return False
            if facts.coordinate(n) == "tid.x" and not _is_parted(facts, n):
                return False
    return True


def _is_parted(facts: Facts, read: Node) -> bool:
    """True for the thread index in `tid / 32`, `tid % 32`, or in a local that is used so only."""
    node = wrapped(read)
    if node.parent is not None and node.parent.type == "binary_expression":
        left, right = operands(node.parent)
        return left == node and is_warp_size(facts, operator(node.parent), right)
    kept = next((v for v in facts.source.variables if v.declarator == node.parent), None)
    if kept is None or kept.init is None or facts.assigned(kept):
        return False
    return all(_is_parted(facts, u) for u in uses_of(facts, kept))
