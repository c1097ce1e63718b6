"""Evaluates constraints for many configurations at once."""

import ast

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.expressions import Expression, Value
from warpsmith.errors import ExpressionError
from warpsmith.search.spaces.array_expressions import ArrayWalker, Scope

Bools = NDArray[np.bool_]


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
    walker = ArrayWalker(scope)
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
    walker = ArrayWalker(scope)
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
