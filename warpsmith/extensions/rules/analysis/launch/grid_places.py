"""Extents of the block that the grid has to follow if they change."""

from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import step_of
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.extensions.rules.analysis.threads.block_places import (
    BlockFactor,
    BlockPlace,
    addends,
    is_warps,
    mentions,
    places,
    resolved,
    uses_of,
)
from warpsmith.source.tree.syntax_tree import ancestors, contains, find


@dataclass(frozen=True)
class Follows:
    """The axis of the grid that follows an extent of the block."""

    axis: str
    unit: BlockFactor
    """Threads or warps of the block, by which the grid counts."""


def follows(facts: Facts, axis: str) -> Follows | str | None:
    """The axis of the grid that has to follow the block's extent along an axis; None if none has to.

    The reason if the grid cannot follow it.
    """
    crossed = _crossed(facts, axis)
    if isinstance(crossed, str):
        return crossed
    own = _own(facts, axis)
    if isinstance(own, str):
        return own
    if crossed is not None and own is not None:
        return f"grid {axis} and grid {crossed.axis} both depend on the block's {axis}"
    if crossed is not None:
        return crossed
    return None if own is None else Follows(axis, own)


def strides_over_grid(facts: Facts, f: Follows, axis: str) -> bool:
    """True if every index over the whole grid is where a loop begins whose step is the size of the grid.

    Such loops reach every element with any number of threads.
    """
    starts: list[Node] = []
    for p in places(facts, f.axis):
        if p.unit is BlockFactor.FIXED:
            continue
        total = next((a for a in ancestors(p.node) if a.type == "binary_expression"), None)
        kept = None if total is None else facts.initialised_by(total)
        if total is None or kept is None:
            return False
        in_loop = kept.scope is not None and kept.scope.type == "for_statement"
        starts += [kept.init] if in_loop and kept.init is not None else uses_of(facts, kept)
    return bool(starts) and all(_begins_stride(facts, n, f.axis, axis) for n in starts)


def _begins_stride(facts: Facts, start: Node, grid_axis: str, axis: str) -> bool:
    v = facts.initialised_by(start)
    loop = None if v is None else v.scope
    update = None if loop is None else loop.child_by_field_name("update")
    if v is None or loop is None or update is None or loop.type != "for_statement":
        return False
    step = step_of(facts, update, v.name)
    body = loop.child_by_field_name("body")
    changes = body is not None and facts.changes_in(v, body)
    return step is not None and not changes and _is_grid(facts, step, grid_axis, axis)


def _is_grid(facts: Facts, step: Node, grid_axis: str, axis: str) -> bool:
    """True for the number of threads of the whole grid: `gridDim * blockDim`."""
    step = resolved(facts, step)
    if step.type != "binary_expression" or operator(step) != "*":
        return False
    return {facts.coordinate(o) for o in operands(step)} == {f"gdim.{grid_axis}", f"bdim.{axis}"}


def _crossed(facts: Facts, axis: str) -> Follows | str | None:
    """Another axis of the grid whose index is multiplied by this extent: `blockIdx.x * blockDim.y`."""
    found: list[tuple[str, BlockPlace]] = []
    for other in AXES:
        for p in places(facts, other) if other != axis else ():
            if mentions(facts, p.factor, "bdim", axis=axis):
                found.append((other, p))
    for _, p in found:
        direct = facts.coordinate(p.factor) == f"bdim.{axis}"
        added = list(addends(facts, p.node))
        if not direct or not added or not all(facts.coordinate(a) == f"tid.{axis}" for a in added):
            return f"`{facts.source.of(p.node)}` depends on the block, and the grid cannot follow it"
    axes = {other for other, _ in found}
    if not axes:
        return None
    if len(axes) > 1:
        return f"several axes of the grid depend on the block's {axis}"
    only = axes.pop()
    alone = _alone(facts, only)
    if alone is not None:
        return f"`{alone}` is used by itself, so a block's results depend on its size"
    return Follows(only, BlockFactor.THREADS)


def _own(facts: Facts, axis: str) -> BlockFactor | str | None:
    """The factor of the grid's index along an axis: threads, warps, or None.

    The reason if the grid cannot follow the block.
    """
    found = list(places(facts, axis))
    whole = facts.uses("gid", axis) or is_global_index(facts, axis)
    units = {p.unit for p in found if p.unit is not BlockFactor.FIXED}
    if BlockFactor.UNCLEAR in units or len(units) > 1:
        where = next(p for p in found if p.unit is not BlockFactor.FIXED)
        text = facts.source.of(where.node)
        return f"`{text}` depends on the block, and the grid cannot follow it"
    for p in found:
        reason = _misused(facts, p, axis)
        if reason:
            return reason
    if whole or units:
        alone = _alone(facts, axis)
        if alone is not None:
            return f"`{alone}` is used by itself, so a block's results depend on its size"
    return units.pop() if units else BlockFactor.THREADS if whole else None


def _misused(facts: Facts, p: BlockPlace, axis: str) -> str | None:
    text = facts.source.of(p.node)
    direct = facts.coordinate(p.node.parent) if p.node.parent is not None else None
    if p.unit is BlockFactor.FIXED and any(_is_place(facts, a) for a in addends(facts, p.node)):
        return f"`{text}` is the place of a block, by a fixed number"
    if p.unit is BlockFactor.THREADS and direct != f"gid.{axis}" and not _is_whole(facts, p.node, axis):
        return f"`{text}` is used otherwise than in a global index"
    if p.unit is BlockFactor.WARPS and not all(is_warps(facts, a, "tid") for a in addends(facts, p.node)):
        return f"`{text}` is used otherwise than in a warp's index"
    return None


def is_global_index(facts: Facts, axis: str) -> bool:
    """True if `blockIdx * blockDim + threadIdx` occurs in the kernel."""
    return any(facts.coordinate(n) == f"gid.{axis}" for n in find(facts.source.body, "binary_expression"))


def _is_place(facts: Facts, added: Node) -> bool:
    """True for a part of the thread's index, such as its warp."""
    added = resolved(facts, added)
    if is_warps(facts, added, "tid"):
        return True
    parted = added.type == "binary_expression" and operator(added) in ("/", ">>")
    return parted and mentions(facts, operands(added)[0], "tid")


def _is_whole(facts: Facts, product: Node, axis: str) -> bool:
    """True if every sum with the product is the thread's global index, or if it strides over the grid."""
    found = list(addends(facts, product))
    return bool(found) and all(facts.coordinate(a) == f"tid.{axis}" for a in found)


def _alone(facts: Facts, axis: str) -> str | None:
    """A read of the block's index that is in no product with the block's extent; None if there is none."""
    known = [p.node for p in places(facts, axis) if p.unit is not BlockFactor.FIXED]
    for function in facts.source.reachable:
        for n in find(function, "field_expression", "call_expression"):
            if facts.coordinate(n) != f"bid.{axis}" or _within(n, known):
                continue
            if not _kept_for(facts, n, known):
                return facts.source.of(n)
    return None


def _kept_for(facts: Facts, read: Node, known: list[Node]) -> bool:
    """True if a read is kept in a local that is only used in these products."""
    kept = facts.initialised_by(read)
    if kept is None or facts.assigned(kept):
        return False
    return all(_within(u, known) for u in uses_of(facts, kept))


def _within(node: Node, known: list[Node]) -> bool:
    return any(contains(k, node) for k in known)
