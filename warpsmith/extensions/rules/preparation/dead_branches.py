"""Branches that the entry's template arguments leave out, removed so that rules see only what is compiled."""

import re

from tree_sitter import Node

from warpsmith.source.lexing.conditionals import decided
from warpsmith.source.tree.syntax_tree import Edit, Source, apply_edits, find, strip

_WORDS = {"true": 1, "false": 0}


def without_dead_branches(source: Source) -> str:
    """The text without the branches of `if constexpr (FLAG)` that the entry's arguments discard.

    `FLAG` is decided by what the entry gives to the kernel's template parameters. Lines keep their numbers.
    """
    edits: list[Edit] = []
    for node in find(source.body, "if_statement"):
        if any(e.start <= node.start_byte < e.end for e in edits):
            continue
        taken = _taken(source, node)
        then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if taken is None or then is None:
            continue
        kept, stated = then if taken else _inner(other), _stated(source, node, taken)
        if kept is None:
            edits.append(_removed(source, node.start_byte, node.end_byte, f"{{{stated}}}"))
            continue
        start, end = kept.start_byte, kept.end_byte
        if stated and kept.type != "compound_statement":
            edits.append(_removed(source, node.start_byte, start, f"{{{stated} "))
            edits.append(_removed(source, end, node.end_byte, "}"))
            continue
        edits.append(_removed(source, node.start_byte, start + bool(stated), stated and f"{{{stated}"))
        if end < node.end_byte:
            edits.append(_removed(source, end, node.end_byte))
    return apply_edits(source.text, edits)


def _stated(source: Source, node: Node, taken: bool) -> str:
    """A check of the condition in place of the branches, so that rules see which numbers decided."""
    condition = node.child_by_field_name("condition")
    numbers = [] if condition is None else find(condition, "identifier")
    if condition is None or all(source.template_argument(source.of(n)) in _WORDS for n in numbers):
        return ""
    text = source.of(strip(condition))
    return f'static_assert({text}, "");' if taken else f'static_assert(!({text}), "");'


def _taken(source: Source, node: Node) -> bool | None:
    """Value of an `if constexpr` condition, if the entry decides it; None if not."""
    condition = node.child_by_field_name("condition")
    if condition is None or not re.match(r"if\s+constexpr\b", source.of(node)):
        return None
    named = find(condition, "identifier")
    hidden = {source.of(n) for n in named if source.lookup(source.of(n), n) is not None}
    return decided(source.of(condition), lambda name: None if name in hidden else _value(source, name))


def _value(source: Source, name: str) -> int | None:
    """The number that the entry gives to a template parameter."""
    text = source.template_argument(name)
    return _WORDS.get(text, int(text) if text.isdecimal() else None)


def _inner(other: Node | None) -> Node | None:
    """The statement after `else`."""
    if other is None or other.type != "else_clause":
        return other
    return next((c for c in other.named_children if c.type != "comment"), None)


def _removed(source: Source, start: int, end: int, text: str = "") -> Edit:
    return Edit(start, end, text + "\n" * source.between(start, end).count("\n"))
