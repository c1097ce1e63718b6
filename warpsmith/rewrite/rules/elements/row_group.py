"""Several threads of a block share the loops that one thread runs over a row."""

from warpsmith.domain.declined_rule import DeclineCode
from warpsmith.domain.expressions import Expression
from warpsmith.domain.space import Constraint, Parameter
from warpsmith.rewrite.analysis.draft import Change, Declined, Draft, Rule, Variant
from warpsmith.rewrite.analysis.indices.guarded_element import Element, find_element
from warpsmith.rewrite.bodies.team_body import TEAM, TeamText


class RowGroup(Rule):
    """Gives every row a team of threads that share the iterations of its loops.

    Proven: iterations are independent except for sums, products, minima and maxima, which are combined in
    local memory. Code outside the loops is executed by all threads of a team alike, or by one of them if it
    writes memory.
    """

    name = "row_group"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        element = find_element(draft.facts)
        if isinstance(element, str):
            return Declined(DeclineCode.FORM, element)
        obstacle = _why_not(draft, element)
        if obstacle is not None:
            return obstacle
        text = TeamText(draft, element)
        body = text.body()
        if body is None:
            return Declined(DeclineCode.DEPENDENCE, text.reason)
        launch = draft.kernel.launch
        threads = launch.block[0].text
        grid = (Expression(f"({launch.grid[0].text}) * {TEAM}"), *launch.grid[1:])
        parameters = (
            Parameter(
                name=TEAM,
                values=(1, 2, 4, 8, 16, 32),
                usual=8,  # eight floats are the 32 bytes of a sector; a whole warp wants long rows
                meaning="threads that share a row's loops",
            ),
        )
        constraints = (
            Constraint(
                expression=Expression(f"({threads}) % {TEAM} == 0"),
                reason="a block has whole teams along x",
            ),
        )
        known = frozenset(p.name for p in (*draft.parameters, *parameters))
        return draft.changed(
            Change(
                self.name,
                f"{text.shared} loop(s), "
                + ("neighbouring iterations" if text.near else "neighbouring rows")
                + " by neighbouring threads",
                parameters=parameters,
                constraints=constraints,
                variant=Variant(
                    Expression(f"{TEAM} > 1"), f"{TEAM} > 1", body, grid, known, frozenset(text.handed)
                ),
            )
        )


def _why_not(draft: Draft, element: Element) -> Declined | None:
    facts, launch = draft.facts, draft.kernel.launch
    unsafe = facts.unsafe(facts.source.body)
    if unsafe:
        return Declined(DeclineCode.DEPENDENCE, f"rows would not be independent: {unsafe}")
    if any(v.is_shared for v in facts.source.variables):
        return Declined(DeclineCode.DEPENDENCE, "shared memory ties the threads of a block together")
    if element.place("x") is None:
        return Declined(DeclineCode.FORM, "it has no row along x")
    known = {p.name for p in (*draft.parameters, *draft.job.parameters)}
    if not all(e.text.isdecimal() or e.text in known for e in launch.block):
        return Declined(
            DeclineCode.LAUNCH, "an extent of the block is an expression that the source cannot name"
        )
    if TEAM in draft.names() or TEAM in draft.kernel.text:
        return Declined(DeclineCode.NAME_TAKEN, f"the name {TEAM} is taken")
    unclear = next((a for a in facts.accesses(facts.source.body) if a.root is None), None)
    if unclear is not None:
        return Declined(
            DeclineCode.DEPENDENCE, f"where {facts.source.of(unclear.pointer)!r} points is not clear"
        )
    return None
