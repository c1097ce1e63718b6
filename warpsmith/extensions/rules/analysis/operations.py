"""Parts of expressions: operators, operands, and the reads and writes of an access."""

from collections.abc import Callable
from enum import Enum

from tree_sitter import Node

from warpsmith.source.tree.syntax_tree import ancestors, strip


def operator(node: Node) -> str:
    """The operator, such as `+`, of a binary or assignment expression."""
    child = node.child_by_field_name("operator")
    return "" if child is None or child.text is None else child.text.decode()


def operands(node: Node) -> tuple[Node, Node]:
    """Left and right operand of a binary or assignment expression."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    assert left is not None and right is not None
    return left, right


def both_ways(node: Node) -> tuple[tuple[Node, Node], tuple[Node, Node]]:
    """The operands of a binary expression as they stand, and the other way round."""
    left, right = operands(node)
    return (left, right), (right, left)


def wrapped(node: Node) -> Node:
    """A node with the parentheses and casts around it."""
    while node.parent is not None and node.parent.type in ("parenthesized_expression", "cast_expression"):
        node = node.parent
    return node


def strip_index(indices: Node) -> Node:
    """The expression between the brackets."""
    inner = [c for c in indices.named_children if c.type != "comment"]
    return inner[0] if len(inner) == 1 else indices


def element_of(node: Node) -> tuple[Node, Node] | None:
    """Pointer and index of the element `p[i]`; None for any other expression."""
    base, indices = node.child_by_field_name("argument"), node.child_by_field_name("indices")
    return None if base is None or indices is None else (base, strip_index(indices))


def object_of(call: Node) -> Node | None:
    """The object whose method is called: `v` of `v.load(p)` and `v->load(p)`; None for any other call."""
    function = call.child_by_field_name("function")
    if function is None or function.type != "field_expression":
        return None
    return function.child_by_field_name("argument")


def assignment_to(place: Node) -> tuple[Node, Node] | None:
    """The assignment of which a place is an operand, and what the assignment stands in.

    None if the place is changed in another way, such as by `++`.
    """
    assignment = place.parent
    if assignment is None or assignment.type != "assignment_expression" or assignment.parent is None:
        return None
    return assignment, assignment.parent


class Inside(Enum):
    """Relation of `x.field` to the memory of `x`."""

    ARRAY = "its elements are part of x"
    POINTER = "what it points to is elsewhere"
    UNKNOWN = "a value, or a type that the source does not show"


def part_of(node: Node, inside: Callable[[Node], Inside]) -> Node | None:
    """The lvalue of which an expression is a part: `x` of `x.field`, `x[i]`, `x.array[i]`, `(x)`; else None.

    Args:
        inside: what is known of a field expression.
    """
    match node.type:
        case "field_expression":
            return node.child_by_field_name("argument")
        case "parenthesized_expression":
            return node.named_child(0)
        case "subscript_expression" | "pointer_expression":
            base = node.child_by_field_name("argument")
            if base is None or (node.type == "pointer_expression" and operator(node) != "*"):
                return None
            field = strip(base)
            elsewhere = field.type == "field_expression" and inside(field) is Inside.POINTER
            return None if elsewhere else base
    return None


def use(node: Node, inside: Callable[[Node], Inside]) -> tuple[bool, bool]:
    """(reads, writes) of an lvalue expression in its context: whatever part of it is written, it is.

    Args:
        inside: what is known of a field expression.
    """
    child = node
    for parent in ancestors(node):
        if parent.type == "assignment_expression" and parent.child_by_field_name("left") == child:
            return operator(parent) != "=", True
        if parent.type == "update_expression":
            return True, True
        if parent.type == "pointer_expression" and operator(parent) == "&":
            return False, False  # an address; what is done with it is seen where it is used
        chosen = parent.type == "conditional_expression" and parent.child_by_field_name("condition") != child
        if part_of(parent, inside) != child and not chosen:
            value = strip(child)
            is_array = value.type == "field_expression" and inside(value) is Inside.ARRAY
            return True, is_array  # an array that is no operand of [] is an address, which may be written
        child = parent
    return True, False
