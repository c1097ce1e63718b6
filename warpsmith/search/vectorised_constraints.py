"""Evaluates constraints for many configurations at once: the checked syntax tree, walked over NumPy
arrays."""

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.expressions import Expression, Value, dotted_name
from warpsmith.errors import ExpressionError

Bools = NDArray[np.bool_]
Scope = Mapping[str, Any]
"""Values by name: numbers, words, or arrays of equal length."""

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
    "next_pow2": np.vectorize(lambda a: 1 << max(int(a) - 1, 0).bit_length(), otypes=[np.int64]),
    "gcd": np.gcd,
    "sqrt": np.sqrt,
    "log2": np.log2,
}


def holds(expression: Expression, scope: Scope, length: int) -> Bools:
    """[length]: True if the expression holds for the configuration.

    A configuration for which it cannot be evaluated (for example, because of a division by zero) is not
    allowed. Arrays are tried first; flagged rows are then evaluated one by one with `Expression.evaluate`.

    Raises:
        ExpressionError: an unknown name.
    """
    unknown = sorted(expression.names - scope.keys())
    if unknown:
        known = ", ".join(sorted(scope))
        raise ExpressionError(expression.text, f"unknown name {unknown[0]!r} (known: {known})")
    walker = _Walker(scope)
    try:
        with np.errstate(all="ignore"):
            result = np.broadcast_to(np.asarray(walker.visit(expression.tree)), (length,)).astype(bool)
    except (TypeError, ValueError, OverflowError):
        return _one_by_one(expression, scope, np.ones(length, bool))
    if walker.suspect is not None:
        suspect = np.broadcast_to(walker.suspect, (length,))
        result = np.where(suspect, _one_by_one(expression, scope, suspect), result)
    return np.asarray(result, bool)


def evaluate(node: ast.AST, scope: Scope) -> NDArray[np.float64] | None:
    """[length]: values of an arithmetic expression; None if some row has none."""
    walker = _Walker(scope)
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(walker.visit(node), np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    usable = walker.suspect is None and bool(np.isfinite(values).all())
    return values if usable else None


def _one_by_one(expression: Expression, scope: Scope, which: Bools) -> Bools:
    out = np.zeros(which.size, bool)
    for i in np.flatnonzero(which):
        values: dict[str, Value] = {
            n: v[i].item() if isinstance(v, np.ndarray) else v for n, v in scope.items()
        }
        try:
            out[i] = bool(expression.evaluate(values))
        except ExpressionError:
            out[i] = False
    return out


class _Walker:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.suspect: Any = None

    def visit(self, node: ast.AST) -> Any:
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
        left, right = self.visit(node.left), self.visit(node.right)
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
        return np.negative(value) if isinstance(node.op, ast.USub) else value

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


def _fold(function: Callable[[Any, Any], Any], values: Any) -> Any:
    first, *rest = values
    for value in rest:
        first = function(first, value)
    return first
