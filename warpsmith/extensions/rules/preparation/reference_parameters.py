"""Parameters through which a called function may change what it was given."""

import re

from tree_sitter import Node

from warpsmith.source.tree.syntax_tree import find, plain


def parameters_of(function: Node) -> list[Node]:
    """Declarations of a function's parameters, in their order."""
    declarator = next(iter(find(function, "function_declarator")), None)
    listed = None if declarator is None else declarator.child_by_field_name("parameters")
    return [] if listed is None else [c for c in listed.named_children if c.type.endswith("declaration")]


def is_changeable(parameter: Node) -> bool:
    """True for a parameter that is a reference to something that is not constant."""
    constant = re.search(r"\bconst\b", plain(parameter)) is not None and "*" not in plain(parameter)
    return bool(find(parameter, "reference_declarator")) and not constant
