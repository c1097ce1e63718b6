"""Values that are the same for every thread, and values that can be expanded where they are needed."""

import re

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.source.tree.syntax_tree import Edit, Variable, apply_edits, walk

_PLAIN = (
    "identifier",
    "number_literal",
    "binary_expression",
    "unary_expression",
    "parenthesized_expression",
    "cast_expression",
    "type_descriptor",
    "primitive_type",
    "sized_type_specifier",
    "type_identifier",
    "conditional_expression",
)
_DEEPEST = 8


def uniform_text(facts: Facts, node: Node, depth: int = 0) -> str | None:
    """An expression over parameters and constants only, with locals that never change replaced by values.

    None if the expression reads memory, calls a function, names a thread or changes anything.
    """
    source = facts.source
    if depth > _DEEPEST:
        return None
    edits = []
    for n in walk(node):
        if not n.is_named or n.type == "comment":
            continue
        if n.type not in _PLAIN:
            return None
        if n.type != "identifier":
            continue
        name, v = source.of(n), facts.variable(n)
        if v is None or v.scope is None:
            if not _constant(facts, name, v):
                return None
        elif v.is_parameter:
            if v.is_pointer or facts.assigned(v):
                return None
        else:
            text = _value(facts, v, depth)
            if text is None:
                return None
            edits.append(Edit(n.start_byte - node.start_byte, n.end_byte - node.start_byte, text))
    return apply_edits(source.of(node), edits)


def _value(facts: Facts, v: Variable, depth: int) -> str | None:
    if v.init is None or v.is_array or v.is_pointer or v.is_shared or facts.assigned(v):
        return None
    text = uniform_text(facts, v.init, depth + 1)
    return None if text is None else f"(({v.type_text})({text}))"


def _constant(facts: Facts, name: str, v: Variable | None) -> bool:
    """True for a macro of numbers, or a constant of the file."""
    if v is not None:
        return v.is_const and not v.is_pointer and not v.is_array
    for text in (facts.source.text, *facts.source.library):
        for body in re.findall(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b(.*)$", text, re.M):
            words = re.findall(r"[A-Za-z_]\w*", re.sub(r"//.*|/\*.*?\*/", "", body))
            if body.startswith("(") or any(w == name or re.search(r"get_|Idx|Dim", w) for w in words):
                return False
            if not all(_constant(facts, w, None) for w in words if not re.fullmatch(r"[uUlLfFxX]+", w)):
                return False
    return True
