"""What expressions of a kernel are: integers, parts of sums, values that differ between threads."""

from collections.abc import Iterator

from tree_sitter import Node

from warpsmith.domain.dtype import Dtype
from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.reader.type_words import element_type
from warpsmith.rewrite.source.syntax_tree import Variable, find, strip

_LOOSE = ("conditional_expression", "assignment_expression", "comma_expression", "lambda_expression")
_OF_SUMS = ("+", "-", "*", "/", "%")
_OF_BITS = ("<<", ">>", "&", "|", "^")
_DEEPEST = 16
_WIDE = frozenset((Dtype.INT32, Dtype.UINT32, Dtype.INT64, Dtype.UINT64))
"""Types in which their own numbers are computed; narrower ones become `int`."""


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


def moves(facts: Facts, node: Node, depth: int = 0) -> bool:
    """True if a value may differ between threads or iterations."""
    if depth > _DEEPEST or find(node, "field_expression", "call_expression"):
        return True
    for v in names_in(facts, node):
        if facts.assigned(v) or (
            v.init is not None and not v.is_parameter and moves(facts, v.init, depth + 1)
        ):
            return True
    return False
