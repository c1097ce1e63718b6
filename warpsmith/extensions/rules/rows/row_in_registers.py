"""A row that is read by several loops stays in registers between them."""

from warpsmith.domain.expressions import Expression
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Constraint, Parameter
from warpsmith.extensions.rules.analysis.draft import BodyVariant, Declined, Draft, Rule, RuleChange, limit
from warpsmith.extensions.rules.analysis.indices.index_bounds import expression_of, parsed
from warpsmith.extensions.rules.analysis.kernel_facts import AXES
from warpsmith.extensions.rules.analysis.memory.kept_rounds import kept_rounds
from warpsmith.extensions.rules.analysis.memory.repeated_rows import LoopChain, chain_of
from warpsmith.extensions.rules.analysis.threads.thread_teams import Team
from warpsmith.extensions.rules.analysis.threads.warp_width import WARP
from warpsmith.extensions.rules.bodies.kept_rounds_body import kept_rounds_body
from warpsmith.extensions.rules.bodies.kept_row_body import CUDA, KEEP, OPENCL, PACK, KeptRowText

MAX_ELEMENTS = 64
"""Elements of a row that a thread keeps at most: a quarter of its registers if each takes one."""
MAX_BYTES = 16


class RowInRegisters(Rule):
    """Reads each element of a row once, and keeps it in a register for the loops that follow.

    Proven: the loops have the same iterations for the same threads; iterations are independent except for
    sums, products, minima and maxima; nothing but these loops writes the elements, and the way to an element
    does not change between them.
    """

    name = "row_in_registers"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        chain = chain_of(draft.facts)
        if isinstance(chain, str):
            return _by_rounds(draft, chain)
        if {KEEP, PACK} & draft.names() or KEEP in draft.kernel.text:
            return Declined(DeclineCode.NAME_TAKEN, f"the name {KEEP} is taken")
        packs = _packs(draft, chain)
        parameters = (
            Parameter(
                name=KEEP,
                values=(0, 1, 2, 4, 8, 16),
                usual=1,  # 256 threads with 16 bytes each hold a row of 2048 halves; more would stay empty
                meaning="packs of a row that a thread keeps",
            ),
            Parameter(
                name=PACK,
                values=packs,
                usual=packs[-1],  # the widest access needs the fewest instructions
                meaning="contiguous elements of a pack",
            ),
        )
        loops = {n for kept in chain.kept for n, _ in kept.uses}
        loops |= {n for kept in chain.objects for n, _ in kept.uses}
        return draft.changed(
            RuleChange(
                self.name,
                f"{chain.kept_values} element(s) of an iteration, used by {len(loops)} loops",
                prologue=OPENCL if draft.is_opencl else CUDA,
                parameters=parameters,
                constraints=_constraints(draft, chain),
                variant=_variant(draft, KeptRowText(draft, chain).body()),
            )
        )


def _by_rounds(draft: Draft, otherwise: str) -> Draft | Declined:
    """The draft whose loops by rounds keep objects that are loaded from the same place in the same round."""
    rounds = kept_rounds(draft.facts)
    if isinstance(rounds, str):
        return Declined(DeclineCode.FORM, "; ".join(r for r in (otherwise, rounds) if r))
    if KEEP in draft.names() or KEEP in draft.kernel.text:
        return Declined(DeclineCode.NAME_TAKEN, f"the name {KEEP} is taken")
    parameter = Parameter(
        name=KEEP,
        values=(0, 1, 2, 4),
        usual=1,  # the loops by rounds take one or two, and what is not kept is loaded again
        meaning="rounds of which a thread keeps the loads",
    )
    return draft.changed(
        RuleChange(
            RowInRegisters.name,
            f"{len(rounds.objects)} object(s) of a round, loaded by {len(rounds.loops)} loops",
            parameters=(parameter,),
            variant=_variant(draft, kept_rounds_body(draft, rounds)),
        )
    )


def _variant(draft: Draft, body: str) -> BodyVariant:
    return BodyVariant(Expression(f"{KEEP} > 0"), body, draft.kernel.launch.grid)


def _packs(draft: Draft, chain: LoopChain) -> tuple[int, ...]:
    """Numbers of elements of a pack: up to 16 bytes of the narrowest element, and OpenCL's vectors of 8."""
    if not chain.packs:
        return (1,)
    roots = [group.accesses[0].root for of_loop in chain.groups for group in of_loop]
    narrowest = min((draft.element_bytes.get(r.name, 4) for r in roots if r is not None), default=4)
    most = min(MAX_BYTES // narrowest, 8) if draft.is_opencl else MAX_BYTES // narrowest
    return tuple(v for v in (1, 2, 4, 8, 16) if v <= most)


def _constraints(draft: Draft, chain: LoopChain) -> tuple[Constraint, ...]:
    found = [
        limit(f"{KEEP} > 0 or {PACK} == 1", f"{PACK} has no part in the body that is compiled there"),
        limit(f"{KEEP} * {PACK} <= {MAX_ELEMENTS}", "more elements than a thread has registers for"),
    ]
    loop, launch = chain.loops[0], draft.kernel.launch
    length = expression_of(draft.facts, draft.kernel, loop.bound, loop.node)
    threads = launch.block[AXES.index(loop.axis)].text if AXES.index(loop.axis) < len(launch.block) else "1"
    if loop.team is Team.WARP:
        threads = str(WARP)
    elif loop.team is not Team.BLOCK:
        length = None
    needless = f"{KEEP} <= 1 or ({threads}) * {KEEP} * {PACK} < 2 * ({length})"
    if length is not None and parsed(needless) is not None:
        found.append(limit(needless, "half as many packs hold the row as well"))
    return tuple(found)
