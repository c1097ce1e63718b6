"""Variables that must be kept per element if a loop runs for several elements at once."""

from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.indices.guarded_element import Element
from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.language_words import text_of
from warpsmith.rewrite.analysis.loops.counted_loops import CountedLoop, counted, counter_is_free
from warpsmith.rewrite.source.syntax_tree import Variable, find


@dataclass(frozen=True)
class Split:
    """The statements of an element, split at a loop."""

    before: tuple[Node, ...]
    loop: CountedLoop
    after: tuple[Node, ...]
    kept: tuple[Variable, ...]
    """Variables kept across the split, as one array each."""
    outer: frozenset[str]
    """The kept variables that are declared before the bounds check."""
    again: tuple[str, ...]
    """Declarations between check and loop that are repeated where they are needed."""


def split_at(facts: Facts, element: Element, loop: CountedLoop) -> Split | str:
    """The element split at `loop`, one of its statements, or the reason why it cannot be split."""
    at = element.inner.index(loop.node)
    before, after = element.inner[:at], element.inner[at + 1 :]
    inside = _inside(facts, before, loop)
    if isinstance(inside, str):
        return inside
    again, kept = inside
    outer = _outer(facts, element, loop)
    if isinstance(outer, str):
        return outer
    if any(v.type_text == "auto" for v in (*kept, *outer)):
        return "the type of a sum is not written out"
    return Split(before, loop, after, (*kept, *outer), frozenset(v.name for v in outer), again)


def _inside(
    facts: Facts, before: tuple[Node, ...], loop: CountedLoop
) -> tuple[tuple[str, ...], list[Variable]] | str:
    """Of the declarations before the loop: those to make again, and variables to keep; or why neither."""
    again: list[str] = []
    kept: list[Variable] = []
    for statement in before:
        mine = [v for v in facts.source.variables if v.declaration == statement]
        if not mine:
            continue
        fixed = not any(_changes(facts, v, loop) for v in mine) and not _follows(facts, statement, mine, kept)
        if fixed and not list(facts.accesses(statement)) and not facts.unsafe(statement):
            again.append(text_of(facts.source, statement))
            continue
        for v in mine:
            if v.is_array or v.is_pointer or v.is_shared:
                return f"{v.name} is declared before the loop and is no plain number"
            if v != loop.variable:
                kept.append(v)
    return tuple(again), kept


def _outer(facts: Facts, element: Element, loop: CountedLoop) -> list[Variable] | str:
    """Variables from before the bounds are checked that the element changes; or why they cannot be kept."""
    kept: list[Variable] = []
    for v in (v for v in facts.source.variables if v.declaration in element.setup):
        if v == loop.variable or not _is_changed(facts, v, element) or _scratch(facts, v, element):
            continue
        if v.is_array or v.is_pointer:
            return f"{v.name} carries more than a number over the loop"
        kept.append(v)
    return kept


def _is_changed(facts: Facts, v: Variable, element: Element) -> bool:
    return any(s.start_byte <= n.start_byte < s.end_byte for n in facts.assigned(v) for s in element.inner)


def _changes(facts: Facts, v: Variable, loop: CountedLoop) -> bool:
    return bool(facts.assigned(v)) or (v.init is None and not v.is_array) or v == loop.variable or v.is_array


def _follows(facts: Facts, statement: Node, mine: list[Variable], kept: list[Variable]) -> bool:
    """True if a declaration reads a variable that is kept or changes: made again, it may differ."""
    read = [v for n in find(statement, "identifier") if (v := facts.variable(n)) is not None]
    return any(v not in mine and (v in kept or bool(facts.assigned(v))) for v in read)


def _scratch(facts: Facts, v: Variable, element: Element) -> bool:
    """True if a variable only counts loops, each of which sets it anew."""
    loops = [counted(facts, n) for s in element.inner for n in find(s, "for_statement")]
    return any(p is not None and p.variable == v and counter_is_free(facts, p) for p in loops)
