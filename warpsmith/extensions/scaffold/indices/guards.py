"""Conditions that hold where a kernel uses memory, as bounds of integer values."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.extensions.scaffold.indices.polynomials import Polynomial, Unknown
from warpsmith.extensions.scaffold.indices.values import VARYING, IndexValues
from warpsmith.source.tree.syntax_tree import LOOPS, ancestors, strip
from warpsmith.source.tree.work_limit import spend

_MOST = 24
"""Limit on the conditions that are looked at for one use of memory, the nearest ones."""
_DENIED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "!=": "=="}
_LEAVES = ("return_statement", "continue_statement", "break_statement")


@dataclass(frozen=True)
class Guard:
    """A bound that holds somewhere: `small` is not above `large`."""

    small: Polynomial
    """Terms with values that vary, all added."""
    large: Polynomial
    start: int
    """Byte from which on the condition holds."""
    words: str
    """The condition as the source has it."""


@dataclass
class Guards:
    """Finds the conditions that hold at a place."""

    values: IndexValues
    _known: dict[int, tuple[tuple[int, Guard], ...]] = field(default_factory=dict)

    def at(self, node: Node) -> list[Guard]:
        """Bounds that hold at a node, the nearest first."""
        found: list[Guard] = []
        child = node
        for parent in ancestors(node):
            found += islice(self._around(parent, child), _MOST - len(found))
            if parent == self.values.facts.source.body or len(found) >= _MOST:
                break
            child = parent
        return [g for g in found if self._still_holds(g, node)]

    def _around(self, parent: Node, child: Node) -> Iterator[Guard]:
        match parent.type:
            case "if_statement" | "conditional_expression":
                yield from self._of_branch(parent, child)
            case "for_statement" | "while_statement":
                condition = parent.child_by_field_name("condition")
                if condition is not None and child not in (
                    condition,
                    parent.child_by_field_name("initializer"),
                ):
                    word = "for" if parent.type == "for_statement" else "while"
                    body = parent.child_by_field_name("body") or parent
                    yield from self._true(condition, body.start_byte, f"{word} ({self._text(condition)})")
            case "binary_expression" if operator(parent) in ("&&", "||"):
                left, right = operands(parent)
                if child == right and operator(parent) == "&&":
                    yield from self._true(left, left.end_byte, self._text(left))
                elif child == right:
                    yield from self._false(left, left.end_byte, self._text(left))
            case _ if parent.type in ("compound_statement", "else_clause") or parent.type.startswith(
                "preproc"
            ):
                before = [g for end, g in self._leaving(parent) if end <= child.start_byte]
                yield from reversed(before)

    def _of_branch(self, parent: Node, child: Node) -> Iterator[Guard]:
        condition = parent.child_by_field_name("condition")
        if condition is None or child == condition:
            return
        words = f"if ({self._text(strip(condition))})"
        if child == parent.child_by_field_name("consequence"):
            yield from self._true(condition, condition.end_byte, words)
        else:
            yield from self._false(condition, condition.end_byte, words)

    def _leaving(self, block: Node) -> tuple[tuple[int, Guard], ...]:
        """Conditions that hold behind each `if (...) return;` of a block, with the byte where it ends."""
        if block.id not in self._known:
            found: list[tuple[int, Guard]] = []
            for statement in block.named_children:
                spend(1)
                then = statement.child_by_field_name("consequence")
                condition = statement.child_by_field_name("condition")
                if statement.type != "if_statement" or then is None or condition is None:
                    continue
                last = then.named_children[-1:] if then.type == "compound_statement" else [then]
                if last and last[0].type in _LEAVES and not statement.child_by_field_name("alternative"):
                    words = f"if ({self._text(strip(condition))}) {last[0].type.split('_')[0]}"
                    end = statement.end_byte
                    found += [(end, g) for g in self._false(condition, end, words)]
            self._known[block.id] = tuple(found)
        return self._known[block.id]

    def _text(self, node: Node) -> str:
        return " ".join(self.values.facts.source.of(node).split())[:60]

    def _true(self, condition: Node, start: int, words: str) -> Iterator[Guard]:
        condition = _bare(condition)
        if condition.type == "binary_expression":
            if operator(condition) == "&&":
                for side in operands(condition):
                    yield from self._true(side, start, words)
                return
            yield from self._compared(condition, operator(condition), start, words)
        elif condition.type == "unary_expression" and operator(condition) == "!":
            yield from self._false(
                condition.child_by_field_name("argument") or condition.children[-1], start, words
            )

    def _false(self, condition: Node, start: int, words: str) -> Iterator[Guard]:
        condition = _bare(condition)
        if condition.type == "binary_expression":
            if operator(condition) == "||":
                for side in operands(condition):
                    yield from self._false(side, start, words)
                return
            yield from self._compared(condition, _DENIED.get(operator(condition), ""), start, words)
        elif condition.type == "unary_expression" and operator(condition) == "!":
            yield from self._true(
                condition.child_by_field_name("argument") or condition.children[-1], start, words
            )

    def _compared(self, node: Node, how: str, start: int, words: str) -> Iterator[Guard]:
        if how not in ("<", "<=", ">", ">=", "=="):
            return
        try:
            left, right = (self.values.of(o) for o in operands(node))
        except Unknown:
            return
        one = Polynomial.number(1)
        if how in ("<", "<=", "=="):
            yield from _guard(left - right + (one if how == "<" else Polynomial()), start, words)
        if how in (">", ">=", "=="):
            yield from _guard(right - left + (one if how == ">" else Polynomial()), start, words)

    def _still_holds(self, guard: Guard, node: Node) -> bool:
        """False if a variable of a condition may have changed since."""
        end = node.start_byte
        changing = [v for n in guard.small.names | guard.large.names if (v := self.values.variables.get(n))]
        changes = [place for v in changing for place in self.values.facts.assigned(v)]
        if not changes:
            return True
        for around in ancestors(node):
            if around.start_byte < guard.start:
                break
            if around.type in LOOPS:
                end = max(end, around.end_byte)
        return not any(guard.start <= place.start_byte < end for place in changes)


def _bare(condition: Node) -> Node:
    condition = strip(condition)
    if condition.type == "condition_clause":
        condition = strip(condition.child_by_field_name("value") or condition)
    return condition


def _guard(low: Polynomial, start: int, words: str) -> Iterator[Guard]:
    """The bound that a value of at most 0 is."""
    small = {m: c for m, c in low.terms if c > 0 and any(n[0] == VARYING for n in m)}
    if small:
        found = Polynomial.of(small)
        yield Guard(found, found - low, start, words)
