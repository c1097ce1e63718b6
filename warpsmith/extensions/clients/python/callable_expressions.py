"""Functions of a configuration as expressions of a job, read from their sources."""

import ast
import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from warpsmith.domain.kernels.triton_function import last_name
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.extents import products
from warpsmith.extensions.importers.kernel_tuner import returned_expression
from warpsmith.extensions.triton.jobs.arithmetic import FUNCTIONS, expression_text, translated

_CALLED = FUNCTIONS.keys() | {"ceil"}


@dataclass(frozen=True)
class FunctionReader:
    """Reads functions such as `lambda meta: (cdiv(n, meta["BLOCK"]),)`.

    Args:
        parameters: names of the tunables.
        dimensions: those of the first workload, whose sizes the variables around a function have.
    """

    parameters: Sequence[str]
    dimensions: Mapping[str, int]

    def expressions(self, field: str, function: Callable[..., Any]) -> list[str]:
        """Expressions of what it returns. In a grid, numbers from around it become dimensions of their value.

        Raises:
            InvalidInput: it cannot be read, or is more than arithmetic of the configuration.
        """
        node = _definition(function)
        if node is None:
            raise _refused(field, "the source of this function cannot be read")
        code = function.__code__
        around = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        scope = {n: around[n] for n in (*code.co_names, *code.co_freevars) if n in around}
        text = returned_expression(node, {*self.parameters, *self.dimensions})
        tree = ast.parse(text or "...", mode="eval").body
        parts = tree.elts if isinstance(tree, ast.Tuple | ast.List) else [tree]
        found = [expression_text(translated(part, partial(self._leaf, field, scope))) for part in parts]
        if None in found:
            raise _refused(field, "this function is more than arithmetic of the configuration")
        return [text for text in found if text is not None]

    def _leaf(self, field: str, scope: dict[str, Any], part: ast.expr) -> ast.expr | None:
        match part:
            case ast.Name(id=name) if name in self.parameters or name not in scope:
                return part
            case ast.Name(id=name) if name in self.dimensions:
                if scope[name] != self.dimensions[name]:
                    words = f"{name} is {scope[name]}, and {name} of the first workload"
                    raise InvalidInput(field, f"{words} {self.dimensions[name]}; make them equal")
                return part
            case ast.Call(func=func) if last_name(func) in _CALLED:
                return None
            case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
                return self._number(field, scope, part)
        return None

    def _number(self, field: str, scope: dict[str, Any], node: ast.expr) -> ast.expr | None:
        try:
            # The caller's own function would evaluate it in the same way.
            value = eval(compile(ast.unparse(node), field, "eval"), {**scope})
        except Exception:  # noqa: BLE001  whatever the caller's objects raise
            return None
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            return None
        if not isinstance(value, numbers.Integral):
            return ast.Constant(float(value))
        number = int(value)
        found = products(number, self.dimensions) if number > 1 and not _is_constraint(field) else []
        if len(found) > 1:
            words = f"{ast.unparse(node)} is {' and '.join(found)} alike"
            raise InvalidInput(field, f"{words}; name the dimension in the function")
        return ast.parse(found[0], mode="eval").body if found else ast.Constant(number)


def _is_constraint(field: str) -> bool:
    return field.startswith("constraints")


def _refused(field: str, why: str) -> InvalidInput:
    such = '"BLOCK * TILE <= 1024"' if _is_constraint(field) else '"ceil_div(n, BLOCK)"'
    return InvalidInput(field, f"{why}; write an expression as text, such as {such}")


def _definition(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """The definition of a function, a lambda as one that returns; None if its source cannot be read."""
    if not inspect.isfunction(function):
        return None
    code = function.__code__
    try:
        tree = ast.parse("".join(inspect.findsource(code)[0]))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    spans = {tuple(span) for span in code.co_positions()}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if node.lineno == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda):
            body = node.body
            if (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset) in spans:
                return ast.FunctionDef("lambda", node.args, [ast.Return(body)], [])
    return None
