"""Packs of neighbouring elements for kernels of one element a thread."""

from warpsmith.domain.expressions import Expression
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import BodyVariant, Declined, Draft, Rule, RuleChange
from warpsmith.extensions.rules.analysis.indices.index_bounds import beyond, bound, guarded
from warpsmith.extensions.rules.analysis.memory.index_packs import IndexPack, find_pack
from warpsmith.extensions.rules.bodies.index_pack_body import CUDA, PACK, IndexPackText

MAX_BYTES = 16


class IndexPacks(Rule):
    """Gives a thread a pack of neighbouring elements, loaded and stored together.

    Proven: nothing is shared between threads; where an element's memory lies follows from its index by sums,
    divisions and remainders, so that neighbours lie side by side if the pack divides the divisors, which the
    kernel then checks; a buffer that is written is accessed in one way only.
    """

    name = "index_packs"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        if draft.is_opencl:
            return Declined(DeclineCode.BACK_END, "OpenCL has neighbours for a thread by elements_per_thread")
        launch, facts = draft.kernel.launch, draft.facts
        if any(e.text != "1" for e in (*launch.block[1:], *launch.grid[1:])):
            return Declined(DeclineCode.LAUNCH, "the launch has more than one axis")
        plan = find_pack(facts)
        if isinstance(plan, str):
            return Declined(DeclineCode.FORM, plan)
        if PACK in draft.names() or PACK in draft.kernel.text:
            return Declined(DeclineCode.NAME_TAKEN, f"the name {PACK} is taken")
        values = tuple(n for n in (1, 2, 4, 8) if n <= _most(draft, plan))
        if len(values) < 2:
            return Declined(DeclineCode.NO_GAIN, "elements are as wide as the widest access already")
        last = bound(facts, draft.kernel, guarded(facts), "x")
        grid = (Expression(f"ceil_div({launch.grid[0].text}, {PACK})"), *launch.grid[1:])
        return draft.changed(
            RuleChange(
                self.name,
                f"{len(plan.groups)} wide accesses, {len(plan.divisors)} divisor(s)",
                prologue=CUDA,
                parameters=(
                    Parameter(
                        name=PACK,
                        values=values,
                        usual=values[-1],  # 16 bytes, the widest access
                        meaning="neighbours of a thread",
                    ),
                ),
                constraints=tuple(beyond(draft.job, launch, 0, PACK, last)),
                variant=BodyVariant(Expression(f"{PACK} > 1"), IndexPackText(facts, plan).body(), grid),
            )
        )


def _most(draft: Draft, plan: IndexPack) -> int:
    """Limit on the elements of a pack: the narrowest ones fill 16 bytes."""
    roots = [g.accesses[0].root for g in plan.groups]
    sizes = [draft.element_bytes.get(r.name, MAX_BYTES) for r in roots if r is not None]
    return MAX_BYTES // min(sizes, default=MAX_BYTES)
