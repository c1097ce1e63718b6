"""Contiguous accesses of a strided loop, of which one wide access can serve several iterations."""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.loops.inner_rounds import Rounds, rounds_of
from warpsmith.extensions.rules.analysis.loops.strided_loops import StridedLoop, depends, element_text
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.source.tree.syntax_tree import LOOPS, Edit, Source, ancestors, find, plain, strip

CONDITIONAL = (
    "if_statement",
    "conditional_expression",
    "switch_statement",
    "lambda_expression",
    "preproc_if",
    "preproc_ifdef",
    *LOOPS,
)
"""Nodes whose parts may not be executed."""
_SCALARS = frozenset(
    "char uchar short ushort int uint long ulong float double half int32_t uint32_t".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class AccessGroup:
    """Accesses of one loop to the same contiguous elements."""

    pointer: str
    index: str
    """The index, with the loop variable as `{i}`."""
    element: str
    """Element type as declared."""
    accesses: tuple[Access, ...]
    rounds: Rounds | None = None
    """The loop inside an iteration whose rounds access elements of their own; its counter is in the index."""

    @property
    def loads(self) -> bool:
        """True if an old value is needed."""
        return any(a.reads for a in self.accesses)

    @property
    def stores(self) -> bool:
        """True if a value is written back."""
        return any(a.writes for a in self.accesses)

    @property
    def is_half_call(self) -> bool:
        """True for OpenCL's `vload_half` and `vstore_half`."""
        return any(plain(a.node).startswith(("vload_half", "vstore_half")) for a in self.accesses)

    def address(self, first: str) -> str:
        """Address of the element whose index is `first`."""
        index = self.index.format(i=first)
        return f"({self.pointer}) + ({index})" if self.is_half_call else f"&{self.pointer}[{index}]"

    def lane_edits(self, source: Source, base: int, lane: str) -> Iterator[Edit]:
        """Edits of a text that begins at byte `base`, so that it uses `lane` instead of memory."""
        for a in self.accesses:
            first, last = a.node.start_byte - base, a.node.end_byte - base
            if a.node.type == "call_expression" and a.writes:
                value = source.arguments(a.node)[0 if self.is_half_call else 1]
                yield Edit(first, value.start_byte - base, f"{lane} = ")
                yield Edit(value.end_byte - base, last, "")
            else:
                yield Edit(first, last, lane)


def groups(facts: Facts, loop: StridedLoop, *, rounds: bool = False) -> list[AccessGroup]:
    """The contiguous groups of a loop for which a wide access equals the single ones.

    Args:
        rounds: whether to find reads in loops of a few rounds inside an iteration, too.
    """
    accesses = [
        a
        for a in facts.accesses(loop.body)
        if a.root is not None and a.root.is_parameter and not a.root.is_shared
    ]
    found: dict[str, list[_Contiguous]] = {}
    excluded: set[str] = set()
    for a in accesses:
        assert a.root is not None
        inner = rounds_of(facts, loop.node, a) if rounds and not a.writes else None
        key = _key(facts, loop, a, inner)
        if key is None:
            excluded.add(a.root.name)
            continue
        same = element_text(facts, loop, a)
        same += "" if inner is None else f" in {inner.loop.node.start_byte}"
        found.setdefault(same, []).append(_Contiguous(a, *key, inner))
    made = (_group(facts, loop, alike, accesses, excluded) for alike in found.values())
    return [group for group in made if group is not None]


@dataclass(frozen=True)
class _Contiguous:
    """An access to neighbours of the elements that other iterations access."""

    access: Access
    pointer: str
    index: str
    inner: Rounds | None


def _group(
    facts: Facts, loop: StridedLoop, alike: list[_Contiguous], accesses: list[Access], excluded: set[str]
) -> AccessGroup | None:
    """The group of accesses to the same elements; None where a wide access would not equal them."""
    first, members = alike[0], [c.access for c in alike]
    if not (_is_alone(members, accesses, excluded) and _is_firm(loop, members, first.inner)):
        return None
    element = _element(facts, first.access)
    one_form = not facts.is_opencl or len({a.node.type for a in members}) == 1
    if element is None or not one_form:
        return None
    return AccessGroup(first.pointer, first.index, element, tuple(members), first.inner)


def _is_alone(members: list[Access], accesses: list[Access], excluded: set[str]) -> bool:
    """True if the buffer of a group is only read, or only used by the group."""
    root = members[0].root
    assert root is not None
    mine = [a for a in accesses if a.root == root]
    if not any(a.writes for a in mine):
        return True
    return root.name not in excluded and all(a in members for a in mine)


def _is_firm(loop: StridedLoop, members: list[Access], inner: Rounds | None) -> bool:
    """True if every iteration has some access of a group, and all of its writes."""
    if inner is not None and is_conditional(loop.node, inner.loop.node):
        return False
    around = loop.node if inner is None else inner.loop.node
    firm = [a for a in members if not is_conditional(around, a.node)]
    return bool(firm) and all(a in firm for a in members if a.writes)


def _key(facts: Facts, loop: StridedLoop, a: Access, inner: Rounds | None) -> tuple[str, str] | None:
    """Pointer and index of a contiguous access; None for any other."""
    # An address that is only taken says nothing of what happens behind it.
    if not (a.reads or a.writes) or a.index is None:
        return None
    if a.node.type not in ("subscript_expression", "call_expression"):
        return None
    halves = ("vload_half", "vstore_half")
    if facts.is_opencl and a.node.type == "call_expression" and facts.source.callee(a.node) not in halves:
        return None
    if depends(facts, a.pointer, loop) or _changes(facts, loop, a.pointer):
        return None
    index = unit_stride(facts, loop, a.index, inner=inner)
    return None if index is None else (facts.source.of(a.pointer), index)


def unit_stride(
    facts: Facts, loop: StridedLoop, node: Node, depth: int = 0, inner: Rounds | None = None
) -> str | None:
    """The index with the loop variable as `{i}`, if it is the variable plus a value that is the same in every
    iteration; else None.

    Args:
        inner: a loop inside an iteration whose counter the value may follow.
    """
    node = strip(node)
    match node.type:
        case "identifier":
            v = facts.variable(node)
            own = v is not None and loop.declares(v) and depth < 8
            value = facts.value_of(node) if own else None
            followed = None if value is None else unit_stride(facts, loop, value, depth + 1, inner)
            return "{i}" if v == loop.variable else followed
        case "cast_expression":
            value = node.child_by_field_name("value")
            found = None if value is None else unit_stride(facts, loop, value, depth, inner)
            return None if found is None else f"({found})"
        case "binary_expression" if operator(node) in "+-":
            return _moved_stride(facts, loop, node, depth, inner)
    return None


def _moved_stride(
    facts: Facts, loop: StridedLoop, node: Node, depth: int, inner: Rounds | None
) -> str | None:
    """The index as `unit_stride` gives it for a sum or difference, one operand of which stays."""
    left, right = operands(node)
    first = unit_stride(facts, loop, left, depth, inner)
    if first is not None and _fixed(facts, loop, right, inner):
        return f"{first} {operator(node)} {braced(facts.source.of(right))}"
    second = unit_stride(facts, loop, right, depth, inner) if operator(node) == "+" else None
    if second is not None and _fixed(facts, loop, left, inner):
        return f"{braced(facts.source.of(left))} + {second}"
    return None


def braced(text: str) -> str:
    """A text for `str.format`, which leaves its braces as they are."""
    return text.replace("{", "{{").replace("}", "}}")


def _fixed(facts: Facts, loop: StridedLoop, node: Node, inner: Rounds | None) -> bool:
    """True if a value is the same in every iteration, apart from the counter of an inner loop."""
    counter = None if inner is None else inner.loop.variable
    named = [n for n in find(node, "identifier") if counter is None or facts.variable(n) != counter]
    if find(node, "subscript_expression") or any(
        depends(facts, n, loop) or _changes(facts, loop, n) for n in named
    ):
        return False
    if any(loop.declares(v) for n in named if (v := facts.variable(n))):
        return False
    return all(facts.coordinate(c) is not None for c in find(node, "call_expression"))


def _changes(facts: Facts, loop: StridedLoop, node: Node) -> bool:
    """True if the loop assigns something that the expression names."""
    return any(facts.changes_in(v, loop.node) for v in facts.variables_in(node))


def is_conditional(around: Node, node: Node) -> bool:
    """True if a loop or a statement may be executed without a node inside."""
    for a in ancestors(node):
        if a == around:
            return False
        if a.type in CONDITIONAL or (a.type == "binary_expression" and operator(a) in ("&&", "||")):
            return True
    return True


def _element(facts: Facts, a: Access) -> str | None:
    """Declared element type of the pointer."""
    v = next((v for v in facts.variables_in(a.pointer) if v.is_pointer), None)
    name = None if v is None else v.kind.strip()
    return None if facts.is_opencl and name not in _SCALARS else name
