"""Several elements per thread, for kernels whose threads work independently."""

import re

from tree_sitter import Node

from warpsmith.domain.expressions import Expression
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Constraint, Parameter
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange, limit
from warpsmith.extensions.rules.analysis.indices.index_bounds import beyond, bound, guarded
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import strided_loops
from warpsmith.extensions.rules.analysis.threads.thread_indices import ThreadAxis, axes, foreign_read
from warpsmith.extensions.rules.bodies.lockstep_body import in_lockstep
from warpsmith.source.tree.syntax_tree import LOOPS, Edit, ancestors, contains, find

MOST = 32
"""Limit on the elements of a thread along all axes together."""
NEXT = "ws_next"


class ElementsPerThread(Rule):
    """Repeats the body over several elements along every axis of the grid, and shrinks the grid to fit.

    Proven: threads of a block neither synchronise nor share anything, so any order of elements could also
    occur with the original launch; only memory is carried from one element to the next; the kernel's own
    checks keep elements beyond the last one from memory. If this last fact cannot be proven, the blocks of
    the grid must divide evenly.
    """

    name = "elements_per_thread"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        facts = draft.facts
        found = axes(facts)
        if not found:
            return Declined(DeclineCode.FORM, "the kernel reads no global index along an axis of the grid")
        obstacle = _why_not(facts, found)
        if obstacle is not None:
            return obstacle
        taken = draft.names() | set(re.findall(r"\b(?:WS_\w+|ws_\w+)", draft.kernel.text))
        names = (name for axis in found for name in (axis.parameter, axis.near, axis.macro))
        name = next((name for name in names if name in taken), None)
        if name is not None:
            return Declined(DeclineCode.NAME_TAKEN, f"the name {name} is taken")
        return _spread(draft, found)


def _spread(draft: Draft, found: list[ThreadAxis]) -> Draft:
    """The draft whose threads have several elements along axes."""
    facts = draft.facts
    launch, checks = draft.kernel.launch, guarded(facts)
    grid, constraints = list(launch.grid), []
    for axis in found:
        last = None if axis.reads_size else bound(facts, draft.kernel, checks, axis.name)
        grid[axis.number] = Expression(f"ceil_div({grid[axis.number].text}, {axis.parameter})")
        constraints += beyond(draft.job, launch, axis.number, axis.parameter, last)
    if len(found) > 1:
        product = " * ".join(a.parameter for a in found)
        constraints.append(limit(f"{product} <= {MOST}", "elements of a thread"))
    constraints += [c for a in found for c in _sensible(a)]
    return draft.changed(
        RuleChange(
            ElementsPerThread.name,
            f"along {', '.join(a.name for a in found)}",
            edits=_edits(facts, found),
            prologue="".join(a.definition() for a in found),
            launch=launch.model_copy(update={"grid": tuple(grid)}),
            parameters=tuple(p for a in found for p in _parameters(a)),
            constraints=tuple(constraints),
        )
    )


def _parameters(axis: ThreadAxis) -> list[Parameter]:
    # Four independent loads hide most of the latency. Of a block with two axes, y has more to share: a warp
    # lies along x, and its rows stay whole only if there is enough of x for all warps.
    usual = 2 if axis.parameter.endswith("_X") else 4
    meaning = f"elements of a thread along {axis.name}"
    items = Parameter(name=axis.parameter, values=(1, 2, 4, 8), usual=usual, meaning=meaning)
    if not axis.near:
        return [items]
    # A block apart, so that the threads of a warp read neighbours.
    meaning += ": 0, a block apart; 1, neighbours"
    return [items, Parameter(name=axis.near, values=(0, 1), usual=0, meaning=meaning)]


def _sensible(axis: ThreadAxis) -> list[Constraint]:
    several = f"{axis.near} == 0 or {axis.parameter} > 1"
    return [limit(several, "a single element has no neighbour")] if axis.near else []


def _edits(facts: Facts, found: list[ThreadAxis]) -> list[Edit]:
    body = facts.source.body
    places = [e for axis in found for e in axis.edits(facts)]
    together = in_lockstep(facts, found, places)
    pragma = "" if find(body, *LOOPS) else "#pragma unroll\n"
    head = "".join(
        f"{pragma}for (int {a.item} = 0; {a.item} < {a.parameter}; ++{a.item}) {{\n" for a in reversed(found)
    )
    tail = "}" * len(found) + "\n"
    returns = _returns(body)
    jumps = [n for n in returns if any(a.type in LOOPS for a in ancestors(n))]
    if jumps:
        head, tail = head + "{\n", f"}}\n{NEXT}: ;\n" + tail
    edits = [Edit(body.start_byte + 1, body.start_byte + 1, f"\n{together}{head}")]
    for n in returns:
        word = f"goto {NEXT}" if n in jumps else "continue"
        edits.append(Edit(n.start_byte, n.start_byte + len("return"), word))
    return [*edits, *places, Edit(body.end_byte - 1, body.end_byte - 1, tail)]


def _returns(body: Node) -> list[Node]:
    return [
        n for n in find(body, "return_statement") if all(a.type != "lambda_expression" for a in ancestors(n))
    ]


def _why_not(facts: Facts, found: list[ThreadAxis]) -> Declined | None:
    tied = _why_tied(facts, found)
    if tied:
        return Declined(DeclineCode.DEPENDENCE, tied)
    for axis in found:
        foreign = foreign_read(facts, axis)
        if foreign is not None:
            words = f"in a function also reads the thread's place along {axis.name}"
            return Declined(DeclineCode.FORM, f"`{facts.source.of(foreign)}` {words}")
    for v in facts.source.variables:
        if v.is_parameter and v.scope == facts.source.kernel and facts.assigned(v):
            return Declined(DeclineCode.DEPENDENCE, f"{v.name} carries a value from one element to the next")
    return None


def _why_tied(facts: Facts, found: list[ThreadAxis]) -> str:
    """The reason why the threads of a block depend on each other; empty if nothing shows one."""
    source = facts.source
    rows = {loop.axis for loop in strided_loops(facts)} & {a.name for a in found}
    if rows:
        return f"the threads of a block share a row along {min(rows)}"
    unsafe = facts.unsafe(source.body, in_order=True)
    if unsafe:
        return f"elements would not be independent: {unsafe}"
    own = [v for v in source.variables if contains(source.kernel, v.declaration)]
    if any(v.is_shared for v in own) or "__shared__" in source.of(source.body):
        return "shared memory ties the threads of a block together"
    if any("static" in source.of(v.declaration).split() for v in own):
        return "a static variable outlives an element"
    return ""
