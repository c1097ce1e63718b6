"""Keeps an element of memory in a register if a loop updates it in every iteration."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange
from warpsmith.extensions.rules.analysis.indices.index_bounds import statements
from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.loops.counted_loops import CountedLoop, counted, ends_early
from warpsmith.extensions.rules.analysis.operations import operator
from warpsmith.source.tree.syntax_tree import Edit, Variable, ancestors, find

_MOST = 64


@dataclass(frozen=True)
class _KeptSum:
    loop: CountedLoop
    accesses: tuple[Access, ...]
    touched: bool
    """True if the element is written just before the loop, so that it may be read and written without an
    iteration."""


class RegisterSum(Rule):
    """Keeps `c[i]` of `for (...) c[i] += ...` in a register, and writes it back once.

    Proven: the address does not change in the loop; nothing else in the loop accesses the buffer (buffers of
    a job never overlap); nothing synchronises; and the element is not accessed if the loop has no iteration.
    """

    name = "register_sum"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        made, edited, reason = draft, 0, ""
        while edited < _MOST:
            found, why = _find(made.facts)
            reason = why or reason
            if found is None:
                break
            made = made.rewritten(_edited(made, found, edited))
            edited += 1
        if not edited and reason:
            return Declined(DeclineCode.DEPENDENCE, reason)
        if not edited:
            return Declined(DeclineCode.FORM, "no element of memory is updated in every iteration of a loop")
        return made.changed(RuleChange(self.name, f"{edited} element(s)"))


def _find(facts: Facts) -> tuple[_KeptSum | None, str]:
    reason = ""
    for node in find(facts.source.body, "for_statement"):
        loop = counted(facts, node)
        if loop is None:
            continue
        for group in _groups(facts, loop):
            kept = _keep(facts, loop, group)
            if isinstance(kept, _KeptSum):
                return kept, ""
            reason = reason or f"loop at line {loop.line}: {kept}"
    return None, reason


def _groups(facts: Facts, loop: CountedLoop) -> Iterator[list[Access]]:
    """Accesses of the loop to one and the same element, which is both read and written."""
    found: dict[str, list[Access]] = {}
    for a in facts.accesses(loop.body):
        if a.node.type == "subscript_expression" and a.root is not None and a.root.is_parameter:
            found.setdefault(a.where(facts.source), []).append(a)
    for group in found.values():
        if any(a.writes for a in group) and any(a.reads for a in group):
            yield group


@dataclass(frozen=True)
class _Element:
    """An element of memory that a loop reads and writes, as the preconditions look at it."""

    facts: Facts
    loop: CountedLoop
    group: list[Access]
    """Its accesses in the loop."""
    root: Variable
    everything: list[Access]
    """All accesses of the loop, its header's included."""

    @property
    def text(self) -> str:
        """The element as written."""
        return self.facts.source.of(self.group[0].node)


def _keep(facts: Facts, loop: CountedLoop, group: list[Access]) -> _KeptSum | str:
    root = group[0].root
    assert root is not None
    element = _Element(facts, loop, group, root, list(facts.accesses(loop.node)))
    reason = next((found for check in _CHECKS if (found := check(element))), None)
    if reason is not None:
        return reason
    if _touched(facts, loop, group[0]):
        return _KeptSum(loop, tuple(group), True)
    if ends_early(loop) or not any(_always(loop, a.node) for a in group if a.writes):
        return f"{element.text} may be left alone by some iterations"
    if _bounds_do_more(facts, loop):
        return "its bounds read memory or call a function"
    return _KeptSum(loop, tuple(group), False)


def _unclear_pointer(e: _Element) -> str | None:
    return "where a pointer points is not clear" if any(a.root is None for a in e.everything) else None


def _other_use(e: _Element) -> str | None:
    if sum(a.root == e.root for a in e.everything) != len(e.group):
        return f"{e.text} is not the only use of {e.root.name} in it"
    return None


def _unsafe(e: _Element) -> str | None:
    return e.facts.unsafe(e.loop.node)


def _no_plain_buffer(e: _Element) -> str | None:
    source = e.facts.source
    if "volatile" in source.of(e.root.declaration) or re.search(r"\*.*\*", source.of(e.root.declarator)):
        return f"{e.root.name} is no plain buffer"
    return None


def _moving_address(e: _Element) -> str | None:
    first = e.group[0].node
    for v in e.facts.variables_in(first):
        if v == e.loop.variable or e.loop.declares(v):
            return f"{e.text} differs between iterations"
        if e.facts.changes_in(v, e.loop.node):
            return f"the address of {e.text} changes"
    return None


def _address_from_changing_memory(e: _Element) -> str | None:
    first = e.group[0].node
    written = {a.root.name for a in e.everything if a.writes and a.root is not None}
    inner = [a for a in e.facts.accesses(first) if a.node != first]
    if any(a.root is not None and a.root.name in written for a in inner):
        return f"the address of {e.text} is read from memory that changes"
    return None


_CHECKS: tuple[Callable[[_Element], str | None], ...] = (
    _unclear_pointer,
    _other_use,
    _unsafe,
    _no_plain_buffer,
    _moving_address,
    _address_from_changing_memory,
)
"""Each says why it does not hold."""


def _bounds_do_more(facts: Facts, loop: CountedLoop) -> bool:
    """True if the loop's bounds read memory, call a function or count something."""
    reads = any(True for n in (loop.start, loop.bound) for _ in facts.accesses(n))
    return reads or bool(find(loop.bound, "call_expression", "update_expression"))


def _always(loop: CountedLoop, node: Node) -> bool:
    """True if every iteration reaches the node: it lies in a statement of the body itself."""
    kinds = ("if_statement", "conditional_expression", "switch_statement", "while_statement", "for_statement")
    for a in ancestors(node):
        if a == loop.node:
            return True
        if a.type in (*kinds, "do_statement"):
            return False
        if a.type == "binary_expression" and operator(a) in ("&&", "||"):
            return False
    return False


def _touched(facts: Facts, loop: CountedLoop, a: Access) -> bool:
    """True if a statement of the same block writes the element before, with nothing changed since."""
    parent = loop.node.parent
    if parent is None or parent.type != "compound_statement":
        return False
    names = {facts.source.of(n) for n in find(a.node, "identifier")}
    before = [s for s in statements(parent) if s.end_byte <= loop.node.start_byte]
    for statement in (s for s in reversed(before) if s.type != "preproc_call"):
        if statement.type not in ("expression_statement", "declaration"):
            return False
        if a.where(facts.source) in _written(facts, statement):
            return True
        if any(v.name in names and _sets(facts, statement, v) for v in facts.source.variables):
            return False
    return False


def _written(facts: Facts, statement: Node) -> set[str]:
    return {a.where(facts.source) for a in facts.accesses(statement) if a.writes}


def _sets(facts: Facts, statement: Node, v: Variable) -> bool:
    return v.declaration == statement or facts.changes_in(v, statement)


def _edited(draft: Draft, kept: _KeptSum, number: int) -> list[Edit]:
    source, loop, first = draft.source, kept.loop, kept.accesses[0]
    assert first.root is not None
    name, place = f"ws_sum_{number}", source.of(first.node)
    kind = first.root.type_text
    start, bound = source.of(loop.start), source.of(loop.bound)
    trip = "" if kept.touched else f"(({start}) {loop.sign} ({bound}))"
    # A structure has no zero that a conditional expression could use.
    load = f"{kind} {name}; if ({trip}) {name} = {place};" if trip else f"{kind} {name} = {place};"
    store = f"{place} = {name};" if not trip else f"if ({trip}) {place} = {name};"
    alone = loop.node.parent is None or loop.node.parent.type != "compound_statement"
    edits = [Edit(a.node.start_byte, a.node.end_byte, name) for a in kept.accesses]
    begin, end = loop.node.start_byte, loop.node.end_byte
    edits.append(Edit(begin, begin, f"{'{ ' if alone else ''}{load}\n"))
    edits.append(Edit(end, end, f"\n{store}{' }' if alone else ''}"))
    return edits
