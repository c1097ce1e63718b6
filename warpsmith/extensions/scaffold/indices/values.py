"""Integer expressions of a kernel as polynomials over its sizes and over places of threads and loops."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.rules.analysis.operations import operands, operator
from warpsmith.extensions.scaffold.indices.polynomials import Polynomial, Unknown
from warpsmith.source.tree.syntax_tree import Variable, find, strip
from warpsmith.source.tree.work_limit import spend

VARYING = "$"
"""First character of the name of a value that is no size."""
BLOCKS = "#"
"""First character of the number of blocks along an axis, such as `#x`."""
_DEEPEST = 24
_INTEGER = re.compile(
    r"(?:(?:unsigned|signed|long|short|const|int|char) ?)+|u(?:int|long|short|char)|size_t|ptrdiff_t"
    r"|u?int(?:8|16|32|64)_t"
)
_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
_PRODUCT = ("mul24", "__mul24", "__umul24", "umul24")
_PASSED_ON = re.compile(r"convert_u?(?:int|long|short|char)(?:_\w+)?|as_u?(?:int|long)|static_cast|__ldg")
_COMPONENTS = {c: n for n, c in enumerate("xyzw")} | {f"s{n}": n for n in range(4)}


@dataclass(frozen=True)
class Range:
    """Values that something may have; None and nothing: unknown."""

    lower: Polynomial | None = None
    upper: tuple[Polynomial, ...] = ()
    any_bound: bool = False
    """True if each of `upper` is a bound; else the largest of them is."""
    divided: tuple[Polynomial, Polynomial] | None = None
    """Dividend and divisor of a quotient."""
    order: int = 0
    """Values with larger numbers are replaced by their bounds first."""


@dataclass
class IndexValues:
    """Answers about the integer expressions of one kernel.

    Args:
        block: threads of a block along x, y, z.
        numbers: names with a fixed value.
    """

    facts: Facts
    block: tuple[int, ...]
    numbers: Mapping[str, int]
    ranges: dict[str, Range] = field(default_factory=dict)
    equal: list[tuple[Polynomial, Polynomial]] = field(default_factory=list)
    """Pairs of values that are equal."""
    starts: dict[str, Polynomial] = field(default_factory=dict)
    """First values of variables that only grow."""
    variables: dict[str, Variable] = field(default_factory=dict)
    """Variables behind names of values that change."""
    quotients: dict[str, tuple[Polynomial, Polynomial]] = field(default_factory=dict)
    """Dividend and divisor of names that are quotients of sizes."""
    indirect: set[str] = field(default_factory=set)
    """Arguments whose elements are parts of integer expressions."""
    _known: dict[tuple[str, int], Polynomial] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one = Polynomial.number(1)
        for n, axis in enumerate(AXES):
            zero, blocks = Polynomial(), Polynomial.name(f"{BLOCKS}{axis}")
            self.ranges[f"$tid.{axis}"] = Range(zero, (Polynomial.number(self.block[n] - 1),), order=2)
            self.ranges[f"$bid.{axis}"] = Range(zero, (blocks - one,), order=1)

    def of(self, node: Node, depth: int = 0) -> Polynomial:
        """The value of an expression.

        Raises:
            Unknown: it is no integer arithmetic that is understood.
        """
        spend(4)
        node = strip(node)
        if depth > _DEEPEST:
            raise Unknown
        match node.type:
            case "number_literal":
                return self._number(node)
            case "identifier":
                return self._identifier(node, depth)
            case "binary_expression":
                return self._binary(node, depth)
            case "unary_expression" if operator(node) in "+-":
                value = self.of(node.child_by_field_name("argument") or node.children[-1], depth + 1)
                return value if operator(node) == "+" else -value
            case "cast_expression":
                return self.of(node.child_by_field_name("value") or node.children[-1], depth + 1)
            case "call_expression" | "field_expression":
                return self._place(node, depth)
            case "conditional_expression":
                return self._chosen(node, depth)
            case "update_expression":
                return self.of(node.child_by_field_name("argument") or node.children[0], depth + 1)
            case "assignment_expression" if operator(node) == "=":
                return self.of(operands(node)[1], depth + 1)
        self.note_memory(node)
        raise Unknown

    def note_memory(self, node: Node) -> None:
        """Remember arguments whose elements are read in an integer expression."""
        for element in find(node, "subscript_expression"):
            root = self.facts.root(element)
            if root is not None and root.is_parameter:
                self.indirect.add(root.name)

    def varying(self, key: str, found: Range) -> Polynomial:
        """A value of which only the range is known."""
        name = f"{VARYING}{key}"
        self.ranges.setdefault(name, found)
        return Polynomial.name(name)

    def _number(self, literal: Node) -> Polynomial:
        found = _LITERAL.fullmatch(self.facts.source.of(literal))
        if found is None:
            raise Unknown
        text = found.group(1)
        return Polynomial.number(int(text, 16 if text[:2].lower() == "0x" else 10))

    def _identifier(self, node: Node, depth: int) -> Polynomial:
        v = self.facts.variable(node)
        text = self.facts.source.of(node)
        if v is None:
            if text not in self.numbers:
                raise Unknown
            return Polynomial.number(self.numbers[text])
        key = (v.name, v.declaration.start_byte)
        if key not in self._known:
            # A variable that names itself is no more than a value without bounds.
            self._known[key] = Polynomial.name(f"{VARYING}{v.name}@{v.declaration.start_byte}")
            self._known[key] = self._variable(v, depth)
        return self._known[key]

    def _variable(self, v: Variable, depth: int) -> Polynomial:
        if v.is_pointer or v.is_array or re.search(r"float|double|half|bool", v.type_text):
            raise Unknown
        changes = self.facts.assigned(v)
        if v.is_parameter and not changes:
            if not _INTEGER.fullmatch(v.type_text.strip()) and v.type_text.strip()[-1:].isdigit():
                raise Unknown
            return Polynomial.name(v.name)
        if v.init is not None and not changes:
            if v.name in self.numbers and v.scope is None:
                return Polynomial.number(self.numbers[v.name])
            try:
                return self.of(v.init, depth + 1)
            except Unknown:
                self.note_memory(v.init)
        name = f"{v.name}@{v.declaration.start_byte}"
        self.variables[f"{VARYING}{name}"] = v
        return self.varying(name, self._changing(v, changes, depth))

    def _changing(self, v: Variable, changes: list[Node], depth: int) -> Range:
        """The range of a variable that is set several times, from how it is set."""
        unbounded = Range(order=10 + v.declaration.start_byte)
        sets = [] if v.init is None else [v.init]
        signs = set()
        for place in changes:
            statement = place.parent
            if statement is None or statement.type not in ("assignment_expression", "update_expression"):
                return unbounded
            sign, value = self._step(v, statement)
            signs.add(sign)
            if value is not None:
                sets.append(value)
        signs.discard(0)
        starts = []
        for value in sets:
            try:
                starts.append(self.of(value, depth + 1))
            except Unknown:
                self.note_memory(value)
                return unbounded
        name = f"{VARYING}{v.name}@{v.declaration.start_byte}"
        if any(name in s.names for s in starts):
            return unbounded
        only = starts[0] if len(starts) == 1 else None
        if only is not None and signs <= {1}:
            self.starts[name] = only
        lower = Polynomial() if only is None or signs == {-1} else only
        return replace(unbounded, lower=lower, upper=tuple(starts) if 1 not in signs else ())

    def _step(self, v: Variable, statement: Node) -> tuple[int, Node | None]:
        """Direction in which a statement moves a variable (1, -1; 0 for none), and the value that it sets."""
        if statement.type == "update_expression":
            return (1 if "++" in self.facts.source.of(statement) else -1), None
        sign = {"+=": 1, "*=": 1, "<<=": 1, "-=": -1, ">>=": -1, "/=": -1, "%=": -1, "&=": -1}
        how, value = operator(statement), strip(operands(statement)[1])
        if how != "=":
            return sign.get(how, 1), None
        if value.type == "binary_expression" and self.facts.variable(strip(operands(value)[0])) == v:
            how = f"{operator(value)}="
            if how in sign:
                return sign[how], None
        return 0, value

    def _binary(self, node: Node, depth: int) -> Polynomial:
        left, right = operands(node)
        how = operator(node)
        if how not in ("+", "-", "*", "/", "%", "<<", ">>", "&"):
            raise Unknown
        if how == "&":
            return self._masked(left, right, depth)
        a, b = self.of(left, depth + 1), self.of(right, depth + 1)
        match how:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "<<" | ">>":
                if b.constant is None or not 0 <= b.constant < 32:
                    raise Unknown
                b = Polynomial.number(1 << b.constant)
                return a * b if how == "<<" else self._divided(a, b)[0]
        return self._divided(a, b)[how == "%"]

    def _masked(self, left: Node, right: Node, depth: int) -> Polynomial:
        for side in (right, left):
            try:
                mask = self.of(side, depth + 1)
            except Unknown:
                continue
            if not any(n[0] == VARYING for n in mask.names) and (mask.constant or 0) >= 0:
                key = f"&{left.start_byte}"
                return self.varying(key, Range(Polynomial(), (mask,), order=5))
        raise Unknown

    def _divided(self, a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Quotient and remainder."""
        if any(n[0] == VARYING for n in b.names) or b.constant == 0:
            raise Unknown
        exact = a.divided(b)
        if exact is not None:
            return exact, Polynomial()
        if not any(n[0] == VARYING for n in a.names):
            if not a.is_nonnegative(lambda n: int(n[0] not in "($#")):
                raise Unknown
            return self.quotient(a, b), Polynomial.name(f"({bracketed(a)} % {bracketed(b)})")
        key = f"{a.text()}|{b.text()}"
        quotient = self.varying(f"/{key}", Range(Polynomial(), divided=(a, b), order=5))
        one = Polynomial.number(1)
        rest = self.varying(f"%{key}", Range(Polynomial(), (b - one,), order=5))
        pair = (quotient * b + rest, a)
        if pair not in self.equal:
            self.equal.append(pair)
        return quotient, rest

    def quotient(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """The quotient of sizes, rounded down, as a name."""
        name = f"({bracketed(a)} // {bracketed(b)})"
        self.quotients[name] = (a, b)
        return Polynomial.name(name)

    def rounded(self, a: Polynomial, b: int) -> Polynomial:
        """The quotient of sizes, rounded up."""
        whole = a.divided(Polynomial.number(b))
        if whole is not None:
            return whole
        name = f"ceil_div({a.text()}, {b})"
        self.quotients[name] = (a, Polynomial.number(b))
        return Polynomial.name(name)

    def _place(self, node: Node, depth: int) -> Polynomial:
        where = self.facts.coordinate(node)
        if where is not None:
            kind, axis = where.split(".")
            threads = Polynomial.number(self.block[AXES.index(axis)])
            match kind:
                case "tid" | "bid":
                    return Polynomial.name(f"{VARYING}{where}")
                case "bdim":
                    return threads
                case "gdim":
                    return Polynomial.name(f"{BLOCKS}{axis}")
                case "gsize":
                    return threads * Polynomial.name(f"{BLOCKS}{axis}")
            return threads * Polynomial.name(f"$bid.{axis}") + Polynomial.name(f"$tid.{axis}")
        return self._call(node, depth) if node.type == "call_expression" else self._component(node, depth)

    def _call(self, node: Node, depth: int) -> Polynomial:
        name, arguments = self.facts.source.callee(node), self.facts.source.arguments(node)
        if name in ("get_global_offset",):
            return Polynomial()
        if len(arguments) == 1 and (_INTEGER.fullmatch(name) or _PASSED_ON.fullmatch(name)):
            return self.of(arguments[0], depth + 1)
        if name not in (*_PRODUCT, "mad24", "min", "max", "clamp") or not arguments:
            self.note_memory(node)
            raise Unknown
        if name == "min":
            return self._least(node, arguments, depth)
        values = [self.of(a, depth + 1) for a in arguments]
        if name in _PRODUCT:
            return values[0] * values[1]
        if name == "mad24":
            return values[0] * values[1] + values[2]
        if name == "clamp":
            return self.varying(f"clamp{node.start_byte}", Range(values[1], (values[2],), order=5))
        zero = Polynomial()
        return self.varying(f"max{node.start_byte}", Range(zero, tuple(values), order=5))

    def _least(self, node: Node, arguments: list[Node], depth: int) -> Polynomial:
        values = []
        for a in arguments:
            try:
                values.append(self.of(a, depth + 1))
            except Unknown:
                continue
        if not values:
            raise Unknown
        sizes_first = sorted(values, key=lambda p: any(n[0] == VARYING for n in p.names))
        found = Range(Polynomial(), tuple(sizes_first), any_bound=True, order=5)
        return self.varying(f"min{node.start_byte}", found)

    def _chosen(self, node: Node, depth: int) -> Polynomial:
        parts = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
        values = tuple(self.of(p, depth + 1) for p in parts if p is not None)
        # `x < w ? x : w - 1` is a minimum.
        if len(values) == 2 and values[0] == values[1]:
            return values[0]
        condition = node.child_by_field_name("condition")
        least = condition is not None and self._is_least(strip(condition), values, depth)
        return self.varying(f"?{node.start_byte}", Range(Polynomial(), values, any_bound=least, order=5))

    def _is_least(self, condition: Node, values: tuple[Polynomial, ...], depth: int) -> bool:
        if condition.type != "binary_expression" or operator(condition) not in ("<", "<=", ">", ">="):
            return False
        a, b = (self.of(o, depth + 1) for o in operands(condition))
        small, large = (a, b) if "<" in operator(condition) else (b, a)
        return small == values[0] and (large - values[1]).constant in (0, 1)

    def _component(self, node: Node, depth: int) -> Polynomial:
        """`p.x` of a local `int2 p = (int2)(a, b)` or `make_int2(a, b)`."""
        base, name = node.child_by_field_name("argument"), node.child_by_field_name("field")
        value = None if base is None else self.facts.value_of(strip(base))
        number = _COMPONENTS.get("" if name is None else self.facts.source.of(name))
        if value is None or number is None:
            raise Unknown
        parts = _listed(value) if value.type == "cast_expression" else self.facts.source.arguments(value)
        if number >= len(parts) or len(parts) < 2:
            raise Unknown
        return self.of(parts[number], depth + 1)


def is_whole(v: Variable) -> bool:
    """True for an argument that is a whole number."""
    kind = re.sub(r"\b(?:const|volatile)\b", " ", v.type_text).strip()
    return not (v.is_pointer or v.is_array) and _INTEGER.fullmatch(kind) is not None


def _listed(cast: Node) -> list[Node]:
    """The parts of `(int2)(a, b)`."""
    inner = strip(cast.child_by_field_name("value") or cast)
    parts: list[Node] = []
    while inner.type == "comma_expression":
        left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
        if left is None or right is None:
            return []
        parts.append(left)
        inner = right
    return [*parts, inner]


def bracketed(p: Polynomial) -> str:
    """The value as an operand."""
    text = p.text()
    is_whole = len(p.terms) == 1 and len(p.terms[0][0]) <= 1 and " " not in text
    return text if is_whole or (p.names and p == Polynomial.name(next(iter(p.names)))) else f"({text})"
