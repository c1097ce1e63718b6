"""The Triton functions of a Python file."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_CONSTEXPR = "constexpr"


@dataclass(frozen=True)
class TritonParameter:
    """A parameter of a Triton function."""

    name: str
    is_constexpr: bool
    default: str | None = None
    """Text of the default; None without one."""
    annotation: str = ""
    """Text of the annotation; empty without one."""


@dataclass(frozen=True)
class TritonFunction:
    """A function with the decorator `triton.jit`."""

    name: str
    line: int
    """From 1; that of `def`."""
    parameters: tuple[TritonParameter, ...]
    decorators: tuple[ast.expr, ...]
    """All decorators, the outermost first, `triton.jit` included."""
    node: ast.FunctionDef


def read_kernels(text: str) -> tuple[TritonFunction, ...]:
    """The Triton functions of a file, in its order, those inside of functions and classes included.

    Raises:
        SyntaxError: the text is no Python.
        ValueError: the text has a NUL character.
        RecursionError: its expressions are nested too deeply.
    """
    tree = ast.parse(text)
    jit = {"triton.jit", *_imported(tree)}
    return tuple(_function(node) for node in _functions(tree) if _is_jit(node, jit))


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    yield from sorted(found, key=lambda node: node.lineno)


def _imported(tree: ast.AST) -> Iterator[str]:
    """Names that stand for `triton.jit` in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "triton":
            yield from (alias.asname or alias.name for alias in node.names if alias.name == "jit")
        elif isinstance(node, ast.Import):
            yield from (f"{a.asname}.jit" for a in node.names if a.name == "triton" and a.asname)


def _is_jit(node: ast.FunctionDef, jit: set[str]) -> bool:
    called = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return any(ast.unparse(d) in jit for d in called)


def _function(node: ast.FunctionDef) -> TritonFunction:
    given = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(given) - len(node.args.defaults))
    defaults += node.args.defaults
    pairs = [
        *zip(given, defaults, strict=True),
        *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
    ]
    return TritonFunction(
        node.name,
        node.lineno,
        tuple(_parameter(argument, default) for argument, default in pairs),
        tuple(node.decorator_list),
        node,
    )


def _parameter(argument: ast.arg, default: ast.expr | None) -> TritonParameter:
    annotation = "" if argument.annotation is None else _annotation(argument.annotation)
    word = annotation.rpartition(".")[2]
    text = None if default is None else ast.unparse(default)
    return TritonParameter(argument.arg, word == _CONSTEXPR, text, annotation)


def _annotation(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ast.unparse(node)
