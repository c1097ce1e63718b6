"""Values in their usual form: locals written out, global indices by name, needless casts left out."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.rewrite.analysis.kernel_facts import AXES, Facts
from warpsmith.rewrite.analysis.operations import element_of, operands, operator
from warpsmith.rewrite.form.expressions import (
    OF_32_BITS,
    Edits,
    Spelling,
    block_of,
    cast_of,
    coordinate_text,
    dtype_of,
    is_nonnegative,
    is_seen_everywhere,
    is_whole_buffer,
    locals_of,
    one_type,
    removed,
    stays,
    uses_of,
)
from warpsmith.rewrite.source.syntax_tree import Edit, Variable, ancestors, find, strip

_OF_64_BITS = (Dtype.INT64, Dtype.UINT64)
_BRACKETS = ("subscript_argument_list", "argument_list", "init_declarator")
_COMPARE = ("<", ">", "<=", ">=", "==", "!=")


def needless_casts(spelling: Spelling) -> Iterator[Edits]:
    """`(int)i` becomes `i` where `i` is an `int`, and so does `(size_t)i` beside a coordinate of OpenCL."""
    facts = spelling.facts
    for node in find(facts.source.body, "cast_expression"):
        dtype, value = cast_of(facts, node)
        v = None if value is None else facts.variable(strip(value))
        if value is None or dtype is None:
            continue
        same = dtype is _of_coordinates(facts) if v is None and _is_built_in(facts, value) else False
        kept = v is not None and (dtype_of(v) is dtype or _becomes(facts, node, dtype, dtype_of(v)))
        if same or kept:
            yield (Edit(node.start_byte, node.end_byte, facts.source.of(strip(value))),)


def _of_coordinates(facts: Facts) -> Dtype:
    """The type of a coordinate in the language's own words."""
    return Dtype.UINT64 if facts.source.backend is Backend.OPENCL else Dtype.UINT32


def _is_built_in(facts: Facts, node: Node) -> bool:
    node = strip(node)
    return node.type in ("field_expression", "call_expression") and facts.coordinate(node) is not None


def _becomes(facts: Facts, cast: Node, dtype: Dtype, own: Dtype | None) -> bool:
    """True if the other operand of a sum or product makes an integer this wide without the cast."""
    around = cast.parent
    wider = dtype is Dtype.UINT64 and dtype is _of_coordinates(facts) and own in (*OF_32_BITS, *_OF_64_BITS)
    if not wider or around is None or around.type != "binary_expression":
        return False
    left, right = operands(around)
    other = strip(right if left == cast else left)
    return operator(around) in ("+", "*") and _is_built_in(facts, other)


def narrow_indices(spelling: Spelling) -> Iterator[Edits]:
    """`x[(size_t)row * n + i]` becomes `x[row * n + i]` where an `int` numbers the elements.

    Sums, differences and products keep their value, which an `int` holds, whatever carries are dropped.
    """
    facts = spelling.facts
    elements = find(facts.source.body, "subscript_expression") if spelling.is_small else []
    found = [index for n in elements if (index := _index_in_whole(facts, n)) is not None]
    # A local of 32 bits keeps just what a sum of 32 bits would have.
    found += [v.init for v in locals_of(facts) if v.init is not None and dtype_of(v) in OF_32_BITS]
    for index in found:
        for cast in find(index, "cast_expression") if _is_ring(facts, index) else ():
            value = cast.child_by_field_name("value")
            assert value is not None
            yield (Edit(cast.start_byte, cast.end_byte, facts.source.of(value)),)


def _index_in_whole(facts: Facts, element: Node) -> Node | None:
    """The index of an element that is counted from the first of its buffer, so that it is never negative."""
    base, index = element_of(element) or (None, None)
    v = None if base is None else facts.variable(strip(base))
    return index if v is not None and is_whole_buffer(facts, v) else None


def _is_ring(facts: Facts, node: Node) -> bool:
    """True for sums, differences and products of numbers of 32 bits, some of them widened."""
    node = strip(node)
    match node.type:
        case "number_literal":
            return facts.source.of(node).isdigit()
        case "identifier":
            v = facts.variable(node)
            return v is not None and dtype_of(v) in OF_32_BITS
        case "field_expression":
            return facts.coordinate(node) is not None
        case "binary_expression" if operator(node) in ("+", "-", "*"):
            return all(_is_ring(facts, o) for o in operands(node))
        case "cast_expression":
            dtype, value = cast_of(facts, node)
            return value is not None and dtype in (*OF_32_BITS, *_OF_64_BITS) and _is_ring(facts, value)
    return False


def places_written_out(spelling: Spelling) -> Iterator[Edits]:
    """`int at = row * n + i; ... x[at]` becomes `... x[row * n + i]`.

    Only integers that never change, made of what does not change either until they are used.
    """
    facts = spelling.facts
    for v in locals_of(facts):
        uses = _uses(facts, v)
        if uses and v.init is not None:
            edits = [removed(facts, v.declaration)]
            text = facts.source.of(v.init)
            bare = not v.init.named_children
            for n in uses:
                alone = bare or (n.parent is not None and n.parent.type == "subscript_argument_list")
                edits.append(_replaced(n, text if alone else f"({text})"))
            yield tuple(edits)


def _replaced(node: Node, text: str) -> Edit:
    """A name or an expression in parentheses in the place of another expression, whose own go."""
    while node.parent is not None and node.parent.type == "parenthesized_expression":
        around = node.parent.parent
        if around is None or not (around.type.endswith("_expression") or around.type in _BRACKETS):
            break
        node = node.parent
    return Edit(node.start_byte, node.end_byte, text)


def _uses(facts: Facts, v: Variable) -> list[Node]:
    """Where a local is used; nothing if it may not be written out."""
    dtype, block = dtype_of(v), block_of(v)
    if v.init is None or dtype is None or dtype.is_float or facts.assigned(v):
        return []
    if block is None or not is_seen_everywhere(facts, v):
        return []
    if facts.coordinate(v.init) and v.init.type != "identifier":
        return []
    uses = uses_of(facts, v, block)
    return uses if one_type(facts, v.init) is dtype and stays(facts, v.init, block, uses) else []


def unused_locals(spelling: Spelling) -> Iterator[Edits]:
    """Locals that nothing uses go, if computing them does nothing else."""
    facts = spelling.facts
    for v in locals_of(facts):
        d, block = v.declaration, block_of(v)
        if block is None or v.is_shared or dtype_of(v) is None or not is_seen_everywhere(facts, v):
            continue
        if "volatile" not in facts.source.of(d) and _has_no_effect(facts, d) and not uses_of(facts, v, block):
            yield (removed(facts, d),)


def _has_no_effect(facts: Facts, node: Node) -> bool:
    if find(node, "assignment_expression", "update_expression", "subscript_expression", "pointer_expression"):
        return False
    return all(facts.coordinate(c) is not None for c in find(node, "call_expression"))


def named_coordinates(spelling: Spelling) -> Iterator[Edits]:
    """A coordinate is written in the language's own words, whatever locals and casts stand for its parts.

    Only where a local of 32 bits takes the value, or the type is the same.
    """
    facts = spelling.facts
    yield from _named_in_locals(facts)
    for node in find(facts.source.body, "binary_expression"):
        name = facts.coordinate(node)
        if name is None or name[:-2] not in ("gid", "gsize") or _inside_of_one(facts, node):
            continue
        text = coordinate_text(facts, name)
        if facts.source.of(node) != text and _has_own(node):
            yield (Edit(node.start_byte, node.end_byte, text),)


def _named_in_locals(facts: Facts) -> Iterator[Edits]:
    """The same for what locals are set to: there an earlier local of the same value is named instead."""
    known: dict[tuple[str, Dtype | None], Variable] = {}
    for v, init, name in _locals_of_coordinates(facts):
        stays_so = not facts.assigned(v)
        text = coordinate_text(facts, name)
        same = known.get((name, dtype_of(v)))
        if same is not None and stays_so and facts.source.lookup(same.name, init) == same:
            text = same.name
        if facts.source.of(init) != text:
            yield (Edit(init.start_byte, init.end_byte, text),)
        if v.declaration.parent == facts.source.body and stays_so:
            known.setdefault((name, dtype_of(v)), v)


def _locals_of_coordinates(facts: Facts) -> Iterator[tuple[Variable, Node, str]]:
    """Locals of 32 bits that begin as a coordinate, with its spelling and its name; no copies of another."""
    for v in locals_of(facts):
        name = None if v.init is None or dtype_of(v) not in OF_32_BITS else facts.coordinate(v.init)
        if v.init is None or name is None or _is_block_extent(facts, v.init):
            continue
        copied = facts.variable(strip(v.init))
        if copied is None or dtype_of(copied) is not dtype_of(v):
            yield v, v.init, name


def _is_block_extent(facts: Facts, node: Node) -> bool:
    """True for a macro or parameter that is the block's extent, and may be another one later."""
    return node.type == "identifier" and facts.variable(node) is None


def _inside_of_one(facts: Facts, node: Node) -> bool:
    parents = (a for a in ancestors(node) if a.type == "binary_expression")
    return any(facts.coordinate(a) for a in parents)


def _has_own(node: Node) -> bool:
    """True if an operand is a coordinate of the language itself, whose type wins."""
    words = find(node, "field_expression", "call_expression")
    casts = [find(c, "field_expression", "call_expression") for c in find(node, "cast_expression")]
    return any(not any(w in inner for inner in casts) for w in words)


def first_of_block_written_out(spelling: Spelling) -> Iterator[Edits]:
    """`int first = blockIdx.x * blockDim.x; ... first + threadIdx.x` becomes a global index in one piece."""
    facts = spelling.facts
    for v in locals_of(facts):
        scope, first = v.declaration.parent, _first_of_block(facts, v)
        if scope is None or first is None:
            continue
        for n in find(scope, "identifier"):
            other = _other_summand(n) if facts.variable(n) == v else None
            if other is not None and (facts.coordinate(other) or "").startswith("tid."):
                yield (Edit(n.start_byte, n.end_byte, facts.source.of(first)),)


def _first_of_block(facts: Facts, v: Variable) -> Node | None:
    """The product to which a local is set, and which stays the global index of the block's first thread."""
    if v.init is None or dtype_of(v) not in OF_32_BITS or facts.assigned(v):
        return None
    init = strip(v.init)
    if init.type != "binary_expression" or operator(init) != "*":
        return None
    parts = {facts.coordinate(o) for o in operands(init)}
    return init if any(parts == {f"bid.{a}", f"bdim.{a}"} for a in AXES) else None


def _other_summand(node: Node) -> Node | None:
    """The other operand of the `+` whose operand a node is."""
    around = node.parent
    if around is None or around.type != "binary_expression" or operator(around) != "+":
        return None
    left, right = operands(around)
    return right if left == node else left


def global_indices(spelling: Spelling) -> Iterator[Edits]:
    """A global index that stands in an expression is declared at the kernel's top and used by name.

    As an `int` wherever an `int` does the same: in comparisons with what is not negative, in indices.
    """
    facts = spelling.facts
    body = facts.source.body
    places: dict[str, list[Node]] = {}
    for node in find(body, "binary_expression", "call_expression"):
        name = facts.coordinate(node)
        stands = name is not None and name.startswith("gid.") and not _inside_of_one(facts, node)
        if name is not None and stands and not _is_value(node):
            places.setdefault(name, []).append(node)
    kind = "size_t" if facts.source.backend is Backend.OPENCL else "unsigned int"
    declared = ""
    edits: list[Edit] = []
    for name in sorted(places):
        nodes = places[name]
        as_int = all(_takes_int(spelling, n) for n in nodes)
        nodes = nodes if as_int else [n for n in nodes if _has_own(n)]
        if nodes:
            local = _free_name(facts, f"global_{name[-1]}")
            declared += f"\n  const {'int' if as_int else kind} {local} = {coordinate_text(facts, name)};"
            edits += (_replaced(n, local) for n in nodes)
    if edits:
        yield Edit(body.start_byte + 1, body.start_byte + 1, declared), *edits


def _takes_int(spelling: Spelling, node: Node) -> bool:
    """True if what is made of an expression is the same for an `int` and for an unsigned or wider number."""
    parent, is_sum = node.parent, False
    while parent is not None and parent.type in ("parenthesized_expression", "binary_expression"):
        if parent.type == "binary_expression":
            if operator(parent) in _COMPARE:
                left, right = operands(parent)
                return not is_sum and is_nonnegative(spelling, right if left == node else left)
            if operator(parent) not in ("+", "-", "*"):
                return False
            is_sum = True
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type == "cast_expression":
        return cast_of(spelling.facts, parent)[0] in OF_32_BITS
    if parent.type == "init_declarator":
        taker = next((v for v in spelling.facts.source.variables if v.init == node), None)
        return taker is not None and dtype_of(taker) in OF_32_BITS
    return parent.type == "subscript_argument_list" and spelling.is_small


def _is_value(node: Node) -> bool:
    """True for the whole value of a declaration."""
    parent = node.parent
    while parent is not None and parent.type in ("parenthesized_expression", "cast_expression"):
        node, parent = parent, parent.parent
    return parent is not None and parent.type == "init_declarator"


def _free_name(facts: Facts, wish: str) -> str:
    while wish in facts.source.text:
        wish += "_"
    return wish
