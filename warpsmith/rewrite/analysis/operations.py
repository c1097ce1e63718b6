"""Parts of expressions: operators, operands, and the reads and writes of an access."""

from tree_sitter import Node

from warpsmith.rewrite.source.syntax_tree import ancestors


def operator(node: Node) -> str:
    """The operator, such as `+`, of a binary or assignment expression."""
    child = node.child_by_field_name("operator")
    return "" if child is None or child.text is None else child.text.decode()


def operands(node: Node) -> tuple[Node, Node]:
    """Left and right operand of a binary or assignment expression."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    assert left is not None and right is not None
    return left, right


def strip_index(indices: Node) -> Node:
    """The expression between the brackets."""
    inner = [c for c in indices.named_children if c.type != "comment"]
    return inner[0] if len(inner) == 1 else indices


def use(node: Node) -> tuple[bool, bool]:
    """(reads, writes) of an lvalue expression in its context."""
    child = node
    for parent in ancestors(node):
        if parent.type == "assignment_expression" and parent.child_by_field_name("left") == child:
            return operator(parent) != "=", True
        if parent.type == "update_expression":
            return True, True
        if parent.type == "pointer_expression" and parent.text is not None and parent.text.startswith(b"&"):
            return False, False  # an address; what is done with it is seen where it is used
        if parent.type not in ("field_expression", "parenthesized_expression"):
            break
        if parent.type == "field_expression" and parent.child_by_field_name("argument") != child:
            break
        child = parent
    return True, False
