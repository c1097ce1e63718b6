"""Hooks of `triton.autotune` that set buffers to zero before a run."""

import ast
from collections.abc import Mapping

from warpsmith.extensions.triton.jobs.safe_values import Module


def zeroed_by(hook: ast.expr, module: Module) -> list[str]:
    """Names of the buffers that a hook sets to zero; none if it calls anything else.

    A hook is a lambda, a function of the file, or a call of a function of the file that returns one.
    """
    given: Mapping[str, object] = {}
    node: ast.AST = hook
    if isinstance(hook, ast.Call) and isinstance(hook.func, ast.Name):
        maker = module.functions.get(hook.func.id)
        names = [] if maker is None else [a.arg for a in maker.args.args]
        given = dict(zip(names, map(module.known, hook.args), strict=False))
        node = maker or hook
    elif isinstance(hook, ast.Name):
        node = module.functions.get(hook.id) or module.assigned(hook.id) or hook
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    names = [_zeroed(call, given) for call in calls]
    return [n for n in names if n] if all(names) else []


def _zeroed(call: ast.Call, given: Mapping[str, object]) -> str:
    """Name of the buffer that a call sets to zero; empty for other calls."""
    match call.func, call.args:
        case (ast.Attribute(value=ast.Subscript(slice=key), attr="zero_"), []) | (
            ast.Attribute(value=ast.Subscript(slice=key), attr="fill_"),
            [ast.Constant(value=0)],
        ):
            name = given.get(key.id) if isinstance(key, ast.Name) else getattr(key, "value", None)
            return name if isinstance(name, str) else ""
    return ""
