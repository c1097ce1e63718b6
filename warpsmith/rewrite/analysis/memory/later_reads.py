"""Reads of a loop that come after another loop or a barrier, and whose addresses are known before it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.calls.callees import Effect, known
from warpsmith.rewrite.analysis.kernel_facts import Access, Facts
from warpsmith.rewrite.analysis.loops.counted_loops import counted, ends_early
from warpsmith.rewrite.analysis.loops.for_loops import unroll_before
from warpsmith.rewrite.analysis.loops.strided_loops import leaves, team_loops, written_value
from warpsmith.rewrite.analysis.operations import operator
from warpsmith.rewrite.source.syntax_tree import (
    LOOPS,
    Edit,
    Variable,
    ancestors,
    apply_edits,
    contains,
    find,
    strip,
    walk,
)

_DEEPEST = 9
"""Locals made of locals that are written out, and the expression that names the first."""
_UNSURE = (
    *LOOPS,
    "conditional_expression",
    "else_clause",
    "lambda_expression",
    "switch_statement",
    "case_statement",
)
"""Nodes whose parts may not be executed, or more than once."""
_EFFECTS = ("assignment_expression", "update_expression", "lambda_expression")


@dataclass(frozen=True)
class LaterLoop:
    """A loop, in words that hold at an earlier place."""

    header: str
    """Between the parentheses of `for (...)`."""
    reads: tuple[tuple[str, str], ...]
    """Condition (may be empty) and address of each read."""
    roots: tuple[str, ...]
    """The buffers that are read."""


@dataclass(frozen=True)
class LaterReads:
    """Loops of which reads can be fetched early, and the byte before which to fetch them."""

    place: int
    loops: tuple[LaterLoop, ...]


@dataclass(frozen=True)
class _Loop:
    node: Node
    variable: Variable


def later_loops(facts: Facts) -> LaterReads | str:
    """The reads of later loops that can be fetched early; the reason if there are none."""
    first = _first_wait(facts)
    if first is None:
        return "no loop stands before another one"
    accesses = list(facts.accesses(facts.source.body))
    if any(a.root is None and a.writes for a in accesses):
        return "where it writes is not clear"
    words = _Words(facts, first.start_byte)
    found = []
    for loop in _loops(facts):
        if loop.node.start_byte < first.end_byte or not _is_reached(facts, first, loop.node):
            continue
        later = words.later(loop, accesses)
        if later is not None:
            found.append(later)
    if not found:
        return "no later loop reads a buffer of its own from places that are known before the first one"
    return LaterReads(_place(facts, first), tuple(found))


def _first_wait(facts: Facts) -> Node | None:
    """The first statement of the body that has a loop, or a call that threads make together."""
    waits = facts.waits(facts.source.body)
    after = max((n.end_byte for n in waits), default=0)
    for statement in facts.source.body.named_children:
        if (
            statement.start_byte < after
            or statement.type.startswith("preproc")
            or statement.type == "comment"
        ):
            continue
        if find(statement, *LOOPS) or any(_takes_long(facts, c) for c in find(statement, "call_expression")):
            return statement
    return None


def _takes_long(facts: Facts, call: Node) -> bool:
    callee = known(facts.source.callee(call))
    if callee is not None:
        return callee.effect is Effect.COLLECTIVE
    return any(find(f, *LOOPS) for f in facts.source.definitions(facts.source.callee(call)))


def _place(facts: Facts, first: Node) -> int:
    """Before a statement, and before the pragmas that go with it."""
    while (pragma := unroll_before(facts.source, first)) is not None:
        first = pragma
    return first.start_byte


def _loops(facts: Facts) -> Iterator[_Loop]:
    """Loops that a thread makes to their end: shared ones, and those that count from 0."""
    shared = {loop.node.id: loop for loop in team_loops(facts)}
    for n in find(facts.source.body, "for_statement"):
        strided = shared.get(n.id)
        if strided is not None:
            if leaves(strided) is None:
                yield _Loop(n, strided.variable)
            continue
        loop = counted(facts, n)
        if loop is not None and not ends_early(loop) and loop.variable.declaration.parent == n:
            yield _Loop(n, loop.variable)


def _is_reached(facts: Facts, first: Node, loop: Node) -> bool:
    """Whether a thread that comes to a statement of the body comes to a loop, too."""
    around = list(ancestors(loop))
    inner = around[: around.index(facts.source.body)]
    if any(a.type != "compound_statement" for a in inner):
        return False
    leaving = find(facts.source.body, "return_statement", "goto_statement", "break_statement")
    return not any(
        first.start_byte <= n.start_byte < loop.start_byte
        and all(a.type not in ("lambda_expression", *LOOPS) for a in ancestors(n))
        for n in leaving
    )


class _Words:
    """Writes expressions of a later loop in words that hold at an earlier place."""

    def __init__(self, facts: Facts, place: int) -> None:
        self._facts = facts
        self._place = place

    def later(self, loop: _Loop, accesses: list[Access]) -> LaterLoop | None:
        """The loop with those of its reads that can be made early; None if there are none."""
        header = self._header(loop)
        if header is None:
            return None
        own = [a for a in accesses if contains(loop.node, a.node) and a.reads and not a.writes]
        busy = {a.root for a in accesses if a.writes or a.node.start_byte < loop.node.start_byte}
        found: dict[tuple[str, str], str] = {}
        for a in own:
            if a.root is None or not a.root.is_parameter or a.root in busy or self._facts.is_volatile(a.root):
                continue
            address, condition = self._address(a, loop), self._condition(a.node, loop)
            if address is not None and condition is not None:
                found.setdefault((condition, address), a.root.name)
        if not found:
            return None
        return LaterLoop(header, tuple(found), tuple(dict.fromkeys(found.values())))

    def _header(self, loop: _Loop) -> str | None:
        body = loop.node.child_by_field_name("body")
        first = next((c for c in loop.node.children if c.type == "("), None)
        if body is None or first is None:
            return None
        parts = [loop.node.child_by_field_name(f) for f in ("initializer", "condition", "update")]
        values = [n for n in parts if n is not None]
        if len(values) != 3 or any(self._unknown(n, loop, header=True) for n in values):
            return None
        last = next((c for c in reversed(loop.node.children) if c.type == ")"), None)
        return None if last is None else self._span(first.end_byte, last.start_byte, values, loop)

    def _span(self, start: int, end: int, parts: list[Node], loop: _Loop, depth: int = 0) -> str | None:
        edits = []
        for part in parts:
            for n in find(part, "identifier"):
                text = self._value(n, loop, depth)
                if text is None:
                    return None
                if text != self._facts.source.of(n):
                    edits.append(Edit(n.start_byte - start, n.end_byte - start, text))
        return _one_line(apply_edits(self._facts.source.between(start, end), edits))

    def _address(self, a: Access, loop: _Loop) -> str | None:
        pointer = self.text(a.pointer, loop)
        if a.index is None:
            return pointer if a.node.type == "call_expression" else None
        index = self.text(a.index, loop)
        return None if pointer is None or index is None else f"&({pointer})[{index}]"

    def _condition(self, node: Node, loop: _Loop) -> str | None:
        """What holds where a node of the loop is executed; None if that is unclear."""
        found: list[str] = []
        child = node
        for a in ancestors(node):
            if a == loop.node:
                return " && ".join(reversed(found))
            if a.type == "if_statement":
                condition = a.child_by_field_name("condition")
                if condition is None or child != a.child_by_field_name("consequence"):
                    return None
                text = self.text(strip(condition), loop)
                if text is None:
                    return None
                found.append(f"({text})")
            elif a.type in _UNSURE or (a.type == "binary_expression" and operator(a) in ("&&", "||")):
                return None
            child = a
        return None

    def text(self, node: Node, loop: _Loop, depth: int = 0) -> str | None:
        """An expression without effects that holds at the place; None if there is none."""
        if depth > _DEEPEST or self._unknown(node, loop):
            return None
        return self._span(node.start_byte, node.end_byte, [node], loop, depth)

    def _unknown(self, node: Node, loop: _Loop, *, header: bool = False) -> bool:
        """True if an expression does something, reads memory, or depends on the block of the grid."""
        for n in walk(node):
            if n.type in _EFFECTS and not header:
                return True
            if n.type == "subscript_expression" or (n.type == "pointer_expression" and n.child_count > 0):
                return True
            if n.type == "field_expression" and self._facts.coordinate(n) is None:
                return True
            if n.type == "call_expression" and not self._is_value(n):
                return True
            where = self._facts.coordinate(n) if n.type in ("field_expression", "call_expression") else None
            if where is not None and where[:-2] not in ("tid", "bdim"):
                return True
        return False

    def _is_value(self, call: Node) -> bool:
        callee = known(self._facts.source.callee(call))
        return callee is not None and callee.effect is Effect.VALUE and not callee.names.match("__ldg")

    def _value(self, n: Node, loop: _Loop, depth: int) -> str | None:
        """What a name stands for at the place; None if it has another value, or none, there."""
        facts = self._facts
        v, name = facts.variable(n), facts.source.of(n)
        if v is None or v == loop.variable or v.scope is None:
            return name
        changes = [p for p in facts.assigned(v) if self._place <= p.start_byte < loop.node.end_byte]
        if v.declaration.end_byte <= self._place or v.is_parameter:
            return None if changes or v.is_array else name
        value, kind = written_value(facts, n), v.type_text
        written = None if value is None else self.text(value, loop, depth + 1)
        if written is None:
            return None
        # The variable's type decides how the value is computed on.
        plain = re.fullmatch(r"[\w: ]+", kind) and not v.is_pointer and kind.split()[-1] != "auto"
        return f"(({kind})({written}))" if plain else f"({written})"


def _one_line(text: str) -> str | None:
    """The text as one line; None if it has comments or directives."""
    if re.search(r"//|/\*|#", text):
        return None
    return re.sub(r"\s+", " ", text).strip()
