"""Branches that the entry's template arguments leave out, removed so that rules see only what is compiled."""

import re

from tree_sitter import Node

from warpsmith.rewrite.source.syntax_tree import Edit, Source, apply_edits, find, strip

_WORDS = {"true": True, "1": True, "false": False, "0": False}


def without_dead_branches(source: Source) -> str:
    """The text without the branches of `if constexpr (FLAG)` that the entry's arguments discard.

    `FLAG` is a template parameter of the kernel, or its negation. Lines keep their numbers.
    """
    edits: list[Edit] = []
    for node in find(source.body, "if_statement"):
        if any(e.start <= node.start_byte < e.end for e in edits):
            continue
        taken = _taken(source, node)
        then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if taken is None or then is None:
            continue
        kept = then if taken else _inner(other)
        if kept is None:
            edits.append(_removed(source, node.start_byte, node.end_byte, "{}"))
            continue
        edits.append(_removed(source, node.start_byte, kept.start_byte))
        if kept.end_byte < node.end_byte:
            edits.append(_removed(source, kept.end_byte, node.end_byte))
    return apply_edits(source.text, edits)


def _taken(source: Source, node: Node) -> bool | None:
    """What the condition is, if the entry says so."""
    condition = node.child_by_field_name("condition")
    if condition is None or not re.match(r"if\s+constexpr\b", source.of(node)):
        return None
    condition, denied = strip(condition), False
    if condition.type == "unary_expression" and source.of(condition).startswith("!"):
        argument = condition.child_by_field_name("argument")
        if argument is None:
            return None
        condition, denied = strip(argument), True
    if condition.type != "identifier" or source.lookup(source.of(condition), condition) is not None:
        return None
    value = _WORDS.get(source.template_argument(source.of(condition)))
    return None if value is None else value != denied


def _inner(other: Node | None) -> Node | None:
    """The statement after `else`."""
    if other is None or other.type != "else_clause":
        return other
    return next((c for c in other.named_children if c.type != "comment"), None)


def _removed(source: Source, start: int, end: int, text: str = "") -> Edit:
    return Edit(start, end, text + "\n" * source.between(start, end).count("\n"))
