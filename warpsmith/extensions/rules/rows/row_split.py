"""Spreads the iterations of a row over several blocks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange, limit
from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Access, Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import (
    NO_ROW,
    StridedLoop,
    carried,
    leaves,
    memory_conflict,
    outside,
    strided_loops,
)
from warpsmith.source.tree.syntax_tree import LOOPS, Edit, contains, find

PARAMETER = "WS_ROW_SPLIT"


class RowSplit(Rule):
    """Adds a grid dimension whose blocks share the strided loops of a row.

    Proven: iterations are independent, nothing synchronises, and several blocks may execute the code outside
    the loops.
    """

    name = "row_split"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        facts = draft.facts
        loops = strided_loops(facts)
        obstacle = _why_not(facts, loops)
        if obstacle is not None:
            return obstacle
        axis = _free_axis(draft)
        if axis is None:
            return Declined(DeclineCode.LAUNCH, "the kernel or its launch already uses grid y and z")
        edits = []
        for loop in loops:
            start, step = facts.source.of(loop.start), facts.source.of(loop.step)
            edits.append(Edit(loop.start.start_byte, loop.start.end_byte, f"WS_ROW_START({start}, {step})"))
            edits.append(Edit(loop.step.start_byte, loop.step.end_byte, f"WS_ROW_STEP({step})"))
        return draft.changed(
            RuleChange(
                self.name,
                f"{len(loops)} loop(s) shared by the blocks along grid {axis}",
                edits=edits,
                prologue=_macros(draft.is_opencl, axis),
                launch=_launch(draft.kernel.launch, axis),
                parameters=(
                    Parameter(
                        name=PARAMETER,
                        values=(1, 2, 4, 8, 16),
                        usual=2,  # the least that fills idle multiprocessors; every part repeats the start
                        meaning="blocks that share one row",
                    ),
                ),
                constraints=(
                    limit(
                        f"{PARAMETER} <= device.max_grid_{axis}",
                        "the grid has no more blocks along that axis",
                    ),
                ),
            )
        )


def _macros(opencl: bool, axis: str) -> str:
    part = f"get_group_id({AXES.index(axis)})" if opencl else f"blockIdx.{axis}"
    return (
        f"#define WS_ROW_START(thread, threads) ((thread) + {part} * (threads))\n"
        f"#define WS_ROW_STEP(threads) ((threads) * {PARAMETER})\n"
    )


def _launch(launch: Launch, axis: str) -> Launch:
    grid = [*launch.grid, Expression(1), Expression(1)][: max(AXES.index(axis) + 1, len(launch.grid))]
    grid[AXES.index(axis)] = Expression(PARAMETER)
    return launch.model_copy(update={"grid": tuple(grid)})


def _free_axis(draft: Draft) -> str | None:
    grid = draft.kernel.launch.grid
    for n, axis in ((1, "y"), (2, "z")):
        taken = len(grid) > n and grid[n].text != "1"
        used = any(draft.facts.uses(kind, axis) for kind in ("bid", "gdim", "gid", "gsize"))
        if not taken and not used:
            return axis
    return None


def _why_not(facts: Facts, loops: list[StridedLoop]) -> Declined | None:
    source = facts.source
    if not loops:
        return Declined(DeclineCode.FORM, NO_ROW)
    unsafe = facts.unsafe(source.body, in_order=True)
    if unsafe:
        return Declined(DeclineCode.DEPENDENCE, f"blocks would not be independent: {unsafe}")
    shared = [v.name for v in source.variables if v.is_shared and contains(source.kernel, v.declaration)]
    if shared:
        words = f"shared memory ({', '.join(shared)}) ties the threads of a row together"
        return Declined(DeclineCode.DEPENDENCE, words)
    if facts.uses("gsize") or facts.uses("gdim"):
        return Declined(DeclineCode.FORM, "the kernel reads the size of the grid")
    for loop in loops:
        reason = _loop_reason(facts, loop)
        if reason:
            return Declined(DeclineCode.DEPENDENCE, f"loop at line {loop.line}: {reason}")
    reason = _outside_reason(facts, loops)
    return None if reason is None else Declined(DeclineCode.DEPENDENCE, reason)


def _loop_reason(facts: Facts, loop: StridedLoop) -> str | None:
    left = leaves(loop)
    if left:
        return f"an iteration may end the loop early ({left})"
    names = sorted({v.name for v, _ in carried(facts, loop)})
    if names:
        return f"{', '.join(names)} carries a value from one iteration to the next"
    if any(a.node for a in facts.accesses(loop.bound) if a.root is None):
        return "its bound reads memory that is not clear"
    return memory_conflict(facts, loop)


@dataclass(frozen=True)
class _RowLoops:
    """A kernel of strided loops, as the preconditions look at it."""

    facts: Facts
    loops: list[StridedLoop]
    everywhere: list[Access]
    """All accesses of the kernel's body; once `_unclear_pointer` has passed, each has a root."""
    rest: list[Access]
    """Accesses that lie in none of the loops."""


def _outside_reason(facts: Facts, loops: list[StridedLoop]) -> str | None:
    """The reason why code outside the loops, which every block of a row executes, may have different results;
    None if it cannot."""
    row = _RowLoops(facts, loops, list(facts.accesses(facts.source.body)), outside(facts, loops))
    return next((reason for check in _CHECKS if (reason := check(row))), None)


def _unclear_pointer(row: _RowLoops) -> str | None:
    source = row.facts.source
    unclear = (a for a in row.everywhere if a.root is None)
    return next((f"where {source.of(a.pointer)!r} points is not clear" for a in unclear), None)


def _read_outside_and_written(row: _RowLoops) -> str | None:
    written = _written_parameters(row.everywhere)
    for a in row.rest:
        assert a.root is not None
        if a.reads and a.root.name in written:
            where = a.where(row.facts.source)
            return f"{where} is read outside of the loops, and {a.root.name} is written"
    return None


def _written_inside_and_outside(row: _RowLoops) -> str | None:
    outer = _written_parameters(row.rest)
    for loop in row.loops:
        for a in row.facts.accesses(loop.node):
            if a.root is not None and a.root.is_parameter and a.root.name in outer:
                return f"{a.root.name} is written inside and outside of the loops"
    return None


def _written_by_one_loop_and_read_by_another(row: _RowLoops) -> str | None:
    for loop in row.loops:
        written = _written_parameters(row.facts.accesses(loop.node))
        others = (p for p in row.loops if p.node != loop.node)
        for a in (a for other in others for a in row.facts.accesses(other.node)):
            if a.reads and a.root is not None and a.root.name in written:
                return f"{a.root.name} is written by one loop and read by another"
    return None


def _written_by_another_kind_of_loop(row: _RowLoops) -> str | None:
    for n in find(row.facts.source.body, *LOOPS):
        strided = any(p.contains(n) or contains(n, p.node) for p in row.loops)
        if not strided and _written_parameters(row.facts.accesses(n)):
            return f"the loop at line {n.start_point[0] + 1} writes memory and does not stride by the block"
    return None


_CHECKS: tuple[Callable[[_RowLoops], str | None], ...] = (
    _unclear_pointer,
    _read_outside_and_written,
    _written_inside_and_outside,
    _written_by_one_loop_and_read_by_another,
    _written_by_another_kind_of_loop,
)
"""Each says why it does not hold. All but the first rely on clear pointers."""


def _written_parameters(accesses: Iterable[Access]) -> set[str]:
    return {a.root.name for a in accesses if a.writes and a.root is not None and a.root.is_parameter}
