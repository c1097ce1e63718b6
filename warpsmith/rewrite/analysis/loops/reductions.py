"""Variables that a loop only sums, or whose minimum or maximum it keeps: the order does not matter."""

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.rewrite.analysis.indices.guarded_element import statements
from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.analysis.loops.counted_loops import CountedLoop, counted, counter_is_free
from warpsmith.rewrite.analysis.loops.strided_loops import changed_variables
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.source.syntax_tree import Variable, ancestors, find, strip

_ASSIGNS = {"+=": "+", "-=": "+", "*=": "*", "|=": "|", "&=": "&", "^=": "^"}
_NEUTRAL = {"+": "0", "*": "1", "^": "0"}
_CALLS = re.compile(r"^(?:__)?f?(max|min)f?$")
_BETTER = {">": ">", ">=": ">", "<": "<", "<=": "<"}
_TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


@dataclass(frozen=True)
class Reduction:
    """The reduction of one variable in a loop."""

    variable: Variable
    sign: str
    """`+ * | & ^`, or `<` and `>` for minimum and maximum."""
    place: Variable | None = None
    """The variable that stores where the minimum or maximum was first found."""

    @property
    def neutral(self) -> str:
        """Initial value of all threads but one; empty if all may start with the value so far."""
        return _NEUTRAL.get(self.sign, "")

    def joined(self, mine: str, other: str) -> str:
        """The statement that combines another partial result with this one."""
        if self.sign in "<>":
            return f"if ({other} {self.sign} {mine}) {mine} = {other};"
        return f"{mine} = {mine} {self.sign} {other};"


def reductions(facts: Facts, loop: CountedLoop) -> list[Reduction] | str:
    """Reductions of all variables that outlive an iteration; or the variable that is no reduction."""
    changed: dict[str, tuple[Variable, list[Node]]] = {}
    for v, place in changed_variables(facts, loop.body):
        if not loop.declares(v):
            changed.setdefault(v.name, (v, []))[1].append(place)
    found: list[Reduction] = []
    for v, places in changed.values():
        if _counts_inside(facts, loop, v):
            continue
        if v.is_parameter or v.is_array or v.is_pointer or v.scope is None:
            return f"{v.name} is changed in it"
        one = _reduction(facts, loop, v, places)
        if one is not None:
            found.append(one)
        elif not any(r.place == v for r in _all(facts, loop, changed)):
            return f"{v.name} carries a value from one iteration to the next"
    return found


def _all(facts: Facts, loop: CountedLoop, changed: dict[str, tuple[Variable, list[Node]]]) -> list[Reduction]:
    return [r for v, places in changed.values() if (r := _reduction(facts, loop, v, places)) is not None]


def _counts_inside(facts: Facts, loop: CountedLoop, v: Variable) -> bool:
    """True if a variable declared outside is only the counter of inner loops, each of which sets it anew."""
    for n in find(loop.body, "identifier"):
        if facts.variable(n) == v:
            around = [a for a in ancestors(n) if a.type == "for_statement" and loop.contains(a)]
            inner = [counted(facts, a) for a in around if a != loop.node]
            mine = [c for c in inner if c is not None and c.variable == v]
            if not mine or not counter_is_free(facts, mine[0]):
                return False
    return True


def _reduction(facts: Facts, loop: CountedLoop, v: Variable, places: list[Node]) -> Reduction | None:
    if len(places) != 1:
        return None
    assignment = places[0].parent
    if assignment is None or assignment.type != "assignment_expression":
        return None
    uses = sum(facts.variable(n) == v for n in find(loop.body, "identifier"))
    sign, right = operator(assignment), strip(operands(assignment)[1])
    if sign in _ASSIGNS:
        return Reduction(v, _ASSIGNS[sign]) if uses == 1 else None
    if sign != "=":
        return None
    match right.type, uses:
        case "binary_expression", 2:
            return _sum(facts, v, right)
        case "call_expression", 2:
            return _extreme(facts, v, right)
        case "conditional_expression", 3:
            return _chosen(facts, v, right)
        case _, 2:
            return _kept(facts, loop, v, assignment, right)
    return None


def _extreme(facts: Facts, v: Variable, right: Node) -> Reduction | None:
    """`max(v, e)`, `min(e, v)`."""
    call = _CALLS.match(facts.source.callee(right))
    direct = [a for a in facts.source.arguments(right) if facts.variable(strip(a)) == v]
    return Reduction(v, ">" if call.group(1) == "max" else "<") if call and len(direct) == 1 else None


def _sum(facts: Facts, v: Variable, right: Node) -> Reduction | None:
    """The reduction in `v + e`, `e + v` or `v + e + f`."""
    sign = operator(right)
    if sign not in ("+", "-", "*"):
        return None
    left, other = (strip(o) for o in operands(right))
    made = Reduction(v, "*" if sign == "*" else "+")
    if facts.variable(left) == v or (sign != "-" and facts.variable(other) == v):
        return made
    if left.type == "binary_expression" and (operator(left) == "*") == (sign == "*"):
        return _sum(facts, v, left)
    return None


def _chosen(facts: Facts, v: Variable, right: Node) -> Reduction | None:
    """The reduction in `e > v ? e : v`."""
    condition, yes, no = (right.child_by_field_name(f) for f in ("condition", "consequence", "alternative"))
    if condition is None or yes is None or no is None or facts.variable(strip(no)) != v:
        return None
    sign = _compared(facts, v, condition, yes)
    return None if sign is None else Reduction(v, _BETTER[sign])


def _compared(facts: Facts, v: Variable, condition: Node, value: Node) -> str | None:
    """The sign of `value > v`, in either order."""
    condition = strip(condition)
    if condition.type != "binary_expression" or operator(condition) not in _BETTER:
        return None
    left, right = (strip(o) for o in operands(condition))
    text = facts.source.of(strip(value))
    if facts.variable(right) == v and facts.source.of(left) == text:
        return operator(condition)
    if facts.variable(left) == v and facts.source.of(right) == text:
        return _TURNED[operator(condition)]
    return None


def _kept(facts: Facts, loop: CountedLoop, v: Variable, assignment: Node, right: Node) -> Reduction | None:
    """The reduction in `if (e > v) v = e;`, or in `{ v = e; place = counter; }` if the comparison is
    strict."""
    choice = next((a for a in ancestors(assignment) if a.type == "if_statement"), None)
    if choice is None or choice.child_by_field_name("alternative") is not None:
        return None
    condition, then = (choice.child_by_field_name(f) for f in ("condition", "consequence"))
    assert condition is not None and then is not None
    sign = _compared(facts, v, condition, right)
    inside = [s.named_child(0) for s in statements(then) if s.type == "expression_statement"]
    if sign is None or len(inside) != len(statements(then)) or assignment not in inside:
        return None
    if len(inside) == 1:
        return Reduction(v, _BETTER[sign])
    if len(inside) != 2 or sign not in "<>":
        return None
    other = next(s for s in inside if s != assignment)
    place = None if other is None else _place(facts, loop, other)
    return None if place is None else Reduction(v, sign, place)


def _place(facts: Facts, loop: CountedLoop, assignment: Node) -> Variable | None:
    """The plain variable that an assignment sets to the loop's counter, if nothing else uses it."""
    if assignment.type != "assignment_expression" or operator(assignment) != "=":
        return None
    left, right = operands(assignment)
    place = facts.variable(left)
    if place is None or facts.variable(strip(right)) != loop.variable:
        return None
    if place.is_array or place.is_pointer or place.is_parameter:
        return None
    uses = sum(facts.variable(n) == place for n in find(loop.body, "identifier"))
    return place if uses == 1 else None
