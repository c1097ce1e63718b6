"""Reads of elements at constant distances from a thread's own element."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.indices.guarded_element import Element, Place
from warpsmith.rewrite.analysis.kernel_facts import Access, Facts
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.analysis.values.uniform_values import written_out
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
    forms = _forms(facts, root, accesses, places)
    if isinstance(forms, str):
        return forms
    index = forms[0][1]
    kept = [n for n, p in enumerate(places) if re.search(rf"\b{p.name}\b", index)]
    if any(f[1] != index for f in forms) or not kept:
        return f"{root.name} is read by indices of different forms"
    reads = tuple((node, tuple(d[n] for n in kept)) for node, _, d in forms)
    if len({d for _, d in reads}) < 2:
        return ""
    sometimes = next((node for node, _ in reads if _conditional(element, node)), None)
    if sometimes is not None:
        return f"{facts.source.of(sometimes)} is read under a condition"
    return Neighbours(root, tuple(places[n] for n in kept), index, reads)


def _forms(
    facts: Facts, root: Variable, accesses: list[Access], places: tuple[Place, ...]
) -> list[tuple[Node, str, tuple[int, ...]]] | str:
    """Of each read: its node, its index without the distances, and the distances; or why not."""
    found = []
    for a in accesses:
        direct = a.node.type == "subscript_expression" and facts.variable(strip(a.pointer)) == root
        form = _form(facts, a.index, places) if direct and a.index is not None else None
        if form is None:
            return f"{a.where(facts.source)} is at no fixed distance from the element"
        found.append((a.node, *form))
    return found


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
    source, names = facts.source, frozenset(p.name for p in places)
    if written_out(facts, index, names) is None:
        return None
    found = _distances(facts, index, names)
    if found is None:
        return None
    distances, edits = found
    rest = list(_terms(facts, index, 1))
    constant = sum(n for n, node in rest if node is None)
    if constant:
        plain = [source.of(n) for sign, n in rest if n is not None and sign == 1 and source.of(n) in names]
        if len(plain) != 1:
            return None
        distances[plain[0]] += constant
    parts = []
    for sign, term in ((sign, term) for sign, term in rest if term is not None):
        text = _edited(facts, term, edits) or written_out(facts, term, names)
        if text is None:
            return None
        parts.append(("+" if sign == 1 else "-") + re.sub(r"\s+", "", text))
    text = re.sub(r"\((\w+)\)", r"\1", "".join(sorted(parts)))
    return text.lstrip("+"), tuple(distances[p.name] for p in places)


def _edited(facts: Facts, term: Node, edits: list[Edit]) -> str:
    """The text of a term after those edits that lie in it; empty if none does."""
    mine = [e for e in edits if term.start_byte <= e.start and e.end <= term.end_byte]
    moved = [Edit(e.start - term.start_byte, e.end - term.start_byte, e.text) for e in mine]
    return apply_edits(facts.source.of(term), moved) if moved else ""


def _distances(facts: Facts, index: Node, names: frozenset[str]) -> tuple[dict[str, int], list[Edit]] | None:
    """The distance in the brackets around each coordinate, and the edits that take them out.

    None if a coordinate is named twice.
    """
    found: dict[str, int] = {}
    edits = []
    for node in walk(index):
        name = facts.source.of(node) if node.type == "identifier" else ""
        if name not in names:
            continue
        if name in found:
            return None
        whole, found[name] = _around(facts, node, index)
        edits.append(Edit(whole.start_byte, whole.end_byte, name))
    return dict.fromkeys(names, 0) | found, edits


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
