"""Safe arithmetic over dimensions, parameters and device limits.

Expressions are parsed into a checked syntax tree and walked; nothing is ever handed to `eval`.
They accept numbers, names (`hidden`, `BLOCK`, `device.max_shared_per_block`), `+ - * / // % **`,
comparisons (chained too), `and or not`, `a if c else b`, `x in (1, 2)`, and the functions in
`FUNCTIONS`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from warpsmith.domain.plain_data import STORED
from warpsmith.errors import ExpressionError

Value = int | float | bool | str
"""Result of an expression, and value of a parameter."""

MAX_CHARACTERS = 500
MAX_NODES = 200
MAX_MAGNITUDE = 2**63


def ceil_div(a: int, b: int) -> int:
    """Smallest integer not below a / b."""
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    """Smallest multiple of b not below a."""
    return ceil_div(a, b) * b


def next_pow2(a: int) -> int:
    """Smallest power of two not below a (1 for a <= 1)."""
    return 1 << max(int(a) - 1, 0).bit_length()


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
    "ceil_div": ceil_div,
    "round_up": round_up,
    "next_pow2": next_pow2,
    "gcd": math.gcd,
    "sqrt": math.sqrt,
    "log2": math.log2,
}

BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}
COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: lambda a: -a,
    ast.UAdd: lambda a: +a,
    ast.Not: lambda a: not a,
}


class Expression:
    """A parsed expression; equal when the text is equal.

    Args:
        text: the expression, or an integer.

    Raises:
        ExpressionError: it does not parse, or uses something outside the language above.
    """

    __slots__ = ("__dict__", "text")

    def __init__(self, text: str | int | float | bool) -> None:
        self.text = " ".join(str(text).split())
        self.tree  # noqa: B018  parse now, so that a bad field is named at the door

    @classmethod
    def stored(cls, text: str | int | float | bool) -> Expression:
        """An expression that was parsed before; it is parsed again when it is needed."""
        made = cls.__new__(cls)
        made.text = str(text)
        return made

    @cached_property
    def tree(self) -> ast.expr:
        """The checked syntax tree, for evaluators that work on arrays."""
        if not self.text or len(self.text) > MAX_CHARACTERS:
            raise ExpressionError(self.text[:40], f"must have 1 to {MAX_CHARACTERS} characters")
        try:
            tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as exc:
            raise ExpressionError(self.text, "is not a valid expression") from exc
        for count, node in enumerate(ast.walk(tree), start=1):
            if count > MAX_NODES:
                raise ExpressionError(self.text, f"has more than {MAX_NODES} parts")
            self._check(node)
        return tree

    @cached_property
    def parts(self) -> int:
        """Number of parts that an evaluation visits at most."""
        return sum(1 for _ in ast.walk(self.tree))

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name in the expression; dotted names are whole (`device.warp_size`)."""
        found: set[str] = set()

        def visit(node: ast.AST) -> None:
            if isinstance(node, ast.Attribute | ast.Name):
                found.add(dotted_name(node))
            elif isinstance(node, ast.Call):
                for argument in node.args:
                    visit(argument)
            else:
                for child in ast.iter_child_nodes(node):
                    visit(child)

        visit(self.tree)
        return frozenset(found)

    def evaluate(self, scope: Mapping[str, Value]) -> Value:
        """The value under `scope`, which maps every name to a number or a word.

        Raises:
            ExpressionError: an unknown name, a division by zero, or a value out of range.
        """
        try:
            value: Value = _evaluate(self.tree, scope)
            if not isinstance(value, int | float | str):
                raise TypeError("a list is not a value")
            return value
        except KeyError as exc:
            known = ", ".join(sorted(scope)) or "none"
            raise ExpressionError(self.text, f"unknown name {exc.args[0]!r} (known: {known})") from exc
        except ZeroDivisionError as exc:
            raise ExpressionError(self.text, "divides by zero") from exc
        except (TypeError, ValueError, OverflowError) as exc:
            raise ExpressionError(self.text, f"cannot be evaluated: {exc}") from exc

    def integer(self, scope: Mapping[str, Value]) -> int:
        """The value as an integer.

        Raises:
            ExpressionError: as `evaluate`, or the value is not a whole number.
        """
        value = self.evaluate(scope)
        if isinstance(value, str) or value != int(value):
            raise ExpressionError(self.text, f"gives {value!r}, not a whole number")
        return int(value)

    def _check(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant):
            if not isinstance(node.value, int | float | str):
                raise ExpressionError(self.text, f"constant {node.value!r} is not allowed")
        elif isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
                known = ", ".join(FUNCTIONS)
                raise ExpressionError(self.text, f"only these functions may be called: {known}")
        elif isinstance(node, ast.Attribute):
            if not isinstance(node.value, ast.Name):
                raise ExpressionError(self.text, "only one dot is allowed in a name")
        elif not isinstance(node, _ALLOWED):
            raise ExpressionError(self.text, f"{type(node).__name__} is not allowed")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        def convert(value: Any, info: ValidationInfo) -> Expression:
            if isinstance(value, Expression):
                return value
            if isinstance(value, str | int | float):
                if info.context is STORED:
                    return Expression.stored(value)
                try:
                    return Expression(value)
                except ExpressionError as exc:
                    raise ValueError(exc.message) from exc
            raise ValueError("must be a number or an expression such as 'ceil_div(n, BLOCK)'")

        return core_schema.with_info_plain_validator_function(
            convert, serialization=core_schema.plain_serializer_function_ser_schema(_plain)
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "string"}],
            "title": "Expression",
            "examples": ["ceil_div(n, BLOCK)", 256],
        }


_ALLOWED = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Name,
    ast.Load,
    ast.Tuple,
    ast.List,
    ast.And,
    ast.Or,
    *BINARY,
    *COMPARE,
    *_UNARY,
)


def _plain(expression: Expression) -> int | str:
    text = expression.text
    return int(text) if text.isdecimal() else text


def dotted_name(node: ast.Name | ast.Attribute) -> str:
    """The dotted name that a syntax node stands for, such as `device.warp_size`."""
    if isinstance(node, ast.Name):
        return node.id
    assert isinstance(node.value, ast.Name)
    return f"{node.value.id}.{node.attr}"


def _evaluate(node: ast.AST, scope: Mapping[str, Value]) -> Any:
    match node:
        case ast.Constant():
            return _bounded(node.value)
        case ast.Name() | ast.Attribute():
            return _bounded(scope[dotted_name(node)])
        case ast.BinOp():
            return _arithmetic(node.op, _evaluate(node.left, scope), _evaluate(node.right, scope))
        case ast.UnaryOp():
            return _UNARY[type(node.op)](_evaluate(node.operand, scope))
        case ast.BoolOp():
            return _bool_op(node, scope)
        case ast.Compare():
            return _comparison(node, scope)
        case ast.IfExp():
            return _evaluate(node.body if _evaluate(node.test, scope) else node.orelse, scope)
        case ast.Tuple() | ast.List():
            return tuple(_evaluate(element, scope) for element in node.elts)
        case ast.Call(func=ast.Name(id=name)):
            return _bounded(FUNCTIONS[name](*(_evaluate(a, scope) for a in node.args)))
    raise TypeError(f"{type(node).__name__} is not allowed")


def _arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError("arithmetic on something that is not a number")
    if isinstance(op, ast.Pow) and abs(right) > 64:
        raise ValueError("exponent above 64")
    return _bounded(BINARY[type(op)](left, right))


def _comparison(node: ast.Compare, scope: Mapping[str, Value]) -> bool:
    left = _evaluate(node.left, scope)
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = _evaluate(comparator, scope)
        if not COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _bool_op(node: ast.BoolOp, scope: Mapping[str, Value]) -> Any:
    stop_at = isinstance(node.op, ast.Or)
    value: Any = None
    for part in node.values:
        value = _evaluate(part, scope)
        if bool(value) is stop_at:
            break
    return value


def _bounded(value: Any) -> Any:
    if isinstance(value, complex):
        raise ValueError("a value that is not a real number")
    if isinstance(value, int | float) and not abs(value) <= MAX_MAGNITUDE:
        raise ValueError("a value beyond 2^63")
    return value
