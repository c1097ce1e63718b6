"""Reads of elements at constant distances from a thread's own element."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.guarded_element import Element, Place
from warpsmith.rewrite.analysis.kernel_facts import Access, Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.analysis.uniform_values import written_out
from warpsmith.rewrite.source.syntax_tree import LOOPS, Edit, Variable, ancestors, apply_edits, strip, walk

_CONDITIONAL = ("if_statement", "conditional_expression", "switch_statement", *LOOPS)


@dataclass(frozen=True)
class Neighbours:
    """All reads of one buffer: `x[(i - 1) * n + (j + 1)]` for some distances."""

    root: Variable
    places: tuple[Place, ...]
    """Coordinates in the index, slowest first."""
    index: str
    """The index of the element itself."""
    reads: tuple[tuple[Node, tuple[int, ...]], ...]
    """Each read with its distance along each of the places."""

    @property
    def distances(self) -> tuple[tuple[int, ...], ...]:
        """The distances that occur, each once."""
        return tuple(sorted({d for _, d in self.reads}))

    def span(self, n: int) -> tuple[int, int]:
        """Least and greatest distance along the place of that number."""
        return min(d[n] for d in self.distances), max(d[n] for d in self.distances)


def find_neighbours(facts: Facts, element: Element) -> tuple[list[Neighbours], str]:
    """Read-only buffers that every element reads at several distances; and reasons why others do not
    qualify."""
    accesses = [a for s in element.inner for a in facts.accesses(s)]
    found: list[Neighbours] = []
    reason = "no buffer is read at several fixed distances from the element"
    names = dict.fromkeys(a.root.name for a in accesses if a.root is not None and a.root.is_parameter)
    for name in names:
        mine = [a for a in accesses if a.root is not None and a.root.name == name]
        one = _neighbours(facts, element, mine)
        if isinstance(one, Neighbours):
            found.append(one)
        elif one:
            reason = one
    return found, reason


def _neighbours(facts: Facts, element: Element, accesses: list[Access]) -> Neighbours | str:
    root = accesses[0].root
    assert root is not None
    if len(accesses) < 2 or any(a.writes for a in accesses):
        return ""
    places = tuple(sorted(element.places, key=lambda p: p.axis, reverse=True))
    forms = []
    for a in accesses:
        direct = a.node.type == "subscript_expression" and facts.variable(strip(a.pointer)) == root
        form = _form(facts, a.index, places) if direct and a.index is not None else None
        if form is None:
            return f"{a.where(facts.source)} is at no fixed distance from the element"
        forms.append((a.node, *form))
    used = tuple(p for p in places if re.search(rf"\b{p.name}\b", forms[0][1]))
    if len({f[1] for f in forms}) != 1 or not used:
        return f"{root.name} is read by indices of different forms"
    kept = [n for n, p in enumerate(places) if p in used]
    reads = tuple((node, tuple(d[n] for n in kept)) for node, _, d in forms)
    if len({d for _, d in reads}) < 2:
        return ""
    for node, _ in reads:
        if _conditional(element, node):
            return f"{facts.source.of(node)} is read under a condition"
    return Neighbours(root, used, forms[0][1], reads)


def _conditional(element: Element, node: Node) -> bool:
    """True if not every element within bounds reaches the node."""
    for a in ancestors(node):
        if a.type in _CONDITIONAL or (a.type == "binary_expression" and operator(a) in ("&&", "||")):
            return True
        if a in element.inner:
            return False
    return node not in element.inner


def _form(facts: Facts, index: Node, places: tuple[Place, ...]) -> tuple[str, tuple[int, ...]] | None:
    """The index without its distances, and the distances along the places."""
    source, distances, edits = facts.source, dict.fromkeys((p.name for p in places), 0), []
    seen: list[str] = []
    free = frozenset(distances)
    if written_out(facts, index, free) is None:
        return None
    rest = list(_terms(facts, index, 1))
    constant = sum(n for n, node in rest if node is None)
    for node in walk(index):
        if node.type != "identifier" or source.of(node) not in distances:
            continue
        name = source.of(node)
        if name in seen:
            return None
        seen.append(name)
        whole, distance = _around(facts, node, index)
        distances[name] = distance
        edits.append(Edit(whole.start_byte, whole.end_byte, name))
    plain = [source.of(n) for sign, n in rest if n is not None and sign == 1 and source.of(n) in distances]
    if constant and len(plain) != 1:
        return None
    parts = []
    for sign, term in rest:
        if term is None:
            continue
        mine = [e for e in edits if term.start_byte <= e.start and e.end <= term.end_byte]
        moved = [Edit(e.start - term.start_byte, e.end - term.start_byte, e.text) for e in mine]
        text = written_out(facts, term, free) if not mine else apply_edits(source.of(term), moved)
        if text is None:
            return None
        parts.append(("+" if sign == 1 else "-") + re.sub(r"\s+", "", text))
    if constant:
        distances[plain[0]] += constant
    text = re.sub(r"\((\w+)\)", r"\1", "".join(sorted(parts)))
    return text.lstrip("+"), tuple(distances[p.name] for p in places)


def _terms(facts: Facts, node: Node, sign: int) -> Iterator[tuple[int, Node | None]]:
    """Terms of a sum with their signs; numbers as (value, None)."""
    node = strip(node)
    if node.type == "binary_expression" and operator(node) in "+-":
        left, right = operands(node)
        yield from _terms(facts, left, sign)
        yield from _terms(facts, right, sign if operator(node) == "+" else -sign)
    elif facts.source.of(node).isdecimal():
        yield sign * int(facts.source.of(node)), None
    else:
        yield sign, node


def _around(facts: Facts, node: Node, index: Node) -> tuple[Node, int]:
    """The bracket `(i - 1)` around a coordinate that is a factor, and the distance in it."""
    parent = node.parent
    for a in ancestors(node):
        if a.type == "parenthesized_expression" and a != index:
            terms = list(_terms(facts, a, 1))
            named = [n for n in terms if n[1] is not None]
            outer = a.parent
            factor = outer is not None and outer.type == "binary_expression" and operator(outer) == "*"
            if named == [(1, node)] and factor and parent is not None:
                return a, sum(n for n, other in terms if other is None)
        if a == index or a.type not in ("parenthesized_expression", "binary_expression"):
            break
    return node, 0
