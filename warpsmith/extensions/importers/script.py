"""A Python script whose calls are read from its text; the script is never run.

Statements are walked in order: assignments, calls of the script's own functions, and the bodies of `if`,
`with`, `try` and `main`. What is not understood has the value `UNKNOWN`, and so has all that depends on it.
"""

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from warpsmith.extensions.importers.script_functions import DTYPES, function_value
from warpsmith.extensions.importers.script_values import (
    MOST_VALUES,
    UNKNOWN,
    Array,
    Number,
    Size,
    arithmetic,
    compared,
    plain,
    product,
)

_MOST_STEPS = 1_000_000
"""Limit on the expressions that are evaluated in one script."""
_DEEPEST = 12
"""Limit on the depth of calls."""
_AXES = "xyz"


@dataclass(frozen=True)
class Call:
    """A call that the script makes of a function of others."""

    function: str
    """Last part of its name."""
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    line: int


@dataclass
class Script:
    """A script's calls of the functions that are looked for, in the order in which it makes them."""

    text: str
    wanted: Sequence[str]
    """Last parts of the functions' names."""
    calls: list[Call] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    """Whole numbers that the script gives a name, the elements of tuples as NAME_x, NAME_y, NAME_z."""
    _functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    _steps: int = 0
    _depth: int = 0

    def __post_init__(self) -> None:
        """Raises:
        SyntaxError: the text is no Python.
        """
        tree = ast.parse(self.text)
        self._functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        names: dict[str, Any] = {}
        self._walk(tree.body, names)
        if not self.calls:
            # No statement calls the function that does it, as in a test or a library.
            for function in self._functions.values():
                self._called(function, [], {}, dict(names))

    # Statements

    def _walk(self, body: Iterable[ast.stmt], names: dict[str, Any]) -> Any:
        for statement in body:
            match statement:
                case ast.Assign(targets=targets, value=value):
                    found = self._value(value, names)
                    for target in targets:
                        self._assign(target, found, names)
                case ast.AnnAssign(target=target, value=value) if value is not None:
                    self._assign(target, self._value(value, names), names)
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                    names[name] = self._binary(op, names.get(name, UNKNOWN), self._value(value, names))
                case ast.Expr(value=value):
                    self._value(value, names)
                case ast.Return(value=value):
                    return UNKNOWN if value is None else self._value(value, names)
                case ast.If(test=test, body=inner, orelse=other):
                    found = self._value(test, names)
                    self._walk(other if found is False else inner, names)
                case ast.With(items=items, body=inner):
                    for item in items:
                        opened = self._value(item.context_expr, names)
                        if item.optional_vars is not None:
                            self._assign(item.optional_vars, opened, names)
                    self._walk(inner, names)
                case ast.Try(body=inner, finalbody=last):
                    self._walk([*inner, *last], names)
                case ast.For(target=target, body=inner):
                    self._assign(target, UNKNOWN, names)
                    self._walk(inner, names)
        return UNKNOWN

    def _assign(self, target: ast.expr, value: Any, names: dict[str, Any]) -> None:
        match target:
            case ast.Name(id=name):
                names[name] = self._named(name, value)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                if isinstance(names.get(name), dict):
                    names[name][key] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = list(value) if isinstance(value, tuple | list) and len(value) == len(parts) else None
                for n, part in enumerate(parts):
                    self._assign(part, UNKNOWN if known is None else known[n], names)

    def _named(self, name: str, value: Any) -> Any:
        """The value, with the name as its text if it is a number that the script writes out."""
        if isinstance(value, Number) and isinstance(value.value, Size):
            return Number(value.dtype, self._named(name, value.value))
        if isinstance(value, tuple) and 1 < len(value) <= len(_AXES):
            return tuple(self._named(f"{name}_{axis}", v) for axis, v in zip(_AXES, value, strict=False))
        if not isinstance(value, Size) or not value.text.isdecimal() or value.value < 1:
            return value
        if self.sizes.setdefault(name, value.value) != value.value:
            return value
        return Size(value.value, name)

    # Expressions

    def _value(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        self._steps += 1
        read = self._readers.get(type(node))
        return UNKNOWN if read is None or self._steps > _MOST_STEPS else read(self, node, names)

    def _constant(self, node: ast.Constant, _: Mapping[str, Any]) -> Any:
        return Size(node.value, str(node.value)) if type(node.value) is int else node.value

    def _name(self, node: ast.Name, names: Mapping[str, Any]) -> Any:
        return names.get(node.id, node.id if node.id in DTYPES else UNKNOWN)

    def _list(self, node: ast.List, names: Mapping[str, Any]) -> Any:
        return [self._value(part, names) for part in node.elts]

    def _tuple(self, node: ast.Tuple, names: Mapping[str, Any]) -> Any:
        return tuple(self._value(part, names) for part in node.elts)

    def _dict(self, node: ast.Dict, names: Mapping[str, Any]) -> Any:
        pairs = zip(node.keys, node.values, strict=True)
        return {plain(self._value(k, names)): self._value(v, names) for k, v in pairs if k is not None}

    def _lambda(self, node: ast.Lambda, _: Mapping[str, Any]) -> Any:
        return node

    def _unary(self, node: ast.UnaryOp, names: Mapping[str, Any]) -> Any:
        if not isinstance(node.op, ast.USub):
            return UNKNOWN
        return self._binary(ast.Sub(), Size(0, "0"), self._value(node.operand, names))

    def _operation(self, node: ast.BinOp, names: Mapping[str, Any]) -> Any:
        return self._binary(node.op, self._value(node.left, names), self._value(node.right, names))

    def _comparison(self, node: ast.Compare, names: Mapping[str, Any]) -> Any:
        if len(node.ops) != 1:
            return UNKNOWN
        return compared(node.ops[0], self._value(node.left, names), self._value(node.comparators[0], names))

    def _choice(self, node: ast.IfExp, names: Mapping[str, Any]) -> Any:
        found = self._value(node.test, names)
        return UNKNOWN if found is UNKNOWN else self._value(node.body if found else node.orelse, names)

    def _subscript(self, node: ast.Subscript, names: Mapping[str, Any]) -> Any:
        return self._element(self._value(node.value, names), node.slice, names)

    def _listed(self, node: ast.ListComp | ast.GeneratorExp, names: Mapping[str, Any]) -> Any:
        return self._comprehension(node.elt, node.generators, dict(names))

    def _member(self, node: ast.Attribute, names: Mapping[str, Any]) -> Any:
        if node.attr in DTYPES:
            return node.attr
        return math.pi if node.attr == "pi" else self._attribute(self._value(node.value, names), node.attr)

    def _element(self, whole: Any, index: ast.expr, names: Mapping[str, Any]) -> Any:
        if isinstance(index, ast.Slice):
            whole_slice = index.lower is None and index.upper is None and index.step is None
            return whole[:] if whole_slice and isinstance(whole, list | tuple) else UNKNOWN
        key = plain(self._value(index, names))
        try:
            return whole[key] if isinstance(whole, dict | list | tuple) else UNKNOWN
        except (LookupError, TypeError):
            return UNKNOWN

    def _comprehension(
        self, element: ast.expr, generators: Sequence[ast.comprehension], names: dict[str, Any]
    ) -> Any:
        if not generators:
            return [self._value(element, names)]
        first, *rest = generators
        values = self._value(first.iter, names)
        if not isinstance(values, list | tuple):
            return UNKNOWN
        found: list[Any] = []
        begin = self._steps
        for value in values:
            if self._steps - begin > MOST_VALUES * 4:
                return UNKNOWN
            self._assign_loop(first.target, value, names)
            if all(self._value(condition, names) is True for condition in first.ifs):
                inner = self._comprehension(element, rest, names)
                if inner is UNKNOWN or inner == [UNKNOWN] or len(found) + len(inner) > MOST_VALUES:
                    return UNKNOWN
                found += inner
        return found

    @staticmethod
    def _assign_loop(target: ast.expr, value: Any, names: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value

    @staticmethod
    def _attribute(value: Any, attribute: str) -> Any:
        if isinstance(value, Array):
            if attribute == "T":
                return Array(value.shape[::-1], value.dtype)
            if attribute == "size":
                return product(value.shape)
            if attribute == "shape":
                return value.shape
        return UNKNOWN

    def _binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(left, list) and isinstance(right, list) and isinstance(op, ast.Add):
            return left + right
        if isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add):
            return left + right
        if isinstance(left, list) and isinstance(op, ast.Mult) and isinstance(right, Size):
            return left * right.value if len(left) * right.value <= MOST_VALUES else UNKNOWN
        for array, other in ((left, right), (right, left)):
            if isinstance(array, Array):
                alike = isinstance(other, Array) and plain(other.shape) == plain(array.shape)
                return array if alike or isinstance(other, int | float | Size | Number) else UNKNOWN
        left, right = (v.value if isinstance(v, Number) else v for v in (left, right))
        return arithmetic(op, left, right)

    def _call(self, node: ast.Call, names: Mapping[str, Any]) -> Any:
        function = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        function = node.func.id if isinstance(node.func, ast.Name) else function
        arguments: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                spread = self._value(argument.value, names)
                arguments += list(spread) if isinstance(spread, list | tuple) else [UNKNOWN]
            else:
                arguments.append(self._value(argument, names))
        keywords = {k.arg: self._value(k.value, names) for k in node.keywords if k.arg}
        for k in node.keywords:
            spread = self._value(k.value, names) if k.arg is None else None
            if isinstance(spread, dict):
                keywords |= spread
        if function in self.wanted:
            self.calls.append(Call(function, tuple(arguments), keywords, node.lineno))
            return UNKNOWN
        if isinstance(node.func, ast.Name) and function in self._functions:
            return self._called(self._functions[function], arguments, keywords, dict(names))
        owner = self._value(node.func.value, names) if isinstance(node.func, ast.Attribute) else None
        return function_value(function, owner, arguments, keywords)

    def _called(
        self,
        function: ast.FunctionDef,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        names: dict[str, Any],
    ) -> Any:
        if self._depth >= _DEEPEST:
            return UNKNOWN
        parameters = [a.arg for a in function.args.args]
        defaults = function.args.defaults
        inner = names | dict.fromkeys(parameters, UNKNOWN)
        for name, value in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True):
            inner[name] = self._named(name, self._value(value, names))
        inner |= dict(zip(parameters, arguments, strict=False))
        inner |= {k: v for k, v in keywords.items() if k in parameters}
        self._depth += 1
        try:
            return self._walk(function.body, inner)
        finally:
            self._depth -= 1

    _readers: ClassVar[Mapping[type[ast.expr], Callable[..., Any]]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.List: _list,
        ast.Tuple: _tuple,
        ast.Dict: _dict,
        ast.Lambda: _lambda,
        ast.UnaryOp: _unary,
        ast.BinOp: _operation,
        ast.Compare: _comparison,
        ast.IfExp: _choice,
        ast.Subscript: _subscript,
        ast.ListComp: _listed,
        ast.GeneratorExp: _listed,
        ast.Attribute: _member,
        ast.Call: _call,
    }
