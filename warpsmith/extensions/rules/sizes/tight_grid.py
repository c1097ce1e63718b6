"""The grid that has work becomes a configuration, if the launch has more."""

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange
from warpsmith.extensions.rules.analysis.indices.index_bounds import parsed
from warpsmith.extensions.rules.analysis.launch.working_threads import (
    Counts,
    Need,
    needs,
    too_much,
    why_not_once,
)

PARAMETER = "WS_GRID"


class TightGrid(Rule):
    """Adds the launch without the blocks, and without the repetitions, that have no work.

    Proven: threads of the blocks that are left out access no memory and call nothing, because the kernel's
    own check of their index comes first, and no thread reads how many blocks there are; or the kernel never
    reads its place along an axis, and it makes no difference how often the same thread runs.
    """

    name = "tight_grid"
    keeps_accesses = True

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        found = needs(draft)
        if isinstance(found, str):
            return Declined(DeclineCode.FORM, found)
        much = too_much(draft, found, draft.job.workloads, {})
        if much is None:
            words = "as far as its checks say, all blocks of the launch have work"
            return Declined(DeclineCode.NO_GAIN, words)
        idle = _idle(draft, [n for n in found if n.number in much[1].idle_axes])
        if isinstance(idle, Declined):
            return idle
        if PARAMETER in draft.names() or PARAMETER in draft.kernel.text:
            return Declined(DeclineCode.NAME_TAKEN, f"the name {PARAMETER} is taken")
        launch = _tight(draft.kernel.launch, idle)
        if launch is None:
            return Declined(DeclineCode.LIMIT, "the launch would be too long an expression")
        axes = ", ".join(n.axis for n in idle)
        parameter = Parameter(
            name=PARAMETER,
            values=(0, 1),
            usual=1,  # idle blocks are never of use
            meaning="0: the grid of the job; 1: only blocks that have work",
        )
        return draft.changed(RuleChange(self.name, f"along {axes}", launch=launch, parameters=(parameter,)))


def _idle(draft: Draft, idle: list[Need]) -> list[Need] | Declined:
    """The axes along which threads may be left out, of those with too many."""
    repeated = [n for n in idle if n.counts is Counts.NOTHING]
    why = why_not_once(draft) if repeated else ""
    if why and idle == repeated:
        axes = ", ".join(n.axis for n in repeated)
        return Declined(DeclineCode.DEPENDENCE, f"threads along {axes} repeat the same work, but {why}")
    return [n for n in idle if not why or n not in repeated]


def _tight(launch: Launch, idle: list[Need]) -> Launch | None:
    grid: list[Expression | None] = list(launch.grid)
    block: list[Expression | None] = list(launch.block)
    for need in idle:
        n = need.number
        if n < len(grid):
            grid[n] = _either(launch.grid[n].text, _least(need, launch))
        if need.counts is Counts.NOTHING and n < len(block):
            block[n] = _either(launch.block[n].text, "1")
    if None in grid or None in block:
        return None
    return launch.model_copy(update={"grid": tuple(grid), "block": tuple(block)})


def _least(need: Need, launch: Launch) -> str:
    if need.counts is Counts.NOTHING:
        return "1"
    return f"min({launch.grid[need.number].text}, max(1, {need.blocks(launch)}))"


def _either(posted: str, tight: str) -> Expression | None:
    if posted == tight:
        return Expression(posted)
    return parsed(f"{tight} if {PARAMETER} == 1 else ({posted})")
