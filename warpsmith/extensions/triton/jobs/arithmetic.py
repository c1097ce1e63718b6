"""Arithmetic of Python texts as expressions of a job."""

import ast
import copy
from collections.abc import Callable, Mapping
from typing import Any

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.triton_function import last_name
from warpsmith.errors import ExpressionError

Leaf = Callable[[ast.expr], ast.expr | None]
"""Replacement of a part that is no arithmetic; None to translate the part itself."""

FUNCTIONS = {
    **{name: name for name in ("min", "max", "abs", "int", "bool", "gcd", "sqrt", "log2")},
    **{name: name for name in ("ceil_div", "round_up", "next_pow2")},
    **dict.fromkeys(("cdiv", "ceildiv"), "ceil_div"),
    **dict.fromkeys(("next_power_of_2", "next_power_of_two"), "next_pow2"),
}
"""Functions of a job's expressions by their names in Python texts; `ceil` of a division is one too."""
_TWO = ("ceil_div", "round_up", "gcd")


def translated(node: ast.expr, leaf: Leaf) -> ast.expr | None:
    """The arithmetic with its leaves replaced, in the words of a job; None if a part has no translation."""
    found = leaf(node)
    if found is not None:
        return found
    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            return node
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            parts = _all(elts, leaf)
            return None if parts is None else ast.Tuple(parts, ast.Load())
        case ast.Call(func=func, args=args, keywords=[]):
            return _call(last_name(func), args, leaf)
        case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.IfExp():
            return _rebuilt(node, leaf)
    return None


def expression_text(node: ast.expr | None) -> str | None:
    """The text of an arithmetic; None if the language of a job does not have it."""
    if node is None:
        return None
    try:
        return Expression(ast.unparse(ast.fix_missing_locations(node))).text
    except (ExpressionError, RecursionError):
        return None


def product(parts: list[ast.expr]) -> ast.expr:
    """The product of these factors, without ones; 1 of none."""
    kept = [p for p in parts if not (isinstance(p, ast.Constant) and p.value == 1)]
    result: ast.expr = ast.Constant(1)
    for n, part in enumerate(kept):
        result = part if n == 0 else ast.BinOp(result, ast.Mult(), part)
    return result


def with_names(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """A copy of an expression with other expressions in the place of these names."""

    class Replaced(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return values.get(name.id, name)

    found = Replaced().visit(copy.deepcopy(node))
    assert isinstance(found, ast.expr)
    return found


def names_of(node: ast.expr) -> list[str]:
    """Names in an expression, each time that they stand there."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def _rebuilt(node: ast.expr, leaf: Leaf) -> ast.expr | None:
    """An operation with its operands translated; None if one of them has no translation."""
    found: dict[str, Any] = {}
    for name, part in ast.iter_fields(node):
        if isinstance(part, ast.expr):
            found[name] = translated(part, leaf)
        elif isinstance(part, list) and isinstance(part[0], ast.expr):
            found[name] = _all(part, leaf)
        else:
            found[name] = part
    return None if None in found.values() else type(node)(**found)


def _all(nodes: list[ast.expr], leaf: Leaf) -> list[ast.expr] | None:
    parts = [translated(node, leaf) for node in nodes]
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else None


def _call(name: str, args: list[ast.expr], leaf: Leaf) -> ast.expr | None:
    if name == "ceil" and len(args) == 1:
        match args[0]:
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _call("cdiv", [left, right], leaf)
        return None
    parts = _all(args, leaf)
    function = FUNCTIONS.get(name)
    if parts is None or function is None or (function in _TWO and len(parts) != 2):
        return None
    if function == "bool":
        return parts[0] if len(parts) == 1 else None
    return ast.Call(ast.Name(function, ast.Load()), parts, [])
