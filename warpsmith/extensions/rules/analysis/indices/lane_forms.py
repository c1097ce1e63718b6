"""Forms of values by the lane of a pack, for kernels that split an index by divisions."""

import re
from collections.abc import Sequence
from enum import Enum

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.calls.callees import is_known_pure
from warpsmith.extensions.rules.analysis.indices.index_bounds import macro_bodies
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.operations import assignment_to, operands, operator
from warpsmith.source.tree.syntax_tree import Variable, find, strip

_NARROW = re.compile(r"\b(?:char|short|uchar|ushort|u?int(?:8|16)_t|half|float|double|bool|__half)\b")
_WIDE = re.compile(
    r"(?:static_cast<)?(?:unsigned )?(?:int|long long|long|u?int(?:32|64)_t|size_t|unsigned)>?"
)
_LOGIC = ("==", "!=", "<", "<=", ">", ">=", "&&", "||", "&", "|", "^", "<<", ">>", "/", "%", "*", "+", "-")
_DEEPEST = 64


class LaneForm(Enum):
    """Form of a value of the elements of a pack, counted by the lane."""

    SAME = "the same for every lane"
    COUNTS = "a multiple of the pack, plus the lane"
    NEXT = "something that is the same for every lane, plus the lane"
    VARIES = "anything else"


class LaneForms:
    """Forms of values in statements that are executed one after the other.

    The lanes of a pack are neighbours whose first one is a multiple of the pack. A quotient of what counts so
    is the same for all of them, and a remainder counts so as well, if the divisor is a multiple of the pack:
    `divisors` holds what has to be one.
    """

    def __init__(self, facts: Facts, index: Variable, statements: Sequence[Node]) -> None:
        self._facts = facts
        self._index = index
        self._statements = statements
        self.divisors: dict[str, Node] = {}

    def form(self, node: Node, depth: int = 0) -> LaneForm:
        """The form of an integer or of a pointer."""
        node = strip(node)
        if depth > _DEEPEST:
            return LaneForm.VARIES
        match node.type:
            case "number_literal":
                return LaneForm.SAME
            case "identifier":
                return self._of_name(node, depth)
            case "binary_expression":
                return self._of_operation(node, depth)
            case "conditional_expression":
                return self._of_choice(node, depth)
            case "cast_expression":
                value, kind = node.child_by_field_name("value"), node.child_by_field_name("type")
                narrow = value is None or kind is None or _NARROW.search(self._facts.source.of(kind))
                return LaneForm.VARIES if narrow or value is None else self.form(value, depth + 1)
            case "call_expression":
                return self._of_call(node, depth)
        return LaneForm.VARIES

    def _of_name(self, identifier: Node, depth: int) -> LaneForm:
        v = self._facts.variable(identifier)
        if v == self._index:
            return LaneForm.COUNTS
        if v is None or v.scope is None:
            bodies = macro_bodies(self._facts, self._facts.source.of(identifier))
            constant = v.is_const if v is not None else all(re.fullmatch(r"[\w() ]+", b) for b in bodies)
            return LaneForm.SAME if constant else LaneForm.VARIES
        if v.is_parameter:
            return LaneForm.VARIES if self._facts.assigned(v) else LaneForm.SAME
        kept = v.is_pointer or v.type_text == "auto" or _WIDE.fullmatch(v.kind) is not None
        value = self._value(v, identifier) if kept else None
        return LaneForm.VARIES if value is None else self.form(value, depth + 1)

    def _value(self, v: Variable, at: Node) -> Node | None:
        """The value that a local was last given before a place, if only the statements themselves set it."""
        values = [] if v.init is None else [(v.declaration.start_byte, v.init)]
        for place in self._facts.assigned(v):
            assignment, statement = assignment_to(place) or (None, None)
            if assignment is None or statement is None or statement not in self._statements:
                return None
            if operator(assignment) != "=":
                return None
            values.append((statement.start_byte, operands(assignment)[1]))
        # A value that is set in the statement of the place is set after the place is read.
        before = [(start, value) for start, value in values if self._is_before(start, at)]
        return max(before, key=lambda pair: pair[0])[1] if before and not v.is_array else None

    def _is_before(self, start: int, at: Node) -> bool:
        own = next((s for s in self._statements if s.start_byte <= at.start_byte < s.end_byte), None)
        if own is None or own.type == "declaration":
            return start < at.start_byte
        return start < own.start_byte

    def _of_operation(self, node: Node, depth: int) -> LaneForm:
        left, right = (self.form(o, depth + 1) for o in operands(node))
        sign = operator(node)
        if sign not in _LOGIC or LaneForm.VARIES in (left, right):
            return LaneForm.VARIES
        if left is right is LaneForm.SAME:
            return LaneForm.SAME
        if sign in ("+", "-") and (right is LaneForm.SAME or (sign == "+" and left is LaneForm.SAME)):
            return LaneForm.NEXT
        divided = sign in ("/", "%") and left is LaneForm.COUNTS and right is LaneForm.SAME
        return self._of_quotient(sign, strip(operands(node)[1])) if divided else LaneForm.VARIES

    def _of_quotient(self, sign: str, divisor: Node) -> LaneForm:
        """The form of a quotient or remainder of what counts by the lane."""
        if any(self._facts.assigned(v) for v in self._facts.variables_in(divisor)):
            return LaneForm.VARIES
        self.divisors.setdefault(self._facts.source.of(divisor), divisor)
        return LaneForm.SAME if sign == "/" else LaneForm.COUNTS

    def _of_choice(self, node: Node, depth: int) -> LaneForm:
        parts = [node.child_by_field_name(f) for f in ("condition", "consequence", "alternative")]
        forms = [LaneForm.VARIES if p is None else self.form(p, depth + 1) for p in parts]
        if forms[0] is not LaneForm.SAME or LaneForm.VARIES in forms:
            return LaneForm.VARIES
        if forms[1] is forms[2]:
            return forms[1]
        return LaneForm.VARIES if LaneForm.SAME in forms[1:] else LaneForm.NEXT

    def _of_call(self, node: Node, depth: int) -> LaneForm:
        name, given = self._facts.source.callee(node), self._facts.source.arguments(node)
        function = node.child_by_field_name("function")
        kind = "" if function is None else self._facts.source.of(function)
        if len(given) == 1 and _WIDE.fullmatch(kind.replace("std::", "")):
            return self.form(given[0], depth + 1)
        pure = is_known_pure(name) and not find(node, "pointer_expression", "subscript_expression")
        same = (
            pure
            and not name.startswith("__ld")
            and all(self.form(a, depth + 1) is LaneForm.SAME for a in given)
        )
        return LaneForm.SAME if same else LaneForm.VARIES
