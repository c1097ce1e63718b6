"""Tells the Triton functions of a file that are kernels from helpers of others."""

import ast
from collections.abc import Mapping, Sequence

from warpsmith.domain.kernels.triton_function import TritonFunction, last_name, read_kernels
from warpsmith.errors import InvalidInput

_MAX_SHOWN = 8
_DECORATED = ("heuristics",)


def entries(functions: Sequence[TritonFunction], tree: ast.Module) -> tuple[TritonFunction, ...]:
    """The functions that host code can launch: they return nothing, and none of the others calls them.

    A function that the file itself launches, or that has configurations, is one in any case.
    """
    launched = {last_name(n.value) for n in ast.walk(tree) if isinstance(n, ast.Subscript)}
    called = {
        last_name(node.func)
        for f in functions
        for node in ast.walk(f.node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return tuple(
        f
        for f in functions
        if f.name in launched or _is_tuned(f) or not (f.name in called or _returns(f.node))
    )


def choose(text: str, shown: str, entry: str | None) -> tuple[TritonFunction, dict[str, TritonFunction]]:
    """The wanted kernel of a file, and all Triton functions by name.

    Args:
        shown: the file's name in messages.
        entry: the kernel's name; None: the only one.

    Raises:
        InvalidInput: there is none, or several; the message names them.
    """
    try:
        functions = read_kernels(text)
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as exc:
        raise InvalidInput("source", f"{shown} cannot be read as Python: {exc}") from exc
    by_name = {f.name: f for f in reversed(functions)}
    if entry is not None:
        if entry not in by_name:
            raise InvalidInput("--entry", f"{entry}: 0 such kernels in {shown}; it has {_listed(by_name)}")
        return by_name[entry], by_name
    found = {f.name: f for f in entries(functions, tree)}
    if not found:
        raise InvalidInput("source", f"{shown}: no kernel (a function with @triton.jit) found")
    if len(found) > 1:
        raise InvalidInput("--entry", f"{shown} defines {len(found)} kernels; name one of {_listed(found)}")
    name = next(iter(found))
    return by_name[name], by_name


def _listed(names: Mapping[str, TritonFunction]) -> str:
    shown = list(names)[:_MAX_SHOWN]
    return (", ".join(shown) or "none") + (", ..." if len(names) > _MAX_SHOWN else "")


def _is_tuned(function: TritonFunction) -> bool:
    called = (last_name(d.func) for d in function.decorators if isinstance(d, ast.Call))
    return any(name in _DECORATED or name.endswith("autotune") for name in called)


def _returns(node: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))
