"""What expressions of a kernel are: integers, parts of sums, values that differ between threads."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.rewrite.analysis.coordinates import OPENCL_FUNCTIONS
from warpsmith.rewrite.analysis.kernel_facts import AXES, Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.reader.declarations.type_words import element_type
from warpsmith.rewrite.reader.lexing.tokens import blank
from warpsmith.rewrite.source.syntax_tree import Edit, Variable, find, strip

_LOOSE = ("conditional_expression", "assignment_expression", "comma_expression", "lambda_expression")
_OF_SUMS = ("+", "-", "*", "/", "%")
_OF_BITS = ("<<", ">>", "&", "|", "^")
_OPENCL_NAMES = {kind: name for name, kind in OPENCL_FUNCTIONS.items()}
_CUDA_NAMES = {
    "tid": "threadIdx.{0}",
    "bid": "blockIdx.{0}",
    "bdim": "blockDim.{0}",
    "gdim": "gridDim.{0}",
    "gid": "blockIdx.{0} * blockDim.{0} + threadIdx.{0}",
    "gsize": "gridDim.{0} * blockDim.{0}",
}
OF_32_BITS = frozenset((Dtype.INT32, Dtype.UINT32))
_WIDE = OF_32_BITS | {Dtype.INT64, Dtype.UINT64}
"""Types in which their own numbers are computed; narrower ones become `int`."""


Edits = tuple[Edit, ...]
"""Edits that keep a kernel's meaning together, and not one without the others."""


@dataclass(frozen=True)
class Spelling:
    """A kernel as it is spelt now, and what its job says of it."""

    facts: Facts
    counts: frozenset[str] = frozenset()
    """Scalar arguments that are whole numbers and never negative."""
    extents: frozenset[str] = frozenset()
    """Those of them that are never 0 either."""
    is_small: bool = False
    """True if an `int` numbers the elements of every buffer."""


def dtype_of(v: Variable) -> Dtype | None:
    """The type of a variable that holds one number; None for pointers, arrays, vectors and the rest."""
    if v.is_pointer or v.is_array or v.is_reference:
        return None
    dtype, lanes = element_type(v.kind, {})
    return dtype if lanes == 1 else None


def is_plain_number(v: Variable) -> bool:
    """True for numbers on which the language itself defines every operator."""
    dtype = dtype_of(v)
    return dtype is not None and (not dtype.is_float or dtype in (Dtype.FLOAT32, Dtype.FLOAT64))


def is_integer(facts: Facts, node: Node) -> bool:
    """True if an expression is surely one of integers."""
    node = strip(node)
    if facts.coordinate(node):
        return True
    match node.type:
        case "number_literal":
            return facts.source.of(node).rstrip("uUlL").isdigit()
        case "identifier":
            v = facts.variable(node)
            dtype = None if v is None else dtype_of(v)
            return dtype is not None and not dtype.is_float
        case "cast_expression":
            dtype, _ = cast_of(facts, node)
            return dtype is not None and not dtype.is_float
        case "binary_expression" if operator(node) in (*_OF_SUMS, *_OF_BITS):
            return all(is_integer(facts, o) for o in operands(node))
    return False


def is_signed_int(facts: Facts, node: Node) -> bool:
    """True if an expression is computed in signed integers of one type."""
    dtype = one_type(facts, node)
    return dtype is not None and dtype.value.startswith("int")


def one_type(facts: Facts, node: Node) -> Dtype | None:
    """The type of all names in an expression of integers, if it is computed in that; else None."""
    if not is_integer(facts, node) or find(node, "call_expression", "field_expression", "cast_expression"):
        return None
    names = (facts.variable(n) for n in find(node, "identifier"))
    kinds = {None if v is None else dtype_of(v) for v in names}
    plain = all(facts.source.of(n).isdigit() for n in find(node, "number_literal"))
    return kinds.pop() if plain and len(kinds) == 1 and kinds <= _WIDE else None


def stays(facts: Facts, node: Node, scope: Node, uses: list[Node]) -> bool:
    """True if what an expression names has the same value wherever it is used in a scope."""
    for n in find(node, "identifier"):
        w = facts.variable(n)
        if w is None:
            if n.parent is None or n.parent.type not in ("field_expression", "call_expression"):
                return False
            continue  # a coordinate
        if any(scope.start_byte <= place.start_byte < scope.end_byte for place in facts.assigned(w)):
            return False
        if any(facts.source.lookup(w.name, use) != w for use in uses):
            return False
    return True


def is_nonnegative(spelling: Spelling, node: Node) -> bool:
    """True if an integer is never below 0; a sum or product that the type cannot hold is the user's fault."""
    return _is_nonnegative(spelling, node, set())


def _is_nonnegative(spelling: Spelling, node: Node, seen: set[Variable]) -> bool:
    """The same by induction: what was met before is not negative as long as nothing makes it so."""
    facts, node = spelling.facts, strip(node)
    if facts.coordinate(node):
        return True
    match node.type:
        case "number_literal":
            return facts.source.of(node).rstrip("uUlL").isdigit()
        case "binary_expression" if operator(node) in ("+", "*", "/", "%", ">>", "&"):
            return all(_is_nonnegative(spelling, o, seen) for o in operands(node))
        case "binary_expression" if operator(node) == "-":
            whole, less = operands(node)
            return is_one(facts, less) and is_extent(spelling, whole)
        case "identifier":
            v = facts.variable(node)
            if v is None or dtype_of(v) not in _WIDE:
                return False
            if v.is_parameter:
                return v.name in spelling.counts and v.scope == facts.source.kernel and not facts.assigned(v)
            if v in seen:
                return True
            seen.add(v)
            starts = v.init is None or _is_nonnegative(spelling, v.init, seen)
            return starts and all(_grows(spelling, place, seen) for place in facts.assigned(v))
    return False


def cast_of(facts: Facts, node: Node) -> tuple[Dtype | None, Node | None]:
    """The type of a cast to one number, and what is cast; nothing for any other expression."""
    kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    if node.type != "cast_expression" or kind is None or value is None:
        return None, None
    dtype, lanes = element_type(facts.source.of(kind), {})
    is_number = dtype is not None and lanes == 1 and not find(kind, "abstract_pointer_declarator")
    return (dtype, value) if is_number else (None, None)


def uncast(facts: Facts, node: Node) -> Node:
    """The expression without a cast to an integer of 32 or 64 bits around it."""
    node = strip(node)
    dtype, value = cast_of(facts, node)
    return strip(value) if value is not None and dtype in _WIDE else node


def is_extent(spelling: Spelling, node: Node) -> bool:
    """True for a scalar argument that is never below 1, also one that is cast to a wide integer."""
    v = spelling.facts.variable(uncast(spelling.facts, node))
    if v is None or not v.is_parameter or v.scope != spelling.facts.source.kernel:
        return False
    return v.name in spelling.extents and not spelling.facts.assigned(v)


def _grows(spelling: Spelling, place: Node, seen: set[Variable]) -> bool:
    """True if a change of a variable leaves what is not negative so."""
    change = place.parent
    if change is None:
        return False
    if change.type == "update_expression":
        return operator(change) == "++"
    if change.type != "assignment_expression" or operator(change) not in ("=", "+=", "*=", "/=", ">>="):
        return False
    return _is_nonnegative(spelling, operands(change)[1], seen)


def coordinate_text(facts: Facts, name: str) -> str:
    """How a coordinate such as `gid.x` is usually written."""
    kind, axis = name.split(".")
    if facts.source.backend is Backend.OPENCL:
        return f"{_OPENCL_NAMES[kind]}({AXES.index(axis)})"
    return _CUDA_NAMES[kind].format(axis)


def removed(facts: Facts, node: Node) -> Edit:
    """A statement goes, with the words before it that the tree does not show."""
    before = node.prev_sibling
    start = node.start_byte if before is None else before.end_byte
    # Only blanks and such words are between; what ends a line before it must stay.
    hidden = facts.source.between(start, node.start_byte)
    return Edit(start + len(hidden) - len(hidden.lstrip()), node.end_byte, "")


def is_seen_everywhere(facts: Facts, v: Variable) -> bool:
    """True if the tree shows every use of a local: none is in a directive or in what the grammar misreads."""
    scope = v.declaration.parent
    assert scope is not None
    text = blank(facts.source.data[v.declaration.end_byte : scope.end_byte].decode("latin-1"))
    words = re.findall(rf"(?<![\w$]){re.escape(v.name)}(?![\w$])", text)
    nodes = find(scope, "identifier", "field_identifier")
    shown = [n for n in nodes if n.start_byte >= v.declaration.end_byte and facts.source.of(n) == v.name]
    return len(words) == len(shown) and v.name not in words_of_directives(facts)


def words_of_directives(facts: Facts) -> frozenset[str]:
    """Words of lines that the preprocessor reads, such as bodies of macros."""
    lines = re.findall(r"(?m)^[ \t]*#(?:\\\n|[^\n])*", facts.source.text)
    return frozenset(word for line in lines for word in re.findall(r"[A-Za-z_]\w*", line))


def is_one(facts: Facts, node: Node) -> bool:
    """True for the literal 1."""
    return facts.source.of(strip(node)) == "1"


def names_in(facts: Facts, node: Node) -> list[Variable]:
    """Variables that occur in an expression."""
    return [v for n in find(node, "identifier") if (v := facts.variable(n)) is not None]


def terms_of(node: Node) -> Iterator[tuple[str, Node]]:
    """Terms of a sum with their signs, from the left; parentheses around parts of it are looked through
    where nothing is subtracted."""
    node = strip(node)
    if node.type == "binary_expression" and operator(node) in ("+", "-"):
        left, right = operands(node)
        yield from terms_of(left)
        if operator(node) == "+":
            yield from terms_of(right)
        else:
            yield "-", right
        return
    yield "+", node


def as_operand(facts: Facts, node: Node) -> str:
    """An expression's text as it may stand in a sum."""
    text = facts.source.of(node)
    loose = node.type in _LOOSE or (node.type == "binary_expression" and operator(node) not in _OF_SUMS)
    return f"({text})" if loose else text


def locals_of(facts: Facts) -> Iterator[Variable]:
    """What the kernel's own body declares."""
    body = facts.source.body
    inside = range(body.start_byte, body.end_byte)
    return (v for v in facts.source.variables if v.declaration.start_byte in inside and not v.is_parameter)


def block_of(v: Variable) -> Node | None:
    """The block in which a statement declares a variable and nothing else; None for any other declaration."""
    block = v.declaration.parent
    if block is None or block.type != "compound_statement":
        return None
    return block if len(v.declaration.children_by_field_name("declarator")) == 1 else None


def uses_of(facts: Facts, v: Variable, block: Node) -> list[Node]:
    """The places behind its declaration at which a block names a variable."""
    named = (n for n in find(block, "identifier") if facts.variable(n) == v)
    return [n for n in named if n.start_byte >= v.declaration.end_byte]


def is_whole_buffer(facts: Facts, v: Variable) -> bool:
    """True for a name that stands for the first element of a buffer or an array: no index is below 0."""
    of_kernel = v.is_parameter and v.scope == facts.source.kernel and not facts.assigned(v)
    return v.is_array or (of_kernel and v.is_pointer and not v.is_reference)


def moves(facts: Facts, node: Node) -> bool:
    """True if a value may differ between threads or iterations."""
    waiting, seen = [node], set[Variable]()
    while waiting:
        part = waiting.pop()
        if find(part, "field_expression", "call_expression"):
            return True
        for v in names_in(facts, part):
            if facts.assigned(v):
                return True
            if v.init is not None and not v.is_parameter and v not in seen:
                waiting.append(v.init)
            seen.add(v)
    return False
