"""Evaluates expressions over NumPy arrays: the checked syntax tree, walked once for all elements."""

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from warpsmith.domain.expressions import dotted_name

Scope = Mapping[str, Any]
"""Values by name: numbers, words, or arrays that broadcast with each other."""


def _next_pow2(value: Any) -> Any:
    # The exponent of a whole number is its bit length; beyond 2^53 a float may be rounded up.
    _, exponent = np.frexp(np.maximum(np.trunc(np.asarray(value, np.float64)) - 1, 0))
    return np.left_shift(np.int64(1), exponent.astype(np.int64))


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: lambda a, b: np.power(np.asarray(a, dtype=np.float64), b),
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": lambda *a: _fold(np.minimum, a),
    "max": lambda *a: _fold(np.maximum, a),
    "abs": np.abs,
    "int": lambda a: np.trunc(a).astype(np.int64),
    "ceil_div": lambda a, b: -np.floor_divide(-np.asarray(a), b),
    "round_up": lambda a, b: -np.floor_divide(-np.asarray(a), b) * b,
    "next_pow2": _next_pow2,
    "gcd": np.gcd,
    "sqrt": np.sqrt,
    "log2": np.log2,
}


class ArrayWalker:
    """Visits a syntax tree once.

    Every part is evaluated for every element: `and`, `or` and `if` keep none from a division by zero.

    Attributes:
        suspect: truth values, which broadcast with the result: elements whose value means nothing, since they
            divide by zero or exceed what arrays hold exactly. None: there are none.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.suspect: Any = None

    def visit(self, node: ast.AST) -> Any:
        """The values of a node: a number or an array.

        Raises:
            TypeError, ValueError or OverflowError: they cannot be computed, as of a word among numbers.
        """
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                return self._scope[dotted_name(node)]
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                value = self.visit(node.operand)
                return np.logical_not(value) if isinstance(node.op, ast.Not) else self._sign(node, value)
            case ast.BoolOp():
                combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                return _fold(combine, [self.visit(v) for v in node.values])
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return np.where(self.visit(node.test), self.visit(node.body), self.visit(node.orelse))
            case ast.Call(func=ast.Name(id=name)):
                values = [self.visit(a) for a in node.args]
                if name in ("ceil_div", "round_up"):
                    values[1] = self._divisor(values[1])
                return _FUNCTIONS[name](*values)
        raise TypeError(type(node).__name__)

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = _number(self.visit(node.left)), _number(self.visit(node.right))
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            right = self._divisor(right)
        result = _BINARY[type(node.op)](left, right)
        if isinstance(node.op, ast.Mult | ast.Pow):
            self._flag(np.abs(np.asarray(result, np.float64)) > math.ldexp(1, 52))
        return result

    def _divisor(self, value: Any) -> Any:
        zero = np.equal(value, 0)
        self._flag(zero)
        return np.where(zero, 1, value)

    def _flag(self, mask: Any) -> None:
        if np.any(mask):
            self.suspect = mask if self.suspect is None else np.logical_or(self.suspect, mask)

    @staticmethod
    def _sign(node: ast.UnaryOp, value: Any) -> Any:
        return np.negative(_number(value)) if isinstance(node.op, ast.USub) else value

    def _compare(self, node: ast.Compare) -> Any:
        left, result = self.visit(node.left), None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                if not isinstance(comparator, ast.Tuple | ast.List):
                    raise TypeError("in needs a list")
                found = _fold(np.logical_or, [np.equal(left, self.visit(e)) for e in comparator.elts])
                part = np.logical_not(found) if isinstance(op, ast.NotIn) else found
                right = None
            else:
                right = self.visit(comparator)
                part = _COMPARE[type(op)](left, right)
            result = part if result is None else np.logical_and(result, part)
            left = right
        return result


def _number(value: Any) -> Any:
    """Truth values as the numbers that Python takes them for."""
    return np.asarray(value, np.int64) if getattr(value, "dtype", None) == np.bool_ else value


def _fold(function: Callable[[Any, Any], Any], values: Any) -> Any:
    first, *rest = values
    for value in rest:
        first = function(first, value)
    return first
