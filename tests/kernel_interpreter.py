"""What a launch of a kernel reads and writes, thread by thread.

An interpreter of the C in which the kernels of `testbed.kernels` are spelt. It shares no code with the rules
that it judges, except for the words of types and what the preprocessor makes of a macro. Threads of a block
go in turns from barrier to barrier. What the interpreter does not know, it refuses.
"""

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, NamedTuple

from tree_sitter import Node

from testbed.kernels.spelling_text import Text, between
from tests.kernel_numbers import Number, Place, converted, is_true, literal, number_type, of_two
from warpsmith.domain.dtype import Dtype
from warpsmith.rewrite.reader.lexing.tokens import directives
from warpsmith.rewrite.reader.macros.macro_expansion import Expander, definition, uses_of

Triple = tuple[int, int, int]
Value = Number | Place
Left = Literal["", "break", "continue", "return"]
"""How a statement was left; empty: at its end."""

_BARRIERS = ("__syncthreads", "barrier")
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "fmax": max,
    "fmin": min,
}
_OPENCL = {
    "get_global_id": "gid",
    "get_local_id": "threadIdx",
    "get_group_id": "blockIdx",
    "get_local_size": "blockDim",
    "get_num_groups": "gridDim",
    "get_global_size": "gsize",
}


class Access(NamedTuple):
    """An element that a thread reads or writes; a guard that keeps a thread away shows as its absence."""

    block: Triple
    thread: Triple
    barriers: int
    """How many the thread had passed."""
    array: str
    offset: int
    kind: Literal["read", "write"]


@dataclass
class Launch:
    """One launch with its memory."""

    grid: Triple
    block: Triple
    scalars: Mapping[str, Number]
    pointers: Mapping[str, Dtype]
    """Types of the elements of buffers."""
    memory: dict[str, dict[int, int | float]]
    """Elements of buffers; others are 0."""
    accesses: set[Access] = field(default_factory=set)


@dataclass
class _Thread:
    launch: Launch
    block: Triple
    thread: Triple
    shared: dict[str, dict[int, int | float]]
    scopes: list[dict[str, Value]]
    types: list[dict[str, Dtype]] = field(default_factory=lambda: [{}])
    barriers: int = 0

    def scope_of(self, name: str) -> int:
        """The innermost scope that declares a name."""
        return next(n for n in reversed(range(len(self.scopes))) if name in self.scopes[n])

    def coordinate(self, kind: str, axis: int) -> int:
        """`threadIdx`, `gid` and so on, by axis."""
        sizes = {"threadIdx": self.thread, "blockIdx": self.block}
        sizes |= {"blockDim": self.launch.block, "gridDim": self.launch.grid}
        if kind == "gid":
            return self.block[axis] * self.launch.block[axis] + self.thread[axis]
        if kind == "gsize":
            return self.launch.grid[axis] * self.launch.block[axis]
        return sizes[kind][axis]

    def _elements(self, place: Place, kind: Literal["read", "write"]) -> dict[int, int | float]:
        self.launch.accesses.add(
            Access(self.block, self.thread, self.barriers, place.array, place.offset, kind)
        )
        return self.shared[place.array] if place.array in self.shared else self.launch.memory[place.array]

    def read(self, place: Place) -> Number:
        """The element at a place."""
        return converted(Number(place.dtype, self._elements(place, "read").get(place.offset, 0)), place.dtype)

    def write(self, place: Place, number: Number) -> Number:
        """Set the element at a place."""
        made = converted(number, place.dtype)
        self._elements(place, "write")[place.offset] = made.value
        return made


Compute = Callable[[_Thread], Value]
Statement = Callable[[_Thread], Generator[None, None, Left]]


def run(source: str, launch: Launch) -> None:
    """Run a launch of the one kernel of a source; its accesses and memory are in `launch` then.

    Raises:
        UndefinedError: the language does not say what the kernel does.
        AssertionError: the source uses what the interpreter does not know, or threads part at a barrier.
    """
    kernel = _Compiled(Text(_expanded(source)))
    for block in _places(launch.grid):
        shared: dict[str, dict[int, int | float]] = {name: {} for name in kernel.shared}
        pointers = {name: Place(name, dtype, 0) for name, dtype in launch.pointers.items()}
        threads = [
            _Thread(launch, block, thread, shared, [{**launch.scalars, **pointers}, {}], [{}, {}])
            for thread in _places(launch.block)
        ]
        running = [kernel.body(t) for t in threads]
        while True:
            waiting = [g for g in running if next(g, "end") is None]
            assert waiting in ([], running), "threads part at a barrier"
            if not waiting:
                break
            for t in threads:
                t.barriers += 1


def _places(size: Triple) -> Iterator[Triple]:
    return ((x, y, z) for z, y, x in product(*(range(n) for n in reversed(size))))


def _expanded(source: str) -> str:
    """The source without its macros."""
    lines = list(directives(source))
    macros = dict(filter(None, (definition(line.text) for line in lines)))
    assert len(macros) == len(lines), source
    text = source
    for line in reversed(lines):
        text = text[: line.start] + text[line.end :]
    expander = Expander(macros, {})
    at = 0
    while use := next((u for u in uses_of(text[at:], macros)), None):
        begin = at + use.start()
        end, made = expander.use_at(text, begin)
        text, at = text[:begin] + made + text[end:], begin + len(made)
    return text


class _Compiled:
    """A kernel as functions of a thread."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self.shared: set[str] = set()
        self.body = self._statement(text.body)

    # Expressions.

    def _value(self, node: Node) -> Compute:
        made = {
            "identifier": self._name,
            "number_literal": self._literal,
            "parenthesized_expression": lambda n: self._value(n.named_children[0]),
            "condition_clause": lambda n: self._value(n.named_children[0]),
            "field_expression": self._coordinate,
            "call_expression": self._call,
            "cast_expression": self._cast,
            "unary_expression": self._unary,
            "binary_expression": self._binary,
            "conditional_expression": self._conditional,
            "comma_expression": self._comma,
            "assignment_expression": self._assignment,
            "update_expression": self._update,
            "subscript_expression": self._element,
            "pointer_expression": self._element,
        }
        assert node.type in made, (node.type, self._text.of(node))
        return made[node.type](node)

    def _number(self, node: Node) -> Callable[[_Thread], Number]:
        value = self._value(node)

        def number(t: _Thread) -> Number:
            found = value(t)
            assert isinstance(found, Number), self._text.of(node)
            return found

        return number

    def _name(self, node: Node) -> Compute:
        name = self._text.of(node)
        return lambda t: t.scopes[t.scope_of(name)][name]

    def _literal(self, node: Node) -> Compute:
        number = literal(self._text.of(node))
        return lambda _: number

    def _coordinate(self, node: Node) -> Compute:
        kind, axis = self._text.of(node).split(".")
        return lambda t: Number(Dtype.UINT32, t.coordinate(kind, "xyz".index(axis)))

    def _call(self, node: Node) -> Compute:
        name = self._text.of(between(node, "function"))
        given = between(node, "arguments").named_children
        if name in _OPENCL:
            axis = int(self._text.of(given[0]))
            return lambda t: Number(Dtype.UINT64, t.coordinate(_OPENCL[name], axis))
        function = _FUNCTIONS[name.removesuffix("f") if name not in _FUNCTIONS else name]
        values = [self._number(n) for n in given]
        return lambda t: Number(Dtype.FLOAT32, function(*(float(v(t).value) for v in values)))

    def _cast(self, node: Node) -> Compute:
        dtype, value = number_type(self._text.of(between(node, "type"))), self._number(between(node, "value"))
        return lambda t: converted(value(t), dtype)

    def _unary(self, node: Node) -> Compute:
        sign, value = self._sign(node), self._number(between(node, "argument"))
        if sign == "!":
            return lambda t: Number(Dtype.INT32, int(not is_true(value(t))))
        assert sign in ("-", "+"), sign
        zero = Number(Dtype.INT32, 0)
        return (lambda t: of_two("-", zero, value(t))) if sign == "-" else value

    def _binary(self, node: Node) -> Compute:
        sign, left, right = self._sign(node), *(self._value(between(node, s)) for s in ("left", "right"))
        if sign == "&&":
            return lambda t: Number(Dtype.INT32, int(is_true(left(t)) and is_true(right(t))))
        if sign == "||":
            return lambda t: Number(Dtype.INT32, int(is_true(left(t)) or is_true(right(t))))
        return lambda t: of_two(sign, left(t), right(t))

    def _conditional(self, node: Node) -> Compute:
        asked, yes, no = (self._value(between(node, f)) for f in ("condition", "consequence", "alternative"))
        return lambda t: yes(t) if is_true(asked(t)) else no(t)

    def _comma(self, node: Node) -> Compute:
        first, second = (self._value(between(node, f)) for f in ("left", "right"))
        return lambda t: (first(t), second(t))[1]

    def _assignment(self, node: Node) -> Compute:
        value, sign = self._value(between(node, "right")), self._sign(node).removesuffix("=")
        return self._changed(between(node, "left"), sign, value)

    def _update(self, node: Node) -> Compute:
        # What the expression itself is worth is used nowhere.
        assert node.parent is not None and node.parent.type in ("expression_statement", "for_statement")
        one = Number(Dtype.INT32, 1)
        return self._changed(between(node, "argument"), self._sign(node)[0], lambda _: one)

    def _changed(self, target: Node, sign: str, value: Compute) -> Compute:
        """`target = value`, or `target = target sign value`."""
        while target.type == "parenthesized_expression":
            target = target.named_children[0]
        if target.type == "identifier":
            name = self._text.of(target)

            def changed(t: _Thread) -> Value:
                n = t.scope_of(name)
                made = of_two(sign, t.scopes[n][name], value(t)) if sign else value(t)
                t.scopes[n][name] = made if isinstance(made, Place) else converted(made, t.types[n][name])
                return t.scopes[n][name]

            return changed
        place = self._place(target)

        def written(t: _Thread) -> Value:
            at = place(t)
            made = of_two(sign, t.read(at), value(t)) if sign else value(t)
            assert isinstance(made, Number)
            return t.write(at, made)

        return written

    def _element(self, node: Node) -> Compute:
        if node.type == "pointer_expression" and self._sign(node) == "&":
            return self._place(between(node, "argument"))
        place = self._place(node)
        return lambda t: t.read(place(t))

    def _place(self, node: Node) -> Callable[[_Thread], Place]:
        """Where an element lies."""
        while node.type == "parenthesized_expression":
            node = node.named_children[0]
        base = self._value(between(node, "argument"))
        index: Compute = lambda _: Number(Dtype.INT32, 0)  # noqa: E731
        if node.type == "subscript_expression":
            (own,) = between(node, "indices").named_children
            index = self._value(own)
        else:
            assert node.type == "pointer_expression" and self._sign(node) == "*", self._text.of(node)

        def place(t: _Thread) -> Place:
            found = of_two("+", base(t), index(t))
            assert isinstance(found, Place), self._text.of(node)
            return found

        return place

    def _sign(self, node: Node) -> str:
        return self._text.of(between(node, "operator"))

    # Statements.

    def _statement(self, node: Node) -> Statement:
        made: Mapping[str, Callable[[Node], Statement]] = {
            "compound_statement": self._block,
            "declaration": self._declaration,
            "expression_statement": self._alone,
            "if_statement": self._if,
            "else_clause": lambda n: self._statement(n.named_children[0]),
            "for_statement": self._loop,
            "while_statement": self._loop,
            "return_statement": lambda _: _leaving("return"),
            "break_statement": lambda _: _leaving("break"),
            "continue_statement": lambda _: _leaving("continue"),
        }
        assert node.type in made, (node.type, self._text.of(node))
        return made[node.type](node)

    def _block(self, node: Node) -> Statement:
        inside = [self._statement(n) for n in node.named_children if n.type != "comment"]

        def block(t: _Thread) -> Generator[None, None, Left]:
            for statement in inside:
                left = yield from statement(t)
                if left:
                    return left
            return ""

        return _scoped(block)

    def _declaration(self, node: Node) -> Statement:
        written = self._text.of(between(node, "type"))
        before = self._text.text[: between(node, "declarator").start_byte].rpartition(";")[2]
        is_shared = "__shared__" in before or "__local" in before
        parts = [self._declared(d, written, is_shared) for d in node.children_by_field_name("declarator")]

        def declaration(t: _Thread) -> Generator[None, None, Left]:
            for name, dtype, value in parts:
                made = value(t)
                t.scopes[-1][name] = made if isinstance(made, Place) else converted(made, dtype)
                t.types[-1][name] = dtype
            yield from ()
            return ""

        return declaration

    def _declared(self, declarator: Node, written: str, is_shared: bool) -> tuple[str, Dtype, Compute]:
        """The name, its type or that of its elements, and its first value."""
        dtype, value = number_type(written), declarator.child_by_field_name("value")
        inner = declarator if value is None else between(declarator, "declarator")
        name = self._text.of(inner)
        if inner.type == "array_declarator":
            assert is_shared, name
            name = self._text.of(between(inner, "declarator"))
            self.shared.add(name)
            return name, dtype, lambda _: Place(name, dtype, 0)
        name = name.replace("const", "").strip("* ")
        # What nothing sets is not read; a kernel that does reads this.
        unset = Number(dtype, 12345)
        return name, dtype, (lambda _: unset) if value is None else self._value(value)

    def _alone(self, node: Node) -> Statement:
        expression = node.named_children[0] if node.named_children else None
        if expression is None:
            return _leaving("")
        if expression.type == "call_expression":
            name = self._text.of(between(expression, "function"))
            assert name in _BARRIERS, name

            def barrier(_: _Thread) -> Generator[None, None, Left]:
                yield
                return ""

            return barrier
        return _evaluating(self._value(expression))

    def _if(self, node: Node) -> Statement:
        asked, yes = self._value(between(node, "condition")), self._statement(between(node, "consequence"))
        other = node.child_by_field_name("alternative")
        no = _leaving("") if other is None else self._statement(other)

        def branch(t: _Thread) -> Generator[None, None, Left]:
            return (yield from (yes if is_true(asked(t)) else no)(t))

        return branch

    def _loop(self, node: Node) -> Statement:
        init, asked, update = (node.child_by_field_name(f) for f in ("initializer", "condition", "update"))
        start = _leaving("") if init is None else self._first(init)
        goes_on = (lambda _: Number(Dtype.INT32, 1)) if asked is None else self._value(asked)
        step = _leaving("") if update is None else _evaluating(self._value(update))
        body = self._statement(between(node, "body"))

        def loop(t: _Thread) -> Generator[None, None, Left]:
            yield from start(t)
            while is_true(goes_on(t)):
                left = yield from body(t)
                if left in ("break", "return"):
                    return "return" if left == "return" else ""
                yield from step(t)
            return ""

        return _scoped(loop)

    def _first(self, init: Node) -> Statement:
        return self._declaration(init) if init.type == "declaration" else _evaluating(self._value(init))


def _leaving(left: Left) -> Statement:
    def statement(_: _Thread) -> Generator[None, None, Left]:
        yield from ()
        return left

    return statement


def _evaluating(value: Compute) -> Statement:
    def statement(t: _Thread) -> Generator[None, None, Left]:
        value(t)
        yield from ()
        return ""

    return statement


def _scoped(inner: Statement) -> Statement:
    """The statement with names of its own."""

    def statement(t: _Thread) -> Generator[None, None, Left]:
        t.scopes.append({})
        t.types.append({})
        left = yield from inner(t)
        t.scopes.pop()
        t.types.pop()
        return left

    return statement
