"""A Python script whose calls are read from its text; the script is never run.

Statements are evaluated in order. A part that is not understood has an `Unread` value, and so has all that
depends on it, and every name that a statement would have changed which is not evaluated.
"""

import ast
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from warpsmith.extensions.importers.script_functions import DTYPES, function_value
from warpsmith.extensions.importers.script_values import (
    Array,
    Number,
    Size,
    Unread,
    combined,
    plain,
    product,
)
from warpsmith.extensions.scaffold.python_text.evaluator import (
    Evaluator,
    Names,
    NotLiteral,
    Returned,
    TooManySteps,
    called_name,
    shown,
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
    ast.LShift: "* 2 **",
    ast.RShift: "// 2 **",
}
_STEPS_OF_A_PART = 100_000
"""Limit on the steps of a statement of the script, or of a loop."""
_MOST_ARGUMENTS = 64
"""Arguments that an unknown list may stand for."""
_RETURNED = "return"
"""Name in a function's scope after a `return` that only a running script decides on."""


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
        assumed: conditions that only a running script knows, taken to be true.

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
        self.assumed: dict[str, None] = {}
        names: Names = {"__name__": "__main__"}
        for statement in tree.body:
            with self._bounded_part(statement, names), suppress(Returned):
                self.statement(statement, names)
        if not self.calls:
            # No statement calls the function that does it, as in a test or a library.
            for function in functions.values():
                with self._bounded_part(function, names):
                    self.called(function, [], {}, names)

    # Statements

    def statement(self, node: ast.stmt, scope: Names) -> None:
        """Evaluate one statement; the names that it would have changed are unknown if it is not evaluated."""
        try:
            super().statement(node, scope)
        except TooManySteps:
            raise
        except NotLiteral as exc:
            self._lose(node, scope, exc)

    def _lose(self, node: ast.AST, scope: Names, why: NotLiteral) -> None:
        changes = isinstance(node, ast.For | ast.While | ast.Delete | ast.Attribute)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and (
                isinstance(part.ctx, ast.Store) or (changes and isinstance(scope.get(part.id), list | dict))
            ):
                scope[part.id] = Unread(str(why))

    @contextmanager
    def _bounded_part(self, node: ast.stmt, scope: Names) -> Iterator[None]:
        """Limit the steps of a statement; one that takes more is not evaluated."""
        last = self.last_step
        self.last_step = min(last, self.steps + _STEPS_OF_A_PART)
        try:
            yield
        except TooManySteps as exc:
            if self.steps > last and last < self.most_steps:
                raise
            self._lose(node, scope, exc)
        finally:
            self.last_step = last

    def _do_If(self, node: ast.If, scope: Names) -> None:
        try:
            body = node.body if self.test(node.test, scope) else node.orelse
        except TypeError:
            self.assumed[f"line {node.lineno}: {shown(node.test)}"] = None
            self._nested(node.body, scope)
        else:
            self.run(body, scope)

    def _do_Return(self, node: ast.Return, scope: Names) -> None:
        if _RETURNED in scope:
            raise Returned(scope[_RETURNED])
        super()._do_Return(node, scope)

    def _do_With(self, node: ast.With, scope: Names) -> None:
        for item in node.items:
            opened = self.value(item.context_expr, scope)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, opened, scope)
        self.run(node.body, scope)

    def _do_Try(self, node: ast.Try, scope: Names) -> None:
        self.run([*node.body, *node.finalbody], scope)

    def _do_FunctionDef(self, node: ast.FunctionDef, scope: Names) -> None:
        if node.name not in self.wanted:
            scope[node.name] = node

    def _do_For(self, node: ast.For, scope: Names) -> None:
        with self._bounded_part(node, scope):
            if isinstance(items := self.value(node.iter, scope), Unread):
                self.assign(node.target, items, scope)
                self._nested(node.body, scope)
                self._lose(node, scope, NotLiteral(node.lineno, f"{shown(node.iter)} is not known"))
            else:
                super()._do_For(node, scope)

    def _do_While(self, node: ast.While, scope: Names) -> None:
        with self._bounded_part(node, scope):
            super()._do_While(node, scope)

    def _do_Expr(self, node: ast.Expr, scope: Names) -> None:
        found = self.value(node.value, scope)
        if isinstance(found, Unread) and isinstance(node.value, ast.Call):
            self._lose(node.value.func, scope, NotLiteral(node.lineno, f"{shown(node)} is not evaluated"))

    def _nested(self, body: Iterable[ast.stmt], scope: Names) -> None:
        """Evaluate statements that may be left out when the script runs: a `return` ends only them."""
        try:
            self.run(body, scope)
        except Returned:
            scope[_RETURNED] = Unread()

    def assign(self, target: ast.expr, value: Any, scope: Names) -> None:
        """Give a value to a name, a key of a mapping, or its elements to several."""
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, Unread):
            for part in target.elts:
                self.assign(part, value, scope)
        else:
            super().assign(target, value, scope)

    def named(self, name: str, value: Any) -> Any:
        """The value, with the name as its text if it is a number that the script writes out."""
        if isinstance(value, Number):
            return Number(value.dtype, self.named(name, value.value))
        if isinstance(value, tuple) and 1 < len(value) <= len(_AXES):
            return tuple(self.named(f"{name}_{axis}", v) for axis, v in zip(_AXES, value, strict=False))
        is_written = type(value) is int and value >= 1
        return Size(value, name) if is_written and self.sizes.setdefault(name, value) == value else value

    def outer(self, scope: Names) -> Names:
        """All names that the caller sees."""
        return {name: value for name, value in scope.items() if name != _RETURNED}

    def number(self, value: Any) -> Any:
        """The number without NumPy's type and its text."""
        if isinstance(value, Unread | Array):
            raise TypeError
        return plain(value)

    # Expressions

    def value(self, node: ast.expr, scope: Names) -> Any:
        """The value of an expression; `Unread` if it is not understood."""
        try:
            return super().value(node, scope)
        except TooManySteps:
            raise
        except NotLiteral as exc:
            return Unread(str(exc))

    def _of_Name(self, node: ast.Name, scope: Names) -> Any:
        if node.id in scope:
            return scope[node.id]
        if node.id in DTYPES:
            return node.id
        return super()._of_Name(node, dict(self.functions))

    def _of_Lambda(self, node: ast.Lambda, scope: Names) -> Any:
        body = ast.copy_location(ast.Return(node.body), node)
        return ast.copy_location(ast.FunctionDef("lambda", node.args, [body], []), node)

    def _of_Attribute(self, node: ast.Attribute, scope: Names) -> Any:
        if node.attr in DTYPES:
            return node.attr
        if node.attr == "pi":
            return math.pi
        match node.attr, self.value(node.value, scope):
            case "T", Array(shape, dtype, fill):
                return Array(shape[::-1], dtype, fill)
            case "size", Array(shape):
                return product(shape)
            case "shape", Array(shape):
                return shape
            case "dtype", Array(_, dtype) | Number(dtype):
                return dtype or Unread()
        return self.unread(node, scope)

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.expr) -> Any:
        """The value of an operation, with the text of both sides if it is whole."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Unread):
                return one
            if isinstance(one, Array):
                return self.unread(node, {}) if isinstance(op, ast.MatMult) else _elementwise(one, other)
        left, right = (v.value if isinstance(v, Number) else v for v in (left, right))
        found = super().binary(op, left, right, node)
        return combined(_SIGNS.get(type(op), ""), left, right, found) if type(found) is int else found

    # Calls

    def spread(self, value: Any) -> Iterable[Any]:
        """The elements of a value behind `*`; all that follow are `Unread` for one that is no list."""
        return value if isinstance(value, list | tuple) else [value] * _MOST_ARGUMENTS

    def mapping(self, value: Any) -> Mapping[Any, Any]:
        """The items of a value behind `**`; one that is no mapping is an item of its own."""
        return value if isinstance(value, dict) else {"**": value}

    def is_method(self, name: str) -> bool:
        """True for every name: a call that is looked for may stand before it."""
        return True

    def function(self, node: ast.Call, owner: Any, arguments: Sequence[Any], keywords: Names) -> Any:
        """The value of a function of Python or NumPy; a call that is looked for is kept."""
        name = called_name(node)
        if name in self.wanted:
            kept = tuple(map(_copied, arguments))
            self.calls.append(
                ScriptCall(name, kept, {n: _copied(v) for n, v in keywords.items()}, node.lineno)
            )
            return Unread()
        found = function_value(name, owner, arguments, keywords)
        if found is not None:
            return found
        unknown = next((a for a in arguments if isinstance(a, Unread)), None)
        if unknown is not None and not isinstance(owner, list | dict):
            return unknown
        held = [a.value if isinstance(a, Number) else a for a in arguments]
        return super().function(node, owner, arguments if isinstance(owner, list | dict) else held, keywords)


def _elementwise(array: Array, other: Any) -> Any:
    """The array of an operation with a number or an array of the same shape; its type if that is sure."""
    if isinstance(other, Array):
        same = list(map(plain, other.shape)) == list(map(plain, array.shape))
        return Array(array.shape, array.dtype if array.dtype == other.dtype else "") if same else Unread()
    is_float = array.dtype.startswith("float") and isinstance(other, int | float)
    return Array(array.shape, array.dtype if is_float else "")


def _copied(value: Any) -> Any:
    """The value as it is now, whatever later statements add to it."""
    return value.copy() if isinstance(value, list | dict) else value
