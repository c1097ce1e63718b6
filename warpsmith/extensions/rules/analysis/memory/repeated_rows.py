"""Elements that the same thread passes over in several strided loops, and nothing changes between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.calls.callees import CallEffect, assembly_effect
from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import (
    StridedLoop,
    depends,
    element_text,
    own_of_threads,
    team_loops,
    why_not_packs,
    written_value,
)
from warpsmith.extensions.rules.analysis.memory.loaded_objects import KeptObject, kept_objects
from warpsmith.extensions.rules.analysis.memory.vector_access import AccessGroup, groups
from warpsmith.source.tree.syntax_tree import Variable, find, plain

_DEEPEST = 8
_SAME = {"int32_t": "int", "uint32_t": "unsigned int", "unsigned": "unsigned int", "uint": "unsigned int"}
"""Other names of the types of counters."""


@dataclass(frozen=True)
class KeptElement:
    """An element of every iteration that several loops of a chain use."""

    uses: tuple[tuple[int, AccessGroup], ...]
    """Number of the loop, and its accesses; in the order of the loops."""

    @property
    def accesses(self) -> list[Access]:
        """All its accesses."""
        return [a for _, group in self.uses for a in group.accesses]

    @property
    def first(self) -> int:
        """Number of the first loop that uses it."""
        return self.uses[0][0]

    def of(self, loop: int) -> AccessGroup | None:
        """Its accesses in a loop."""
        return next((group for n, group in self.uses if n == loop), None)


@dataclass(frozen=True)
class LoopChain:
    """Loops of one block of statements with the same iterations, and what they use again and again."""

    loops: tuple[StridedLoop, ...]
    kept: tuple[KeptElement, ...]
    groups: tuple[tuple[AccessGroup, ...], ...]
    """Contiguous accesses of each loop."""
    packs: bool
    """False if an element must stay with the thread that has it."""
    objects: tuple[KeptObject, ...] = ()
    """Objects of a class that the loops load."""

    @property
    def kept_values(self) -> int:
        """Number of elements and objects of an iteration that are kept."""
        return len(self.kept) + len(self.objects)


def chain_of(facts: Facts) -> LoopChain | str:
    """The chain of a kernel with the most elements to keep; the reason if there is none."""
    loops = team_loops(facts)
    if len(loops) < 2:
        return "no two loops of the form `for (i = thread; i < n; i += threads)` of a block or warp"
    found, reason = None, "no two loops of one block of statements pass over the same elements"
    for members in _alike(facts, loops):
        made = _chain(facts, members)
        if isinstance(made, str):
            reason = made
        elif found is None or made.kept_values > found.kept_values:
            found = made
    return found or reason


def _alike(facts: Facts, loops: Sequence[StridedLoop]) -> Iterator[list[StridedLoop]]:
    """Loops that stand in one block of statements and have the same iterations."""
    by: dict[tuple[object, ...], list[StridedLoop]] = {}
    for loop in loops:
        block = loop.node.parent
        if block is None or block.type != "compound_statement" or block.parent is None:
            continue
        if block.parent.type == "switch_statement":
            continue
        kind = _SAME.get(loop.variable.kind, loop.variable.kind)
        words = (kind, loop.team, *(facts.source.of(n) for n in (loop.start, loop.bound, loop.step)))
        by.setdefault((block.id, *words), []).append(loop)
    yield from (members for members in by.values() if len(members) > 1)


def _chain(facts: Facts, loops: list[StridedLoop]) -> LoopChain | str:
    reason = _unclear(facts)
    if reason:
        return reason
    why = [(loop, why_not_packs(facts, loop)) for loop in loops]
    usable = [loop for loop, reason in why if not reason]
    said = [f"loop at line {loop.line}: {reason}" for loop, reason in why if reason]
    span = (usable[0].node.start_byte, usable[-1].node.end_byte) if usable else (0, 0)
    reason = _between(facts, loops[0], span)
    if reason:
        return reason
    found = tuple(tuple(groups(facts, loop)) for loop in usable)
    kept = tuple(_kept(facts, usable, found, span))
    objects = tuple(o for o in kept_objects(facts, usable) if not _moves(facts, o, span))
    if not (kept or objects):
        return ["no element is used in two loops without a change between", *said][-1]
    packs = not objects and _may_regroup(facts, usable, kept)
    return LoopChain(tuple(usable), kept, found, packs, objects)


def _between(facts: Facts, first: StridedLoop, span: tuple[int, int]) -> str:
    """The reason why loops with the header of the first one do not go together; empty if they do."""
    if any(_changes(facts, n, span) for n in (first.start, first.bound, first.step)):
        return "the bounds of its loops change between them"
    waits = any(span[0] <= n.start_byte < span[1] for n in facts.waits(facts.source.body))
    return "it waits for other grids between its loops" if waits else ""


def _moves(facts: Facts, thing: KeptObject, span: tuple[int, int]) -> bool:
    """True if the address of an object may change between the loops."""
    return any(_changes(facts, loaded.access.pointer, span) for _, loaded in thing.uses)


def _may_regroup(facts: Facts, loops: Sequence[StridedLoop], kept: Sequence[KeptElement]) -> bool:
    """True if other threads may take over elements: nothing that is written is used outside the loops."""
    if any(own_of_threads(facts, loop) for loop in loops):
        return False
    members = [k.accesses for k in kept]
    return all(_is_movable(facts, loop, a, members) for loop in loops for a in facts.accesses(loop.body))


def _is_movable(facts: Facts, loop: StridedLoop, a: Access, members: Sequence[Sequence[Access]]) -> bool:
    """True if another thread may make an access of a loop.

    Args:
        members: accesses of each kept element.
    """
    if a.root is None or (not a.root.is_parameter and loop.declares(a.root)):
        return True
    if not a.root.is_parameter:
        return not depends(facts, a.index or a.pointer, loop)
    mine = [b for b in facts.accesses(facts.source.body) if b.root == a.root]
    if not any(b.writes for b in mine) or all(loop.contains(b.node) for b in mine):
        return True
    return any(all(b in m for b in mine) for m in members)


def _unclear(facts: Facts) -> str | None:
    """The reason why what happens between loops is not known; None if it is."""
    body = facts.source.body
    if find(body, "goto_statement"):
        return "it jumps (goto)"
    for n in find(body, "gnu_asm_expression"):
        if assembly_effect(plain(n)) is CallEffect.OUTSIDE:
            return "it has inline assembly"
    for a in facts.accesses(body):
        if a.root is None and a.writes:
            return f"where {facts.source.of(a.pointer)!r} points is not clear"
    return None


def _kept(
    facts: Facts, loops: Sequence[StridedLoop], found: Sequence[Sequence[AccessGroup]], span: tuple[int, int]
) -> Iterator[KeptElement]:
    by: dict[str, list[tuple[int, AccessGroup]]] = {}
    for n, of_loop in enumerate(found):
        for group in of_loop:
            key = element_text(facts, loops[n], group.accesses[0])
            if key:
                by.setdefault(key, []).append((n, group))
    for uses in by.values():
        numbers = [n for n, _ in uses]
        same = {(g.element, g.is_half_call) for _, g in uses}
        if len(uses) > 1 and len(set(numbers)) == len(numbers) and len(same) == 1:
            kept = KeptElement(tuple(uses))
            if _stays(facts, kept, span):
                yield kept


def _stays(facts: Facts, kept: KeptElement, span: tuple[int, int]) -> bool:
    """True if nothing but the loops themselves changes an element, or the way to it, between the loops."""
    members = kept.accesses
    root = members[0].root
    assert root is not None
    if kept.uses[0][1].is_half_call and any(group.stores for _, group in kept.uses):
        return False  # a register would keep more bits than memory does
    if facts.is_volatile(root) or any(_changes(facts, n, span) for a in members for n in a.places):
        return False
    everything = [a for a in facts.accesses(facts.source.body) if a.root == root]
    return not any(a.writes for a in everything) or all(a in members for a in everything)


def _changes(facts: Facts, node: Node, span: tuple[int, int], depth: int = 0) -> bool:
    """True if a value that an expression names may change in a range of bytes, or is not understood.

    Counters of loops inside the range are left out: each of these loops starts anew.
    """
    if depth > _DEEPEST:
        return True
    for n in find(node, "identifier"):
        v = facts.variable(n)
        if v is None or (_counts(v) and _within(v.declaration, span)):
            continue
        value = written_value(facts, n)
        if value is None and any(span[0] <= place.start_byte < span[1] for place in facts.assigned(v)):
            return True
        if value is not None and _within(value, span) and _changes(facts, value, span, depth + 1):
            return True
    return False


def _within(node: Node, span: tuple[int, int]) -> bool:
    return span[0] <= node.start_byte and node.end_byte <= span[1]


def _counts(v: Variable) -> bool:
    """True for the counter of a loop."""
    return v.declaration.parent is not None and v.declaration.parent.type == "for_statement"
