"""A Python script whose calls are read from its text; the script is never run.

Statements are evaluated in order: assignments, calls of the script's own functions, and the bodies of `if`,
`with`, `try` and `main`. A part that is not understood has the value `UNKNOWN`, and so has all that depends
on it.
"""

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from warpsmith.domain.expressions import COMPARE
from warpsmith.extensions.importers.script_functions import DTYPES, function_value
from warpsmith.extensions.importers.script_values import (
    UNKNOWN,
    Array,
    Number,
    Size,
    combined,
    plain,
    product,
)
from warpsmith.extensions.scaffold.python_text.evaluator import (
    Evaluator,
    Names,
    NotLiteral,
    Returned,
    called_name,
)

_AXES = "xyz"
_SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
}


@dataclass(frozen=True)
class ScriptCall:
    """A call that the script makes of a function of others."""

    function: str
    """Last part of its name."""
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    line: int


class Script(Evaluator):
    """A script's calls of the functions that are looked for, in the order in which it makes them.

    Args:
        text: the script.
        wanted: last parts of the functions' names.

    Attributes:
        sizes: whole numbers that the script gives a name, the elements of tuples as NAME_x, NAME_y, NAME_z.

    Raises:
        SyntaxError: the text is no Python.
    """

    most_steps: ClassVar[int] = 1_000_000
    most_items: ClassVar[int] = 20_000
    deepest: ClassVar[int] = 150
    call_depth: ClassVar[int] = 11

    def __init__(self, text: str, wanted: Sequence[str]) -> None:
        tree = ast.parse(text)
        functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        super().__init__({name: node for name, node in functions.items() if name not in wanted})
        self.wanted = wanted
        self.calls: list[ScriptCall] = []
        self.sizes: dict[str, int] = {}
        names: Names = {}
        self._nested(tree.body, names)
        if not self.calls:
            # No statement calls the function that does it, as in a test or a library.
            for function in functions.values():
                self.called(function, [], {}, names)

    # Statements

    def statement(self, node: ast.stmt, scope: Names) -> None:
        """Evaluate one statement; others than those of the language do nothing."""
        with suppress(NotLiteral):
            super().statement(node, scope)

    def _do_If(self, node: ast.If, scope: Names) -> None:
        self._nested(node.orelse if self.value(node.test, scope) is False else node.body, scope)

    def _do_With(self, node: ast.With, scope: Names) -> None:
        for item in node.items:
            opened = self.value(item.context_expr, scope)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, opened, scope)
        self._nested(node.body, scope)

    def _do_Try(self, node: ast.Try, scope: Names) -> None:
        self._nested([*node.body, *node.finalbody], scope)

    def _do_For(self, node: ast.For, scope: Names) -> None:
        self.assign(node.target, UNKNOWN, scope)
        self._nested(node.body, scope)

    _do_Continue = Evaluator.unread

    def _nested(self, body: Iterable[ast.stmt], scope: Names) -> None:
        """Evaluate statements that may be left out when the script runs: a `return` ends only them."""
        with suppress(Returned):
            self.run(body, scope)

    def assign(self, target: ast.expr, value: Any, scope: Names) -> None:
        """Give a value to a name, a key of a mapping, or its elements to several."""
        match target:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                if isinstance(scope.get(name), dict):
                    scope[name][key] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = isinstance(value, tuple | list) and len(value) == len(parts)
                for n, part in enumerate(parts):
                    self.assign(part, value[n] if known else UNKNOWN, scope)
            case ast.Name():
                super().assign(target, value, scope)

    def named(self, name: str, value: Any) -> Any:
        """The value, with the name as its text if it is a number that the script writes out."""
        if isinstance(value, Number) and isinstance(value.value, Size):
            return Number(value.dtype, self.named(name, value.value))
        if isinstance(value, tuple) and 1 < len(value) <= len(_AXES):
            return tuple(self.named(f"{name}_{axis}", v) for axis, v in zip(_AXES, value, strict=False))
        is_written = isinstance(value, Size) and value.text.isdecimal() and value >= 1
        return Size(value, name) if is_written and self.sizes.setdefault(name, int(value)) == value else value

    def outer(self, scope: Names) -> Names:
        """All names that the caller sees."""
        return dict(scope)

    # Expressions

    def value(self, node: ast.expr, scope: Names) -> Any:
        """The value of an expression; `UNKNOWN` if it is not understood."""
        try:
            return super().value(node, scope)
        except NotLiteral:
            return UNKNOWN

    _of_BoolOp = _of_Set = _of_DictComp = Evaluator.unread

    def _of_Constant(self, node: ast.Constant, scope: Names) -> Any:
        return Size(node.value) if type(node.value) is int else node.value

    def _of_Name(self, node: ast.Name, scope: Names) -> Any:
        return scope.get(node.id, node.id if node.id in DTYPES else UNKNOWN)

    def _of_Lambda(self, node: ast.Lambda, scope: Names) -> Any:
        return node

    def _of_UnaryOp(self, node: ast.UnaryOp, scope: Names) -> Any:
        if not isinstance(node.op, ast.USub):
            return UNKNOWN
        return self.binary(ast.Sub(), Size(0), self.value(node.operand, scope), node)

    def _of_Compare(self, node: ast.Compare, scope: Names) -> Any:
        sides = [plain(self.value(side, scope)) for side in (node.left, *node.comparators)]
        op = type(node.ops[0])
        if len(sides) != 2 or UNKNOWN in sides or op in (ast.In, ast.NotIn):
            return UNKNOWN
        return COMPARE[op](*sides)  # an identity has no value

    def _of_IfExp(self, node: ast.IfExp, scope: Names) -> Any:
        return UNKNOWN if self.value(node.test, scope) is UNKNOWN else super()._of_IfExp(node, scope)

    def _of_ListComp(self, node: ast.ListComp | ast.GeneratorExp, scope: Names) -> Any:
        found: list[Any] = []
        for inner in self.rounds(node.generators, scope):
            found.append(self.value(node.elt, inner))
            if found[-1] is UNKNOWN or len(found) > self.most_items:
                return UNKNOWN
        return found

    _of_GeneratorExp = _of_ListComp

    def _of_Attribute(self, node: ast.Attribute, scope: Names) -> Any:
        if node.attr in DTYPES:
            return node.attr
        if node.attr == "pi":
            return math.pi
        match node.attr, self.value(node.value, scope):
            case "T", Array(shape, dtype):
                return Array(shape[::-1], dtype)
            case "size", Array(shape):
                return product(shape)
            case "shape", Array(shape):
                return shape
        return UNKNOWN

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.expr) -> Any:
        """The value of an operation, with the text of both sides if it is whole; `UNKNOWN` if it has none."""
        for array, other in ((left, right), (right, left)):
            if isinstance(array, Array):
                alike = isinstance(other, Array) and plain(other.shape) == plain(array.shape)
                return array if alike or isinstance(other, int | float | Number) else UNKNOWN
        left, right = (v.value if isinstance(v, Number) else v for v in (left, right))
        if (sign := _SIGNS.get(type(op))) is None:
            return UNKNOWN
        try:
            found = super().binary(op, left, right, node)
        except NotLiteral:
            return UNKNOWN
        if type(found) is int:
            return combined(sign, left, right, found)
        return UNKNOWN if isinstance(found, complex) else found

    # Calls

    def _of_Call(self, node: ast.Call, scope: Names) -> Any:
        found = super()._of_Call(node, scope)
        return UNKNOWN if found is None else found

    def spread(self, value: Any) -> Iterable[Any]:
        """The elements of a value behind `*`; `UNKNOWN` for one that is no list."""
        return value if isinstance(value, list | tuple) else [UNKNOWN]

    def mapping(self, value: Any) -> Mapping[Any, Any]:
        """The items of a value behind `**`; none of one that is no mapping."""
        return value if isinstance(value, dict) else {}

    def is_method(self, name: str) -> bool:
        """True for every name: a call that is looked for may stand before it."""
        return True

    def function(self, node: ast.Call, owner: Any, arguments: Sequence[Any], keywords: Names) -> Any:
        """The value of a function of Python or NumPy; a call that is looked for is kept."""
        name = called_name(node)
        if name in self.wanted:
            self.calls.append(ScriptCall(name, tuple(arguments), keywords, node.lineno))
            return UNKNOWN
        return function_value(name, owner, arguments, keywords)
