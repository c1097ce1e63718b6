"""The block's extents become parameters if the kernel reads them instead of assuming them."""

import re
from dataclasses import dataclass, replace

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Constraint, Parameter
from warpsmith.extensions.rules.analysis.calls.callees import synchronises
from warpsmith.extensions.rules.analysis.draft import (
    MORE_THREADS,
    Declined,
    Draft,
    Rule,
    RuleChange,
    limit,
    product_of,
)
from warpsmith.extensions.rules.analysis.indices.index_bounds import bound, covered, guarded, parsed
from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.rules.analysis.launch.block_limits import divisors, own_limit, why_fixed
from warpsmith.extensions.rules.analysis.launch.grid_places import (
    Follows,
    follows,
    is_global_index,
    strides_over_grid,
)
from warpsmith.extensions.rules.analysis.memory.shared_arrays import LARGEST, room
from warpsmith.extensions.rules.analysis.memory.shared_places import why_places_not
from warpsmith.extensions.rules.analysis.operations import both_ways, operands, operator
from warpsmith.extensions.rules.analysis.threads.block_places import BlockFactor
from warpsmith.extensions.rules.analysis.threads.warp_width import WARP, launches_by_warps
from warpsmith.extensions.rules.analysis.values.constant_values import constant_value
from warpsmith.extensions.rules.bodies.block_memory import (
    fits,
    grown,
    shared_fits,
    why_not,
    why_not_shared,
    with_shared_bytes,
)
from warpsmith.source.tree.syntax_tree import find, strip


@dataclass(frozen=True)
class _LiftedExtent:
    """An extent of the block that becomes a parameter."""

    number: int
    """0 for x."""
    name: str
    text: str
    """The extent as the job gives it."""
    follows: Follows | None
    single: bool
    """True if no other axis of the block has more than one thread."""

    @property
    def axis(self) -> str:
        """x, y or z."""
        return AXES[self.number]

    @property
    def is_number(self) -> bool:
        """True if the job gives a number; else the parameter's 0 keeps the job's expression."""
        return self.text.isdecimal()

    @property
    def extent(self) -> str:
        """The extent in the launch."""
        return self.name if self.is_number else f"{self.name} if {self.name} > 0 else ({self.text})"


class BlockSize(Rule):
    """Lifts extents of the block.

    Proven: the kernel reads the extent (`blockDim`, `get_local_size`, a global index) and asks for no fixed
    one; shared memory has room for the threads of every block, or grows with it; what a thread keeps does not
    depend on it; and if the grid is derived from the extent, it follows. Launch bounds are its limit.
    An extent that the kernel does not read stays as it is.
    """

    name = "block_size"
    keeps_accesses = True

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        launch = draft.kernel.launch
        axes = [n for n, e in enumerate(launch.block) if e.text != "1"]
        known = {p.name for p in (*draft.parameters, *draft.job.parameters)}
        if not axes or any(launch.block[n].names & known for n in axes):
            return Declined(DeclineCode.NO_GAIN, "the block is already set by parameters")
        read = {n: _unread(draft.facts, n, axes) for n in axes}
        chosen = [n for n, reason in read.items() if not reason]
        if not chosen:
            return Declined(DeclineCode.RELIED_ON, next(iter(read.values())))
        threads = room(draft.facts)
        if isinstance(threads, str):
            return Declined(DeclineCode.RELIED_ON, threads)
        reason = _why_not(draft, chosen)
        if reason:
            return Declined(DeclineCode.RELIED_ON, reason)
        own = own_limit(draft.facts, frozenset(known))
        extents = _extents(draft, chosen, axes)
        if isinstance(extents, Declined):
            return extents
        lifted = _lifted(draft, extents, threads)
        if isinstance(lifted, Declined):
            return lifted
        more = _declared(lifted.kernel.launch, own) + _divided(draft.facts, extents)
        return replace(lifted, constraints=lifted.constraints + tuple(more))


def _unread(facts: Facts, n: int, axes: list[int]) -> str:
    """The reason why a kernel may rely on the extent that the job gives; empty if it reads the extent."""
    axis = AXES[n]
    whole = facts.uses("gid", axis) or is_global_index(facts, axis)
    reads = whole or facts.uses("bdim", axis)
    if not reads and (len(axes) > 1 or facts.uses("tid", axis)):
        return f"the kernel uses its thread index along {axis} and never reads how many threads there are"
    calls = (facts.source.callee(c) for f in facts.source.reachable for c in find(f, "call_expression"))
    if len(axes) > 1 and n == 0 and not whole and any("shfl" in c and synchronises(c) for c in calls):
        return f"threads along {axis} exchange values, for which their number may have to stay"
    return ""


def _declared(launch: Launch, most: str | None) -> list[Constraint]:
    """The constraint that the kernel's own launch bounds make."""
    fits = f"{product_of(launch)} <= {most}"
    return [limit(fits, "the kernel's launch bounds allow no more threads")] if most is not None else []


def _divided(facts: Facts, extents: list[_LiftedExtent]) -> list[Constraint]:
    """Constraints for extents that the kernel divides by a number, such as that of a warp."""
    found = []
    for e in extents:
        for number in sorted(set(divisors(facts, e.axis)) - {1}, key=_numbers_first):
            kept = f"{e.name} == {e.text}" if e.is_number else f"{e.name} == 0"
            reason = f"the kernel divides the block's {e.axis} by {number}"
            found.append(limit(f"{kept} or {e.name} % {number} == 0", reason))
    return found


def _numbers_first(divisor: int | str) -> tuple[bool, int, str]:
    return (True, 0, divisor) if isinstance(divisor, str) else (False, divisor, "")


def _extents(draft: Draft, chosen: list[int], axes: list[int]) -> list[_LiftedExtent] | Declined:
    found = []
    for n in chosen:
        named = "WS_BLOCK" if axes == [0] else f"WS_BLOCK_{AXES[n].upper()}"
        if named in draft.names() or re.search(rf"\b{named}\b", draft.kernel.text):
            return Declined(DeclineCode.NAME_TAKEN, f"the name {named} is taken")
        followed = follows(draft.facts, AXES[n])
        if isinstance(followed, str):
            return Declined(DeclineCode.RELIED_ON, followed)
        extent = _LiftedExtent(n, named, draft.kernel.launch.block[n].text, followed, len(axes) == 1)
        if not extent.is_number and followed is not None:
            words = "the block is an expression and the kernel counts threads over the whole grid"
            return Declined(DeclineCode.LAUNCH, words)
        if not extent.is_number and draft.kernel.local_arguments:
            words = "local arguments are sized by the job for a block that is an expression"
            return Declined(DeclineCode.LAUNCH, words)
        found.append(extent)
    return found


def _lifted(draft: Draft, extents: list[_LiftedExtent], threads: int) -> Draft | Declined:
    launch = draft.kernel.launch
    grid, block, constraints = list(launch.grid), list(launch.block), []
    for e in extents:
        block[e.number] = Expression(e.extent)
        if e.follows is not None:
            by_warps = launches_by_warps(draft.kernel.text, draft.kernel.backend)
            if e.follows.unit is BlockFactor.WARPS and not by_warps:
                words = "the grid counts warps, whose width is the device's, and the launch does not know it"
                return Declined(DeclineCode.LAUNCH, words)
            n = AXES.index(e.follows.axis)
            text = grid[n].text if n < len(grid) else ""
            made = _following(text, int(e.text), e.name, e.follows.unit) or _as_many(draft, e, text)
            if made is None and strides_over_grid(draft.facts, e.follows, e.axis):
                continue
            if made is None:
                words = f"grid {e.follows.axis} is not `ceil_div(..., {e.text})`"
                return Declined(DeclineCode.LAUNCH, f"{words}, so it cannot follow the block")
            extent, elements, block_elements = made
            constraints += _overhang(draft, e, elements, block_elements)
            grid[n] = Expression(extent)
    changed = launch.model_copy(update={"grid": tuple(grid), "block": tuple(block)})
    changed = with_shared_bytes(draft.kernel, changed)
    arguments = grown(draft.kernel, changed)
    detail = f"block of {len(extents)} ax{'i' if len(extents) == 1 else 'e'}s"
    if not all(e.is_number for e in extents):
        detail = "block given by an expression; 0 keeps it"
    return draft.changed(
        RuleChange(
            BlockSize.name,
            detail,
            launch=changed,
            arguments=arguments,
            parameters=tuple(_parameter(draft, e) for e in extents),
            constraints=(
                *(_fits(changed, extents, threads), *fits(arguments)),
                *(*shared_fits(launch, changed), *constraints),
            ),
        )
    )


def _parameter(draft: Draft, e: _LiftedExtent) -> Parameter:
    meaning = "threads of a block" if e.name == "WS_BLOCK" else f"threads of a block along {e.axis}"
    if e.is_number:
        values, default = _values(int(e.text), e.axis, e.single, draft.is_opencl), int(e.text)
    else:
        values, default = ((0, 32, 64, 128, 256, 512, LARGEST) if e.single else (0, 1, 2, 4, 8, 16, WARP)), 0
        meaning += "; 0: as the job says"
    return Parameter(name=e.name, values=values, default=default, usual=_usual(e, values), meaning=meaning)


def _usual(e: _LiftedExtent, values: tuple[int, ...]) -> int:
    """Eight warps hide latency, and their number divides what any multiprocessor holds. Of several axes, a
    warp lies along x, where elements are neighbours, and y has eight; depth is left to the job."""
    wanted = 256 if e.single else {"x": WARP, "y": 8}.get(e.axis, 0)
    default = int(e.text) if e.is_number else 0
    return wanted if wanted in values else default


def _values(default: int, axis: str, single: bool, opencl: bool) -> tuple[int, ...]:
    if single:
        values = {n for n in (16, 32, 64, 128, 256, 512, LARGEST) if opencl or n >= WARP}
    elif axis == "x":
        values = {8, 16, 32, 64, 128}
    else:
        values = {1, 2, 4, 8, 16}
    return tuple(sorted(values | {default}))


def _following(grid: str, threads: int, name: str, unit: BlockFactor) -> tuple[str, str, str] | None:
    """The grid's extent for another block, the elements that it divides, and how many a block takes."""
    match = re.fullmatch(r"ceil_div\((.*),\s*(\d+)\)", grid) or re.fullmatch(r"([\w *]+?) // (\d+)", grid)
    if match is None or parsed(match.group(1)) is None:
        return None
    elements, each = match.group(1), int(match.group(2))
    if unit is BlockFactor.WARPS and each * WARP == threads:
        block = f"{name} // {WARP}"
    elif each % threads == 0:
        block = name if each == threads else f"{each // threads} * {name}"
    else:
        return None
    made = f"ceil_div({elements}, {block})" if grid.startswith("ceil_div") else f"{elements} // ({block})"
    return made, elements, block


def _as_many(draft: Draft, e: _LiftedExtent, grid: str) -> tuple[str, str, str] | None:
    """The result of `_following` for a grid of any form: as many threads, of which the kernel's own check
    leaves those idle that have no element."""
    own = e.follows is not None and e.follows.axis == e.axis and e.follows.unit is BlockFactor.THREADS
    if not own or bound(draft.facts, draft.kernel, guarded(draft.facts), e.axis) is None:
        return None
    if not grid or draft.facts.uses("gdim", e.axis) or draft.facts.uses("gsize", e.axis):
        return None
    threads = f"({grid}) * {e.text}"
    return f"ceil_div({threads}, {e.name})", threads, e.name


def _overhang(draft: Draft, e: _LiftedExtent, elements: str, block: str) -> list[Constraint]:
    """Constraints that keep threads beyond the last element from memory, if the kernel's checks do not."""
    launch, facts = draft.kernel.launch, draft.facts
    last = bound(facts, draft.kernel, guarded(facts), e.axis)
    own = e.follows is not None and e.follows.axis == e.axis
    inside = own and last is not None and covered(draft.job, launch.grid[e.number].text, e.text, last)
    if inside is True:
        return []
    each = block if block == e.name else f"({block})"
    divides = f"{e.name} == {e.text} or ({elements}) % {each} == 0"
    expression = parsed(f"{divides} or {inside}") if inside else None
    expression = expression or Expression(divides)
    return [Constraint(expression=expression, reason="threads beyond the last element would touch memory")]


def _fits(launch: Launch, extents: list[_LiftedExtent], threads: int) -> Constraint:
    """The device's limit; and that of shared arrays if they have room for fewer threads."""
    product = "WS_BLOCK" if all(e.name == "WS_BLOCK" for e in extents) else product_of(launch)
    fit = f"{product} <= device.max_threads_per_block"
    if threads < LARGEST:
        reason = f"{MORE_THREADS}, or shared arrays have no room for them"
        return limit(f"{fit} and {product} <= {threads}", reason)
    return limit(fit, MORE_THREADS)


def _why_not(draft: Draft, axes: list[int]) -> str | None:
    facts, launch = draft.facts, draft.kernel.launch
    shared = why_places_not(facts) or why_not_shared(facts, launch, axes) or why_not(facts)
    fixed = next((why for n in axes if (why := why_fixed(facts, AXES[n]))), None)
    return shared or fixed or _compare_reason(facts) or _unfollowed(facts)


def _compare_reason(facts: Facts) -> str | None:
    for n in find(facts.source.body, "binary_expression"):
        if operator(n) not in ("<", "<=", ">", ">=", "==", "!="):
            continue
        for a, b in both_ways(n):
            coordinate = facts.coordinate(a)
            fixed = constant_value(facts, facts.source.of(b)) not in (None, 0)
            if coordinate and coordinate.startswith("tid.") and fixed:
                return f"`{facts.source.of(n)}` compares the thread index with a fixed number"
    return None


def _unfollowed(facts: Facts) -> str | None:
    """A product of the block index and a number, which positions threads for one block size only."""
    for n in (n for n in find(facts.source.body, "binary_expression") if operator(n) == "+"):
        for first, b in both_ways(n):
            tid, a = facts.coordinate(b), strip(first)
            if tid and tid.startswith("tid.") and a.type == "binary_expression" and operator(a) == "*":
                parts = [facts.coordinate(o) for o in operands(a)]
                if f"bid.{tid[-1]}" in parts and f"bdim.{tid[-1]}" not in parts:
                    return f"`{facts.source.of(n)}` places threads by a fixed number"
    return None
