"""Kernels that compute the element at their thread's global index, if that index is within bounds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.language_words import start_of
from warpsmith.rewrite.analysis.operations import both_ways, operands, operator
from warpsmith.rewrite.analysis.values.uniform_values import uniform_text
from warpsmith.rewrite.source.syntax_tree import Edit, Variable, apply_edits, contains, find, strip

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COORDINATES = ("tid", "bid", "bdim", "gdim", "gid", "gsize")


@dataclass(frozen=True)
class Place:
    """One coordinate of the element: `int i = get_global_id(0) + offset`, `low <= i < high`."""

    axis: str
    variable: Variable
    value: Node
    offset: str
    lows: tuple[str, ...] = ()
    highs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def kind(self) -> str:
        """The variable's type."""
        return self.variable.type_text


@dataclass(frozen=True)
class Element:
    """The element of a kernel: its indices, the statements before the bounds check, and those inside."""

    places: tuple[Place, ...]
    setup: tuple[Node, ...]
    """Declarations and assignments of locals; they touch no memory."""
    uniform: tuple[str, ...]
    """Conditions that have the same value for every thread."""
    inner: tuple[Node, ...]
    """Statements inside the bounds check."""
    guarded: bool

    def place(self, axis: str) -> Place | None:
        """The coordinate along an axis."""
        return next((p for p in self.places if p.axis == axis), None)

    def setup_text(self, facts: Facts) -> list[str]:
        """The setup statements with `ws_at_x` for the index along x, and so on."""
        found = []
        for statement in self.setup:
            start = start_of(facts.source, statement)
            edits = [
                Edit(p.value.start_byte - start, p.value.end_byte - start, f"ws_at_{p.axis}")
                for p in self.places
                if statement.start_byte <= p.value.start_byte < statement.end_byte
            ]
            found.append(apply_edits(facts.source.between(start, statement.end_byte), edits))
        return found


def statements(block: Node) -> list[Node]:
    """The statements of a block or of a single one."""
    if block.type != "compound_statement":
        return [block]
    return [n for n in block.named_children if n.type not in ("comment", ";", "preproc_call")]


def find_element(facts: Facts) -> Element | str:
    """The element that the kernel computes, or the reason why it is unclear."""
    rest = statements(facts.source.body)
    if any(n.type.startswith("preproc") for n in rest):
        return "a preprocessor condition stands between its statements"
    setup: list[Node] = []
    while rest and _is_setup(facts, rest[0]):
        setup.append(rest.pop(0))
    places = [p for s in setup if s.type == "declaration" for p in _places(facts, s)]
    if not places:
        return "no declaration of a global index at the top of the kernel"
    axes = [p.axis for p in places]
    if len(set(axes)) != len(axes):
        return "it names its place along one axis twice"
    for p in places:
        if facts.assigned(p.variable):
            return f"{p.name} is changed"
    other = _other_use(facts, places)
    if other is not None:
        return f"`{facts.source.of(other)}` also reads a thread's place"
    return _guard(facts, tuple(places), setup, rest)


_Terms = list[tuple[Node, bool]]
"""Conditions of bounds, and for each whether it is turned: True if it leaves the kernel."""


def _guard(facts: Facts, places: tuple[Place, ...], setup: list[Node], rest: list[Node]) -> Element | str:
    terms: _Terms = []
    while rest:
        if terms and _is_setup(facts, rest[0]):
            setup.append(rest.pop(0))
            continue
        if len(rest) == 1 and rest[0].type == "compound_statement":
            rest = statements(rest[0])
            continue
        found = _check_of_bounds(rest)
        if found is None or not all(_bound(facts, places, t, turned) for t, turned in found[0]):
            break
        terms += found[0]
        rest = found[1]
    uniform: list[str] = []
    for t, turned in terms:
        kept = _bound(facts, places, t, turned)
        assert kept is not None
        places, condition_text = kept
        uniform += [condition_text] if condition_text else []
    if not rest:
        return "it computes nothing inside of its bounds"
    if any(n.type == "return_statement" or find(n, "return_statement", "goto_statement") for n in rest):
        line = rest[0].start_point[0] + 1
        return f"line {line} may leave the kernel, and that is no plain check of bounds"
    return Element(places, tuple(setup), tuple(uniform), tuple(rest), bool(terms))


def _check_of_bounds(rest: list[Node]) -> tuple[_Terms, list[Node]] | None:
    """The conditions of a first statement `if (...) return;` or `if (...) {...}`, and what is inside of them.

    None if it is neither.
    """
    if rest[0].type != "if_statement" or rest[0].child_by_field_name("alternative") is not None:
        return None
    condition, then = (rest[0].child_by_field_name(f) for f in ("condition", "consequence"))
    assert condition is not None and then is not None
    inside = statements(then)
    if [n.type for n in inside] == ["return_statement"]:
        return [(t, True) for t in _terms(condition, "||")], rest[1:]
    if all(n.type == "return_statement" for n in rest[1:]):
        return [(t, False) for t in _terms(condition, "&&")], inside
    return None


def _is_setup(facts: Facts, statement: Node) -> bool:
    """True for a declaration, or an assignment to a local, that changes no memory."""
    if statement.type == "declaration":
        shared = any(v.is_shared for v in facts.source.variables if v.declaration == statement)
        return not shared and not list(facts.accesses(statement)) and not facts.unsafe(statement)
    inner = statement.named_child(0) if statement.type == "expression_statement" else None
    if inner is None or inner.type != "assignment_expression" or list(facts.accesses(statement)):
        return False
    v = facts.variable(operands(inner)[0])
    return v is not None and not v.is_parameter and not facts.unsafe(statement)


def _places(facts: Facts, statement: Node) -> Iterator[Place]:
    for v in facts.source.variables:
        if v.declaration != statement or v.init is None or v.is_pointer or v.is_array:
            continue
        where = facts.coordinate(v.init)
        if where and where.startswith("gid."):
            if strip(v.init).type != "identifier":
                yield Place(where[-1], v, v.init, "")
            continue
        value = strip(v.init)
        if value.type == "binary_expression" and operator(value) == "+":
            for a, b in both_ways(value):
                where, offset = facts.coordinate(a), uniform_text(facts, b)
                if where and where.startswith("gid.") and offset is not None:
                    yield Place(where[-1], v, v.init, f" + ({offset})")
                    break


def _other_use(facts: Facts, places: list[Place]) -> Node | None:
    for function in facts.source.reachable:
        for node in find(function, "field_expression", "call_expression"):
            inside = any(contains(p.value, node) for p in places)
            name = facts.coordinate(node)
            if not inside and name and name.split(".")[0] in _COORDINATES:
                return node
            if not inside and re.match(r"get_(global|local|group|num|work)_", facts.source.of(node)):
                return node
    return None


def _terms(node: Node, joined_by: str) -> Iterator[Node]:
    node = strip(node)
    if node.type == "binary_expression" and operator(node) == joined_by:
        for side in operands(node):
            yield from _terms(side, joined_by)
    else:
        yield node


def _bound(
    facts: Facts, places: tuple[Place, ...], term: Node, turned: bool
) -> tuple[tuple[Place, ...], str] | None:
    """The places with one more bound, or a condition on none of them; None if it is neither."""
    whole = uniform_text(facts, term) if not turned else None
    negated = uniform_text(facts, term) if turned else None
    if whole is not None or negated is not None:
        return places, f"({whole})" if whole is not None else f"!({negated})"
    if term.type != "binary_expression" or operator(term) not in _TURNED:
        return None
    left, right = operands(term)
    for a, b, sign in ((left, right, operator(term)), (right, left, _TURNED[operator(term)])):
        v, text = facts.variable(strip(a)), uniform_text(facts, b)
        place = next((p for p in places if p.variable == v), None)
        if place is None or text is None:
            continue
        holds = _OPPOSITE[sign] if turned else sign
        low = {">=": f"({text})", ">": f"(({text}) + 1)"}.get(holds)
        high = {"<": f"({text})", "<=": f"(({text}) + 1)"}.get(holds)
        new = Place(
            place.axis,
            place.variable,
            place.value,
            place.offset,
            (*place.lows, low) if low else place.lows,
            (*place.highs, high) if high else place.highs,
        )
        return tuple(new if p is place else p for p in places), ""
    return None


def reached(places: tuple[Place, ...]) -> list[str]:
    """Conditions, the same for all threads of a block, under which an index within bounds exists."""
    found = [f"ws_first_{p.axis} < {h}" for p in places for h in p.highs]
    found += [f"{low} < {high}" for p in places for low in p.lows for high in p.highs]
    return found + [f"({p.kind})0 < {h}" for p in places for h in p.highs if not p.lows]
