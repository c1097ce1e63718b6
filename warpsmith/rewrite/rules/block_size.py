"""The block's extents become parameters if the kernel reads them instead of assuming them."""

import re

from tree_sitter import Node

from warpsmith.domain.expressions import Expression
from warpsmith.domain.launch import Launch
from warpsmith.domain.space import Constraint, Parameter
from warpsmith.rewrite.analysis.block_places import (
    WARP,
    Unit,
    addends,
    is_warps,
    mentions,
    places,
    resolved,
    uses_of,
)
from warpsmith.rewrite.analysis.draft import Change, Declined, Draft
from warpsmith.rewrite.analysis.index_bounds import bound, covered, guarded, parsed
from warpsmith.rewrite.analysis.kernel_facts import AXES, Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.analysis.shared_places import why_places_not
from warpsmith.rewrite.bodies.local_arguments import fits, grown, why_not
from warpsmith.rewrite.source.syntax_tree import find, strip, walk

_SINGLE = frozenset(("bool", "int", "unsigned", "uint", "float", "double", "half", "float2", "size_t"))
"""Types of one shared value, whose size does not depend on the block."""
LARGEST = 1024


class BlockSize:
    """Lifts literal extents of the block.

    Proven: the kernel reads the extent (`blockDim`, `get_local_size`, a global index); no shared array is
    sized for the literal; and if the grid is derived from the extent, it follows.
    """

    name = "block_size"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        launch = draft.kernel.launch
        axes = [n for n, e in enumerate(launch.block) if e.text != "1"]
        known = {p.name for p in (*draft.parameters, *draft.job.parameters)}
        if not axes or any(launch.block[n].names & known for n in axes):
            return Declined("the block is already set by parameters")
        reason = _why_not(draft, axes)
        if reason:
            return Declined(reason)
        if len(axes) == 1 and not launch.block[axes[0]].text.isdecimal():
            return _of_expression(draft, axes[0])
        if not all(launch.block[n].text.isdecimal() for n in axes):
            return Declined("an extent of the block is an expression")
        return _of_literals(draft, axes)


def _of_literals(draft: Draft, axes: list[int]) -> Draft | Declined:
    launch = draft.kernel.launch
    grid, block, parameters = list(launch.grid), list(launch.block), []
    constraints = []
    for n in axes:
        value = launch.block[n].text
        name = "WS_BLOCK" if axes == [0] else f"WS_BLOCK_{AXES[n].upper()}"
        if name in draft.names() or re.search(rf"\b{name}\b", draft.kernel.text):
            return Declined(f"the name {name} is taken")
        follows = _follows(draft.facts, AXES[n])
        if isinstance(follows, Declined):
            return follows
        if follows is not None:
            made = _following(grid[n].text if n < len(grid) else "", int(value), name, follows)
            if made is None:
                return Declined(
                    f"grid {AXES[n]} is not `ceil_div(..., {value})`, so it cannot follow the block"
                )
            extent, elements, block_elements = made
            constraints += _overhang(draft, n, name, elements, block_elements)
            grid[n] = Expression(extent)
        block[n] = Expression(name)
        parameters.append(
            Parameter(
                name=name,
                values=_values(int(value), AXES[n], len(axes), draft.is_opencl),
                default=int(value),
                meaning=f"threads of a block along {AXES[n]}",
            )
        )
    changed = launch.model_copy(update={"grid": tuple(grid), "block": tuple(block)})
    arguments = grown(draft.kernel, changed)
    return draft.changed(
        Change(
            BlockSize.name,
            f"block of {len(axes)} axis" if len(axes) == 1 else f"block of {len(axes)} axes",
            launch=changed,
            arguments=arguments,
            parameters=tuple(parameters),
            constraints=(_fits(changed), *fits(arguments), *constraints),
        )
    )


def _follows(facts: Facts, axis: str) -> Unit | Declined | None:
    """What the grid has to follow: threads, warps, or nothing; or why it cannot follow the block."""
    found = list(places(facts, axis))
    whole = facts.uses("gid", axis) or _global_index(facts, axis)
    units = {p.unit for p in found if p.unit is not Unit.FIXED}
    if Unit.UNCLEAR in units or len(units) > 1:
        where = next(p for p in found if p.unit is not Unit.FIXED)
        text = facts.source.of(where.node)
        return Declined(f"`{text}` depends on the block, and the grid cannot follow it")
    for p in found:
        direct = facts.coordinate(p.node.parent) if p.node.parent is not None else None
        if p.unit is Unit.FIXED and any(_is_place(facts, a) for a in addends(facts, p.node)):
            return Declined(f"`{facts.source.of(p.node)}` is the place of a block, by a fixed number")
        if p.unit is Unit.THREADS and direct != f"gid.{axis}" and not _is_whole(facts, p.node, axis):
            return Declined(f"`{facts.source.of(p.node)}` is used otherwise than in a global index")
        if p.unit is Unit.WARPS and not all(is_warps(facts, a, "tid") for a in addends(facts, p.node)):
            return Declined(f"`{facts.source.of(p.node)}` is used otherwise than in a warp's index")
    if whole or units:
        alone = _alone(facts, axis)
        if alone is not None:
            return Declined(f"`{alone}` is used by itself, so a block's results depend on its size")
    return units.pop() if units else Unit.THREADS if whole else None


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
    known = [p.node for p in places(facts, axis) if p.unit is not Unit.FIXED]
    for function in facts.source.reachable:
        for n in find(function, "field_expression", "call_expression"):
            if facts.coordinate(n) != f"bid.{axis}" or _within(n, known):
                continue
            if not _kept_for(facts, n, known):
                return facts.source.of(n)
    return None


def _kept_for(facts: Facts, read: Node, known: list[Node]) -> bool:
    """True if a read is kept in a local that is only used in these products."""
    kept = next((v for v in facts.source.variables if v.init is not None and strip(v.init) == read), None)
    if kept is None or facts.assigned(kept):
        return False
    return all(_within(u, known) for u in uses_of(facts, kept))


def _within(node: Node, known: list[Node]) -> bool:
    return any(k.start_byte <= node.start_byte and node.end_byte <= k.end_byte for k in known)


def _following(grid: str, threads: int, name: str, unit: Unit) -> tuple[str, str, str] | None:
    """The grid's extent for another block, the elements that it divides, and how many a block takes."""
    match = re.fullmatch(r"ceil_div\((.*),\s*(\d+)\)", grid) or re.fullmatch(r"([\w *]+?) // (\d+)", grid)
    if match is None or parsed(match.group(1)) is None:
        return None
    elements, each = match.group(1), int(match.group(2))
    if unit is Unit.WARPS and each * WARP == threads:
        block = f"{name} // {WARP}"
    elif each % threads == 0:
        block = name if each == threads else f"{each // threads} * {name}"
    else:
        return None
    made = f"ceil_div({elements}, {block})" if grid.startswith("ceil_div") else f"{elements} // ({block})"
    return made, elements, block


def _overhang(draft: Draft, axis: int, name: str, elements: str, block: str) -> list[Constraint]:
    """Constraints that keep threads beyond the last element from memory, if the kernel's checks do not."""
    launch, facts = draft.kernel.launch, draft.facts
    limit = bound(facts, draft.kernel, guarded(facts), AXES[axis])
    threads = launch.block[axis].text
    if limit is not None and covered(draft.job, launch.grid[axis].text, threads, limit) is True:
        return []
    each = block if block == name else f"({block})"
    expression = Expression(f"{name} == {threads} or ({elements}) % {each} == 0")
    return [Constraint(expression=expression, reason="threads beyond the last element would touch memory")]


def _of_expression(draft: Draft, axis: int) -> Draft | Declined:
    """An extent that depends on the workload: 0 keeps it, any other value replaces it."""
    launch = draft.kernel.launch
    follows = _follows(draft.facts, AXES[axis])
    if isinstance(follows, Declined):
        return follows
    if follows is not None or axis != 0:
        return Declined("the block is an expression and the kernel counts threads over the whole grid")
    if "WS_BLOCK" in draft.names():
        return Declined("the name WS_BLOCK is taken")
    if draft.kernel.local_arguments:
        return Declined("local arguments are sized by the job for a block that is an expression")
    chosen = Expression(f"WS_BLOCK if WS_BLOCK > 0 else ({launch.block[axis].text})")
    block = (chosen, *launch.block[1:])
    changed = launch.model_copy(update={"block": block})
    return draft.changed(
        Change(
            BlockSize.name,
            "block given by an expression; 0 keeps it",
            launch=changed,
            parameters=(
                Parameter(
                    name="WS_BLOCK",
                    values=(0, 32, 64, 128, 256, 512, 1024),
                    meaning="threads of a block; 0: as the job says",
                ),
            ),
            constraints=(
                Constraint(
                    expression=Expression("WS_BLOCK <= device.max_threads_per_block"),
                    reason="the device allows no more threads in a block",
                ),
            ),
        )
    )


def _values(default: int, axis: str, axes: int, opencl: bool) -> tuple[int, ...]:
    if axes == 1:
        values = {n for n in (16, 32, 64, 128, 256, 512, LARGEST) if opencl or n >= WARP}
    elif axis == "x":
        values = {8, 16, 32, 64, 128}
    else:
        values = {1, 2, 4, 8, 16}
    return tuple(sorted(values | {default}))


def _fits(launch: Launch) -> Constraint:
    product = " * ".join(e.text if e.text.isidentifier() else f"({e.text})" for e in launch.block)
    return Constraint(
        expression=Expression(f"{product} <= device.max_threads_per_block"),
        reason="the device allows no more threads in a block",
    )


def _global_index(facts: Facts, axis: str) -> bool:
    """True if `blockIdx * blockDim + threadIdx` occurs in the kernel."""
    return any(facts.coordinate(n) == f"gid.{axis}" for n in find(facts.source.body, "binary_expression"))


def _why_not(draft: Draft, axes: list[int]) -> str | None:
    facts = draft.facts
    for n in axes:
        axis = AXES[n]
        reads = facts.uses("bdim", axis) or facts.uses("gid", axis)
        if facts.uses("tid", axis) and not reads:
            return f"the kernel uses its thread index along {axis} and never reads how many threads there are"
        if len(axes) > 1 and not (facts.uses("gid", axis) or _global_index(facts, axis)):
            return f"the place of a thread along {axis} is not a global index"
    if draft.kernel.launch.shared_bytes.text != "0":
        return "dynamic shared memory is sized by the launch"
    shared = _shared_reason(facts) or why_places_not(facts) or why_not(facts)
    return shared or _compare_reason(facts) or _unfollowed(facts)


def _shared_reason(facts: Facts) -> str | None:
    """The reason why shared arrays prevent the rule: they may have one element per warp (32 suffice), but not
    one per thread."""
    source = facts.source
    for function in source.reachable:
        for v in source.variables:
            inside = function.start_byte <= v.declaration.start_byte < function.end_byte
            if not (v.is_shared and inside) or v.is_parameter:
                continue
            if not v.is_array and v.type_text in _SINGLE:
                continue
            sizes = find(v.declarator, "number_literal")
            enough = any(source.of(s).isdigit() and int(source.of(s)) >= LARGEST // WARP for s in sizes)
            for a in facts.accesses(source.body):
                if a.root == v and a.index is not None and not _per_warp(facts, a.index):
                    return (
                        f"shared array {v.name} is not indexed by warp, so its size may depend on the block"
                    )
            if not enough:
                return f"shared array {v.name} has fewer than {LARGEST // WARP} elements"
    return None


def _per_warp(facts: Facts, index: Node) -> bool:
    """True for a literal, a loop counter, `tid / 32` or `tid % 32`."""
    index = strip(index)
    if index.type == "number_literal":
        return True
    if index.type == "identifier":
        v = facts.variable(index)
        value = facts.value_of(index)
        if value is not None:
            return _per_warp(facts, value)
        return v is not None and v.scope is not None and v.scope.type == "for_statement"
    if index.type == "binary_expression" and operator(index) in ("/", "%", ">>", "&"):
        left, right = operands(index)
        return facts.coordinate(left) == "tid.x" and facts.source.of(right) in ("32", "5", "31", "warpSize")
    return False


def _compare_reason(facts: Facts) -> str | None:
    for n in find(facts.source.body, "binary_expression"):
        if operator(n) not in ("<", "<=", ">", ">=", "==", "!="):
            continue
        left, right = operands(n)
        for a, b in ((left, right), (right, left)):
            coordinate = facts.coordinate(a)
            fixed = b.type == "number_literal" and facts.source.of(b) != "0"
            if coordinate and coordinate.startswith("tid.") and fixed:
                return f"`{facts.source.of(n)}` compares the thread index with a fixed number"
    return None


def _unfollowed(facts: Facts) -> str | None:
    """A product of the block index and a number, which positions threads for one block size only."""
    for n in walk(facts.source.body):
        if n.type == "binary_expression" and operator(n) == "+":
            for first, b in (operands(n), operands(n)[::-1]):
                tid, a = facts.coordinate(b), strip(first)
                if tid and tid.startswith("tid.") and a.type == "binary_expression" and operator(a) == "*":
                    parts = [facts.coordinate(o) for o in operands(a)]
                    if f"bid.{tid[-1]}" in parts and f"bdim.{tid[-1]}" not in parts:
                        return f"`{facts.source.of(n)}` places threads by a fixed number"
    return None
