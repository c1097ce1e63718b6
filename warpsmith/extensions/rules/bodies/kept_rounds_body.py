"""Body of a kernel whose threads keep what their first rounds load in registers."""

from warpsmith.extensions.rules.analysis.draft import Draft
from warpsmith.extensions.rules.analysis.memory.kept_rounds import KeptRounds
from warpsmith.extensions.rules.bodies.kept_row_body import KEEP
from warpsmith.source.tree.syntax_tree import Edit, Source, apply_edits


def kept_rounds_body(draft: Draft, plan: KeptRounds) -> str:
    """The text between the braces of the kernel.

    The first `WS_KEEP` rounds of each loop are written for a number of the round that is known when they are
    compiled, and the rest follow in a loop as before: so every thread does what it did, in the same order.
    """
    source = draft.source
    start, end = source.body.start_byte + 1, source.body.end_byte - 1
    edits = []
    for n, loop in enumerate(plan.loops):
        text = _declared(plan, n) + _loop(source, plan, n)
        edits.append(Edit(loop.first_byte(source) - start, loop.node.end_byte - start, text))
    return apply_edits(source.between(start, end), edits)


def _declared(plan: KeptRounds, n: int) -> str:
    """Declarations of what a loop is the first to load."""
    lines = [
        f"{loads[0].variable.type_text} ws_round_object_{k}[{KEEP}];\n"
        for k, loads in enumerate(plan.objects)
        if loads[0].loop == n
    ]
    return "\n" + "".join(lines)


def _loop(source: Source, plan: KeptRounds, n: int) -> str:
    loop = plan.loops[n]
    kind, name, bound = loop.variable.type_text, loop.variable.name, source.of(loop.bound)
    base, edits = loop.body.start_byte, []
    for k, loads in enumerate(plan.objects):
        place = f"ws_round_object_{k}[ws_round]"
        for load in (x for x in loads if x.loop == n):
            first, last = load.statement.start_byte - base, load.statement.end_byte - base
            if load is loads[0]:
                edits.append(
                    Edit(first, last, f"{{ {source.of(load.statement)} {place} = {load.variable.name}; }}")
                )
            else:
                edits.append(Edit(first, last, f"{load.variable.name} = {place};"))
    return "\n".join(
        [
            "#pragma unroll",
            f"for (int ws_round = 0; ws_round < {KEEP}; ++ws_round) {{",
            f"  const {kind} {name} = ws_round;",
            f"  if ({name} < {bound})",
            f"  {apply_edits(source.of(loop.body), edits)}",
            "}",
            f"for ({kind} {name} = {KEEP}; {name} < {bound}; ++{name})",
            f"  {source.of(loop.body)}",
            "",
        ]
    )
