"""Several elements per thread, computed side by side in one loop."""

from warpsmith.domain.declined_rule import DeclineCode
from warpsmith.domain.expressions import Expression
from warpsmith.domain.space import Constraint, Parameter
from warpsmith.rewrite.analysis.draft import Change, Declined, Draft, Rule, Variant
from warpsmith.rewrite.analysis.indices.guarded_element import Element, find_element
from warpsmith.rewrite.analysis.kernel_facts import AXES, Facts
from warpsmith.rewrite.analysis.loops.counted_loops import CountedLoop, counted, counter_is_free, ends_early
from warpsmith.rewrite.analysis.loops.live_variables import Split, split_at
from warpsmith.rewrite.analysis.values.uniform_values import uniform_text
from warpsmith.rewrite.bodies.staged_operands import STAGE, Staged, staged, stages_fit
from warpsmith.rewrite.bodies.tile_body import SPREAD, TILE, TileText

_VALUES = {"x": (1, 2, 4, 8, 16), "y": (1, 2, 4, 8)}
# A tile of 4 x 4 uses each value that it loads four times, and leaves registers for the rest.
_USUAL = {"x": 4, "y": 4}
_MOST = 32
"""Limit on the elements of a tile."""


class RegisterTile(Rule):
    """A thread computes a small tile of neighbouring elements, so that shared operands are read once.

    Proven: threads are independent; the loop has the same iterations for every element and writes no memory;
    elements out of bounds are guarded against or do not exist.
    """

    name = "register_tile"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        facts = draft.facts
        element = find_element(facts)
        if isinstance(element, str):
            return Declined(DeclineCode.FORM, element)
        obstacle = _why_not(draft, element)
        if obstacle is not None:
            return obstacle
        split = _split(facts, element)
        if isinstance(split, str):
            return Declined(DeclineCode.FORM, split)
        axes = [p.axis for p in element.places if p.axis in _VALUES]
        names = {TILE[a] for a in axes} | {SPREAD, STAGE}
        if names & draft.names() or any(n in draft.kernel.text for n in names):
            return Declined(DeclineCode.NAME_TAKEN, "the names of its parameters are taken")
        stages = staged(draft, element, split, {a: TILE[a] for a in axes})
        return _made(draft, element, split, axes, stages)


def _why_not(draft: Draft, element: Element) -> Declined | None:
    facts = draft.facts
    unsafe = facts.unsafe(facts.source.body)
    if unsafe:
        return Declined(DeclineCode.DEPENDENCE, f"elements would not be independent: {unsafe}")
    if any(v.is_shared for v in facts.source.variables):
        return Declined(DeclineCode.DEPENDENCE, "shared memory ties the threads of a block together")
    if not any(p.axis in _VALUES for p in element.places):
        return Declined(DeclineCode.FORM, "it has no element along x or y")
    if any(AXES.index(p.axis) >= len(draft.kernel.launch.grid) for p in element.places):
        return Declined(DeclineCode.LAUNCH, "the launch has fewer axes than the kernel")
    return None


def _split(facts: Facts, element: Element) -> Split | str:
    reason = "no loop that counts by one stands between its statements"
    for node in element.inner:
        loop = counted(facts, node)
        if loop is None:
            continue
        why = _loop_reason(facts, loop)
        found = why or split_at(facts, element, loop)
        if isinstance(found, Split):
            return found
        reason = f"loop at line {loop.line}: {found}"
    return reason


def _loop_reason(facts: Facts, loop: CountedLoop) -> str | None:
    if uniform_text(facts, loop.start) is None or uniform_text(facts, loop.bound) is None:
        return "its bounds are not the same for every element"
    if ends_early(loop):
        return "an iteration may end early"
    if not counter_is_free(facts, loop):
        return f"{loop.variable.name} is read after it"
    accesses = list(facts.accesses(loop.body))
    written = next((a for a in accesses if a.writes and (a.root is None or not loop.declares(a.root))), None)
    if written is not None:
        return f"it writes {written.where(facts.source)} in its iterations"
    if not any(a.reads and a.root is not None and a.root.is_parameter for a in accesses):
        return "it reads no buffer"
    return None


def _made(
    draft: Draft, element: Element, split: Split, axes: list[str], stages: tuple[Staged, ...]
) -> Draft | Declined:
    text = TileText(draft, element, split, tuple(axes), stages)
    launch = draft.kernel.launch
    grid = list(launch.grid)
    parameters, constraints = [], []
    for axis in axes:
        n = AXES.index(axis)
        place = element.place(axis)
        assert place is not None
        parameters.append(
            Parameter(
                name=TILE[axis],
                values=_VALUES[axis],
                usual=_USUAL[axis],
                meaning=f"elements of a thread along {axis}",
            )
        )
        if not place.highs:
            constraints.append(
                Constraint(
                    expression=Expression(f"({grid[n].text}) % {TILE[axis]} == 0"),
                    reason="the kernel checks no bounds, so every thread needs all of its elements",
                )
            )
        grid[n] = Expression(f"ceil_div({grid[n].text}, {TILE[axis]})")
    product = " * ".join(TILE[a] for a in axes)
    if len(axes) > 1:
        constraints.append(
            Constraint(
                expression=Expression(f"{product} <= {_MOST}"), reason="the tile is to fit into registers"
            )
        )
    on, macro = f"{product} > 1", f"{product} > 1"
    if "x" in axes:
        parameters.append(
            Parameter(
                name=SPREAD,
                values=(0, 1),
                usual=1,  # the threads of a warp read neighbours
                meaning="elements along x: 0 side by side, 1 a block apart",
            )
        )
        constraints.append(
            Constraint(expression=Expression(f"{SPREAD} == 0 or {TILE['x']} > 1"), reason="one element only")
        )
    if stages:
        parameters.append(
            Parameter(
                name=STAGE,
                values=(0, 8, 16, 32),
                usual=16,  # 16 floats are two sectors of a row, and tiles of 64 x 16 fit several blocks
                meaning="iterations staged in local memory; 0: none",
            )
        )
        constraints.append(stages_fit(stages))
        on, macro = f"{on} or {STAGE} > 0", f"{macro} || {STAGE} > 0"
    known = {p.name for p in (*draft.parameters, *parameters)}
    return draft.changed(
        Change(
            RegisterTile.name,
            f"along {' and '.join(axes)}" + (f", {len(stages)} operand(s) staged" if stages else ""),
            parameters=tuple(parameters),
            constraints=tuple(constraints),
            variant=Variant(Expression(on), macro, text.body(), tuple(grid), frozenset(known)),
        )
    )
