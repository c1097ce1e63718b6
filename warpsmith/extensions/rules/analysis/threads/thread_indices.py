"""Reads of a kernel's thread index, so that one thread can process several elements."""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.source.tree.syntax_tree import Edit, contains, find

_CODE = ("call_expression", "field_expression", "binary_expression")


@dataclass(frozen=True)
class ThreadAxis:
    """Reads of a thread's index along one axis of the grid."""

    name: str
    """x, y or z."""
    parameter: str
    """Parameter for the number of elements per thread."""
    item: str
    """Loop variable over the elements."""
    near: str
    """Parameter that decides whether the elements are neighbours; empty if only blocks can be
    distinguished."""
    macro: str
    """Macro for the index of an element, if `near` is given."""
    reads: tuple[tuple[str, Node], ...]

    @property
    def number(self) -> int:
        """0 for x."""
        return AXES.index(self.name)

    @property
    def reads_size(self) -> bool:
        """True if the kernel reads the size of the grid."""
        return any(kind in ("gdim", "gsize") for kind, _ in self.reads)

    def edits(self, facts: Facts) -> list[Edit]:
        """Edits that replace the thread's index by that of the element counted by `item`."""
        edits = []
        for kind, node in self.reads:
            text = facts.source.of(node)
            if kind == "gid":
                text = self._global_id(facts)
            elif kind == "bid" and not self.near:
                text = f"({text} * {self.parameter} + {self.item})"
            elif kind in ("gdim", "gsize"):
                text = f"({text} * {self.parameter})"
            if text != facts.source.of(node):
                edits.append(Edit(node.start_byte, node.end_byte, text))
        return edits

    def _global_id(self, facts: Facts) -> str:
        if self.near:
            return f"{self.macro}({self.item})"
        n = self.number
        block = f"(get_group_id({n}) * {self.parameter} + {self.item})"
        return f"({block} * get_local_size({n}) + get_local_id({n}))"

    def definition(self) -> str:
        """The macro for the index, if elements may be neighbours."""
        if not self.near:
            return ""
        n, items = self.number, self.parameter
        return (
            f"#if {self.near}\n"
            f"#define {self.macro}(item) (get_global_id({n}) * {items} + (item))\n"
            f"#else\n"
            f"#define {self.macro}(item)"
            f" ((get_group_id({n}) * {items} + (item)) * get_local_size({n}) + get_local_id({n}))\n"
            f"#endif\n"
        )


def axes(facts: Facts) -> list[ThreadAxis]:
    """The axes along which threads can have several elements, fastest first."""
    found = []
    for n, name in enumerate(AXES[: len(facts.grid)]):
        reads = tuple(_reads(facts, facts.source.body, name))
        kinds = {kind for kind, _ in reads}
        if facts.grid[n] != "1" and ("gid" in kinds or {"bid", "tid"} <= kinds):
            found.append((name, reads))
    several = len(found) > 1
    return [_axis(facts, name, reads, f"_{name.upper()}" if several else "") for name, reads in found]


def _axis(facts: Facts, name: str, reads: tuple[tuple[str, Node], ...], ending: str) -> ThreadAxis:
    whole = _whole_reads(facts, name) if facts.is_opencl else None
    near = "" if whole is None else f"WS_NEAR{ending}"
    item, macro = f"ws_item{ending.lower()}", f"WS_PLACE{ending}"
    return ThreadAxis(name, f"WS_ITEMS{ending}", item, near, macro, reads if whole is None else whole)


def _reads(facts: Facts, node: Node, axis: str) -> Iterator[tuple[str, Node]]:
    """Every read of a coordinate of the axis by itself; products that are 0 are left out."""
    if facts.is_zero(node):
        return
    if node.type in ("call_expression", "field_expression"):
        where = facts.coordinate(node)
        if where is not None:
            if where.endswith(f".{axis}") and not facts.source.callee(node).startswith("WS_"):
                yield where[:-2], node
            return
    for child in node.children:
        yield from _reads(facts, child, axis)


def _whole_reads(facts: Facts, axis: str) -> tuple[tuple[str, Node], ...] | None:
    """The reads as global indices only; None if the kernel distinguishes blocks in another way."""
    whole = [n for n in find(facts.source.body, *_CODE) if facts.coordinate(n) == f"gid.{axis}" and _plain(n)]
    whole = [n for n in whole if not any(contains(other, n) for other in whole if other != n)]
    reads: list[tuple[str, Node]] = [("gid", n) for n in whole]
    for kind, node in _reads(facts, facts.source.body, axis):
        if any(contains(n, node) for n in whole):
            continue
        if kind in ("gdim", "gsize"):
            reads.append((kind, node))
        elif kind != "bdim" and not _absorbed(facts, node, whole):
            return None
    return tuple(reads)


def _plain(node: Node) -> bool:
    """True for a call, or a sum that is stored at once, so that its type does not matter."""
    if node.type != "binary_expression":
        return node.type == "call_expression"
    parent = node.parent
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    if parent is None or operator(node) != "+":
        return False
    stored = parent.type == "init_declarator" or (
        parent.type == "assignment_expression" and operator(parent) == "="
    )
    return stored and (parent.type == "init_declarator" or contains(operands(parent)[1], node))


def _absorbed(facts: Facts, node: Node, whole: list[Node]) -> bool:
    """True if a read is kept in a variable that is only used for global indices."""
    v = facts.initialised_by(node)
    if v is None or facts.assigned(v):
        return False
    uses = [n for n in facts.names_of(v, facts.source.body) if not contains(v.declarator, n)]
    return all(any(contains(w, n) for w in whole) for n in uses)


def foreign_read(facts: Facts, axis: ThreadAxis) -> Node | None:
    """A read of the index in a called function, where the element is unknown; None if there is none."""
    kinds = ("tid", "bid", "gid", "gdim", "gsize") if axis.near else ("bid", "gid", "gdim", "gsize")
    for function in facts.source.reachable[1:]:
        for kind, node in _reads(facts, function, axis.name):
            if kind in kinds:
                return node
    return None
