"""Kernels with one element a thread whose neighbouring threads access neighbouring memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.indices.index_bounds import guarded, is_idle, touches
from warpsmith.extensions.rules.analysis.indices.lane_forms import Form, LaneForms
from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.memory.vector_access import CONDITIONAL, Group
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.extensions.rules.analysis.threads.block_places import uses_of
from warpsmith.extensions.rules.analysis.values.uniform_values import uniform_text
from warpsmith.source.tree.syntax_tree import Variable, ancestors, contains, find, strip

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
    """Those of both from which places in memory follow."""
    once: tuple[Node, ...]
    """Calls that access no memory and give no value: those of every lane are one."""
    groups: tuple[Group, ...]
    """Accesses to neighbouring elements."""
    shared: tuple[Group, ...]
    """Loads that are the same for every lane."""
    divisors: tuple[str, ...]
    """What has to be a multiple of the pack."""
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
    inner = [n for n in found.region if n.type != "return_statement"]
    everything = [*found.prefix, *inner]
    if index.declaration not in found.prefix:
        return f"{index.name} is declared after something that accesses memory"
    reason = _why_not(facts, inner)
    if reason:
        return reason
    forms = LaneForms(facts, index, everything)
    once = [n for n in everything if is_idle(facts, n)]
    setup = list(_setup(facts, [n for n in everything if n not in once]))
    work = [n for n in inner if n not in setup and n not in once]
    if any(facts.waits(n) for n in work) or any(
        n.start_byte > w.start_byte for n in once for w in work if facts.waits(n)
    ):
        return "it waits for another grid between its accesses"
    made = _groups(facts, forms, setup, work)
    if isinstance(made, str):
        return made
    groups, shared = made
    if not any(g.stores for g in groups):
        return "nothing is stored at neighbouring elements"
    narrow, small = _narrow(facts, forms, index, setup)
    return IndexPack(
        index,
        found.prefix,
        found.guards,
        tuple(inner),
        tuple(setup),
        tuple(once),
        tuple(groups),
        tuple(shared),
        tuple(forms.divisors),
        narrow,
        small,
    )


def _index(facts: Facts) -> Variable | str:
    """The one local that is the thread's global index, if nothing else asks for the thread's place."""
    body = facts.source.body
    own = [v for v in facts.source.variables if v.init is not None and v.declaration.parent == body]
    held = [v for v in own if v.init is not None and facts.coordinate(v.init) == "gid.x"]
    held = [v for v in held if v.init is not None and strip(v.init).type != "identifier"]
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
    own = [v for v in source.variables if contains(source.kernel, v.declaration)]
    if any(v.is_shared or "static" in source.of(v.declaration).split() for v in own):
        return "shared memory or a static variable ties elements together"
    if any(facts.is_volatile(v) for v in own if v.is_pointer):
        return "a buffer is volatile"
    for v in own:
        if v.is_parameter and facts.assigned(v):
            return f"{v.name} is changed"
    if any(find(n, *_LEAVES) for n in inner):
        return "an element may be left early"
    if any(n.type.startswith("preproc") for n in find(source.body, "preproc_if", "preproc_ifdef")):
        return "a preprocessor condition stands between its statements"
    return None


def _setup(facts: Facts, statements: Sequence[Node]) -> Iterator[Node]:
    """Declarations and assignments that follow from the index and the arguments alone."""
    known: set[Variable] = set()
    for n in statements:
        if touches(facts, n) or facts.unsafe(n):
            continue
        inner = n.named_child(0)
        assigns = n.type == "expression_statement" and inner is not None
        assigns = assigns and inner is not None and inner.type == "assignment_expression"
        declared = {v for v in facts.source.variables if v.declaration == n}
        if not (declared or assigns):
            continue
        used = {v for i in find(n, "identifier") if (v := facts.variable(i)) is not None}
        outside = {v for v in used if not (v.is_parameter or v.scope is None or v in declared)}
        if outside <= known and not any(v.is_array or v.is_shared for v in declared):
            known |= declared
            yield n


def _groups(
    facts: Facts, forms: LaneForms, setup: Sequence[Node], work: Sequence[Node]
) -> tuple[list[Group], list[Group]] | str:
    """Accesses to neighbours, and loads that are the same for every lane.

    The reason if a store is not to neighbours.
    """
    accesses = [(a, n) for n in work for a in facts.accesses(n) if a.reads or a.writes]
    unclear = next((a for a, _ in accesses if a.root is None), None)
    if unclear is not None:
        return f"where {facts.source.of(unclear.pointer)!r} points is not clear"
    outer = [(a, n) for a, n in accesses if a.root is not None and a.root.is_parameter]
    found: dict[tuple[str, str], list[Access]] = {}
    kinds: dict[tuple[str, str], Form] = {}
    for a, n in outer:
        form = Form.VARIES if _is_conditional(a.node, n) else _form(facts, forms, setup, a)
        key = _key(facts, a) if form is not Form.VARIES else ("", f"{len(found)}")
        found.setdefault(key, []).append(a)
        kinds[key] = form
    for key, members in found.items():
        root = members[0].root
        assert root is not None
        others = [a for a, _ in outer if a.root == root and a not in members]
        written = any(a.writes for a in (*members, *others))
        if written and (others or kinds[key] not in (Form.COUNTS, Form.NEXT)):
            where = members[0].where(facts.source)
            return f"{where} is not at neighbouring elements, and {root.name} is written"
    near = [k for k, form in kinds.items() if form in (Form.COUNTS, Form.NEXT)]
    same = [k for k, form in kinds.items() if form is Form.SAME]
    groups, shared = ([Group(k[0], k[1], "", tuple(found[k])) for k in keys] for keys in (near, same))
    return groups, shared


def _key(facts: Facts, a: Access) -> tuple[str, str]:
    """Pointer and index as text, for `Group`."""
    index = "" if a.index is None else facts.source.of(a.index)
    return facts.source.of(a.pointer), index.replace("{", "{{").replace("}", "}}")


def _form(facts: Facts, forms: LaneForms, setup: Sequence[Node], a: Access) -> Form:
    """The form of an access's index, if its place is known before the first access."""
    if a.index is None or a.node.type not in ("subscript_expression", "call_expression"):
        return Form.VARIES
    declared = {v for v in facts.source.variables if v.declaration in setup}
    for place in (a.pointer, a.index):
        named = {v for n in find(place, "identifier") if (v := facts.variable(n)) is not None}
        if any(not (v.is_parameter or v.scope is None or v in declared) for v in named):
            return Form.VARIES
        late = (n for v in named for n in facts.assigned(v))
        if any(not any(contains(s, n) for s in setup) for n in late):
            return Form.VARIES
    return Form.VARIES if forms.form(a.pointer) is not Form.SAME else forms.form(a.index)


def _is_conditional(node: Node, statement: Node) -> bool:
    """True if a statement may be executed without one of its accesses."""
    for a in (node, *ancestors(node)):
        if a.type in CONDITIONAL or (a.type == "binary_expression" and operator(a) in ("&&", "||")):
            return True
        if a == statement:
            return False
    return True


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
        text = uniform_text(facts, right)
        if (
            text is None
            or forms.form(left) is not Form.COUNTS
            or not (_long(facts, left) or _long(facts, right))
        ):
            continue
        found.append(n)
        small.append(text)
    return tuple(found), (index.name, *dict.fromkeys(small)) if found else ()


def _long(facts: Facts, node: Node) -> bool:
    """True if an expression may have 64 bits."""
    named = (facts.variable(n) for n in find(node, "identifier"))
    return any(v is not None and _LONG.fullmatch(v.kind) is not None for v in named)
