"""Kernels with one element a thread whose neighbouring threads access neighbouring memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.indices.index_bounds import GuardedBody, guarded, is_idle, touches
from warpsmith.extensions.rules.analysis.indices.lane_forms import LaneForm, LaneForms
from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.memory.vector_access import AccessGroup, braced, is_conditional
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.extensions.rules.analysis.threads.block_places import uses_of
from warpsmith.extensions.rules.analysis.values.uniform_values import uniform_text
from warpsmith.source.tree.syntax_tree import Variable, contains, find, strip

_LONG = re.compile(r"u?int64_t|size_t|ptrdiff_t|(?:unsigned )?long(?: long)?(?: int)?")
_LEAVES = ("return_statement", "goto_statement", "labeled_statement", "lambda_expression")


@dataclass(frozen=True)
class IndexPack:
    """A kernel of one element a thread, as statements of which each has its part in a pack."""

    index: Variable
    """The element: the thread's global index."""
    prefix: tuple[Node, ...]
    """Statements before the guards."""
    guards: tuple[tuple[Node, bool], ...]
    """Conditions, each with its value if the element is inside."""
    statements: tuple[Node, ...]
    """Statements inside the guards."""
    setup: tuple[Node, ...]
    """Statements of `prefix` and `statements` from which places in memory follow."""
    once: tuple[Node, ...]
    """Calls that access no memory and give no value: those of every lane are one."""
    groups: tuple[AccessGroup, ...]
    """Accesses to neighbouring elements."""
    shared: tuple[AccessGroup, ...]
    """Loads that are the same for every lane."""
    divisors: tuple[str, ...]
    """Expressions that have to be a multiple of the pack."""
    narrow: tuple[Node, ...]
    """Quotients and remainders of 64 bits that have 32 if `small` are below 2 to the 31st."""
    small: tuple[str, ...]


def find_pack(facts: Facts) -> IndexPack | str:
    """The pack of a kernel, or the reason why there is none."""
    index = _index(facts)
    if isinstance(index, str):
        return index
    found = guarded(facts)
    if not found.guards:
        return "no check keeps elements beyond the last one from memory"
    inner = tuple(n for n in found.region if n.type != "return_statement")
    if index.declaration not in found.prefix:
        return f"{index.name} is declared after something that accesses memory"
    return _why_not(facts, inner) or _packed(facts, index, found, inner)


def _packed(facts: Facts, index: Variable, found: GuardedBody, inner: tuple[Node, ...]) -> IndexPack | str:
    """The pack of statements whose elements are independent; the reason if they access no neighbours."""
    everything = [*found.prefix, *inner]
    forms = LaneForms(facts, index, everything)
    once = tuple(n for n in everything if is_idle(facts, n))
    setup = tuple(_setup(facts, [n for n in everything if n not in once]))
    work = [n for n in inner if n not in (*setup, *once)]
    late = [n for n in once if any(n.start_byte > w.start_byte for w in work)]
    if any(facts.waits(n) for n in (*work, *late)):
        return "it waits for another grid between its accesses"
    made = _groups(facts, forms, setup, work)
    if isinstance(made, str):
        return made
    if not any(g.stores for g in made[0]):
        return "nothing is stored at neighbouring elements"
    narrow, small = _narrow(facts, forms, index, setup)
    divisors = tuple(forms.divisors)
    return IndexPack(index, found.prefix, found.guards, inner, setup, once, *made, divisors, narrow, small)


def _index(facts: Facts) -> Variable | str:
    """The one local that is the thread's global index, if nothing else asks for the thread's place."""
    body = facts.source.body
    held = [v for v in facts.source.variables if v.declaration.parent == body and _is_index(facts, v.init)]
    if len(held) != 1:
        return "no single local is the thread's global index along x"
    v = held[0]
    if facts.assigned(v) or v.is_pointer:
        return f"{v.name} is changed"
    for function in facts.source.reachable:
        for n in find(function, "field_expression", "call_expression"):
            if facts.coordinate(n) is not None and not _feeds(facts, n, v):
                return f"`{facts.source.of(n)}` also reads a thread's place"
    return v


def _is_index(facts: Facts, value: Node | None) -> bool:
    """True for the thread's global index, unless another local holds it."""
    return value is not None and facts.coordinate(value) == "gid.x" and strip(value).type != "identifier"


def _feeds(facts: Facts, read: Node, v: Variable) -> bool:
    """True if a coordinate is only used for the index."""
    assert v.init is not None
    if contains(v.init, read):
        return True
    kept = next((w for w in facts.source.variables if w.init is not None and contains(w.init, read)), None)
    return kept is not None and all(contains(v.init, u) for u in uses_of(facts, kept))


def _why_not(facts: Facts, inner: Sequence[Node]) -> str | None:
    source = facts.source
    unsafe = facts.unsafe(source.body, in_order=True)
    if unsafe:
        return f"elements would not be independent: {unsafe}"
    tied = _why_tied(facts, [v for v in source.variables if contains(source.kernel, v.declaration)])
    if tied:
        return tied
    if any(find(n, *_LEAVES) for n in inner):
        return "an element may be left early"
    if find(source.body, "preproc_if", "preproc_ifdef"):
        return "a preprocessor condition stands between its statements"
    return None


def _why_tied(facts: Facts, own: Sequence[Variable]) -> str:
    """The reason why one of the kernel's own variables ties elements together; empty if none does."""
    if any(v.is_shared or "static" in facts.source.of(v.declaration).split() for v in own):
        return "shared memory or a static variable ties elements together"
    if any(facts.is_volatile(v) for v in own if v.is_pointer):
        return "a buffer is volatile"
    return next((f"{v.name} is changed" for v in own if v.is_parameter and facts.assigned(v)), "")


def _setup(facts: Facts, statements: Sequence[Node]) -> Iterator[Node]:
    """Declarations and assignments that follow from the index and the arguments alone."""
    known: set[Variable] = set()
    for n in statements:
        declared = set(facts.declared_by(n))
        if touches(facts, n) or facts.unsafe(n) or not (declared or _assigns(n)):
            continue
        outside = _locals_in(facts, n) - declared
        if outside <= known and not any(v.is_array or v.is_shared for v in declared):
            known |= declared
            yield n


def _assigns(statement: Node) -> bool:
    inner = statement.named_child(0) if statement.type == "expression_statement" else None
    return inner is not None and inner.type == "assignment_expression"


def _locals_in(facts: Facts, node: Node) -> set[Variable]:
    return {v for v in facts.variables_in(node) if not (v.is_parameter or v.scope is None)}


def _groups(
    facts: Facts, forms: LaneForms, setup: Sequence[Node], work: Sequence[Node]
) -> tuple[tuple[AccessGroup, ...], tuple[AccessGroup, ...]] | str:
    """Accesses to neighbours, and loads that are the same for every lane.

    The reason if a store is not to neighbours.
    """
    accesses = [(a, n) for n in work for a in facts.accesses(n) if a.reads or a.writes]
    unclear = next((a for a, _ in accesses if a.root is None), None)
    if unclear is not None:
        return f"where {facts.source.of(unclear.pointer)!r} points is not clear"
    outer = [(a, n) for a, n in accesses if a.root is not None and a.root.is_parameter]
    found = _by_form(facts, forms, setup, outer)
    mixed = (_mixed(facts, form, members, outer) for (_, _, form), members in found.items())
    reason = next((reason for reason in mixed if reason), None)
    if reason is not None:
        return reason
    return _as_groups(found, LaneForm.COUNTS, LaneForm.NEXT), _as_groups(found, LaneForm.SAME)


def _as_groups(
    found: dict[tuple[str, str, LaneForm], list[Access]], *forms: LaneForm
) -> tuple[AccessGroup, ...]:
    """The groups of accesses whose index has one of the forms."""
    chosen = ((k, members) for k, members in found.items() if k[2] in forms)
    return tuple(AccessGroup(k[0], k[1], "", tuple(members)) for k, members in chosen)


def _by_form(
    facts: Facts, forms: LaneForms, setup: Sequence[Node], accesses: Sequence[tuple[Access, Node]]
) -> dict[tuple[str, str, LaneForm], list[Access]]:
    """Accesses, each with its statement, by pointer, index and form of the index."""
    found: dict[tuple[str, str, LaneForm], list[Access]] = {}
    for a, n in accesses:
        form = LaneForm.VARIES if is_conditional(n.parent or n, a.node) else _form(facts, forms, setup, a)
        found.setdefault((*_key(facts, a, form, len(found)), form), []).append(a)
    return found


def _key(facts: Facts, a: Access, form: LaneForm, number: int) -> tuple[str, str]:
    """Pointer and index as text, for `AccessGroup`; elements that vary stay apart, each by a number."""
    if form is LaneForm.VARIES:
        return "", str(number)
    return facts.source.of(a.pointer), "" if a.index is None else braced(facts.source.of(a.index))


def _mixed(
    facts: Facts, form: LaneForm, members: list[Access], accesses: list[tuple[Access, Node]]
) -> str | None:
    """The reason why a buffer that is written may not be accessed in packs; None if nothing shows one."""
    root = members[0].root
    assert root is not None
    others = [a for a, _ in accesses if a.root == root and a not in members]
    written = any(a.writes for a in (*members, *others))
    if written and (others or form not in (LaneForm.COUNTS, LaneForm.NEXT)):
        where = members[0].where(facts.source)
        return f"{where} is not at neighbouring elements, and {root.name} is written"
    return None


def _form(facts: Facts, forms: LaneForms, setup: Sequence[Node], a: Access) -> LaneForm:
    """The form of an access's index, if its place is known before the first access."""
    if a.index is None or a.node.type not in ("subscript_expression", "call_expression"):
        return LaneForm.VARIES
    if any(_is_late(facts, setup, v) for place in (a.pointer, a.index) for v in facts.variables_in(place)):
        return LaneForm.VARIES
    return LaneForm.VARIES if forms.form(a.pointer) is not LaneForm.SAME else forms.form(a.index)


def _is_late(facts: Facts, setup: Sequence[Node], v: Variable) -> bool:
    """True if other statements than those of the setup declare or change a variable."""
    if not (v.is_parameter or v.scope is None or v.declaration in setup):
        return True
    return any(not any(contains(s, n) for s in setup) for n in facts.assigned(v))


def _narrow(
    facts: Facts, forms: LaneForms, index: Variable, setup: Sequence[Node]
) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """Divisions of 64 bits, and what has to be small so that 32 bits suffice."""
    found: list[Node] = []
    small: list[str] = []
    for n in (n for s in setup for n in find(s, "binary_expression")):
        if operator(n) not in ("/", "%"):
            continue
        left, right = operands(n)
        text, counts = uniform_text(facts, right), forms.form(left) is LaneForm.COUNTS
        if text is not None and counts and (_long(facts, left) or _long(facts, right)):
            found.append(n)
            small.append(text)
    return tuple(found), (index.name, *dict.fromkeys(small)) if found else ()


def _long(facts: Facts, node: Node) -> bool:
    """True if an expression may have 64 bits."""
    return any(_LONG.fullmatch(v.kind) is not None for v in facts.variables_in(node))
