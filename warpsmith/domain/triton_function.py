"""Reads the `@triton.jit` functions of a Python file without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""What a launch may be told beside the function's own parameters."""
_JIT = ("triton.jit", "jit", "triton.runtime.jit")


@dataclass(frozen=True)
class TritonParameter:
    """A parameter of a `@triton.jit` function."""

    name: str
    is_constexpr: bool
    default: str | None = None
    """Text of the default; None without one."""
    annotation: str = ""


@dataclass(frozen=True)
class TritonFunction:
    """A function that Triton compiles."""

    name: str
    line: int
    """Line of `def`, from 1."""
    parameters: tuple[TritonParameter, ...]
    decorators: tuple[ast.expr, ...]
    node: ast.FunctionDef
    not_specialised: frozenset[str] = frozenset()
    """Parameters whose values the compiler is not to look at."""
    not_aligned: frozenset[str] = frozenset()
    """Parameters whose divisibility the compiler is not to look at."""

    @property
    def arguments(self) -> tuple[TritonParameter, ...]:
        """The parameters that are no `tl.constexpr`, in order."""
        return tuple(p for p in self.parameters if not p.is_constexpr)


def read_kernels(text: str) -> tuple[TritonFunction, ...]:
    """The `@triton.jit` functions of a file, in order.

    Raises:
        ValueError: the text is no Python; the message names the line.
    """
    return tuple(found for node in _tree(text).body if (found := _function(node)) is not None)


@lru_cache(maxsize=64)
def kernel_named(text: str, name: str) -> TritonFunction | None:
    """The function of that name; None if the file has none that Triton compiles.

    Raises:
        ValueError: the text is no Python.
    """
    return next((found for found in reversed(read_kernels(text)) if found.name == name), None)


def dotted(node: ast.expr) -> str:
    """`a.b.c` for an expression of names and dots; empty for another."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def is_jit(decorator: ast.expr) -> bool:
    """True for `@triton.jit`, `@jit` and both with arguments."""
    return dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) in _JIT


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as exc:
        line = getattr(exc, "lineno", None)
        raise ValueError(f"is no Python: {exc.args[0]}" + (f" (line {line})" if line else "")) from exc


def _function(node: ast.stmt) -> TritonFunction | None:
    if not isinstance(node, ast.FunctionDef):
        return None
    jit = next((d for d in node.decorator_list if is_jit(d)), None)
    if jit is None:
        return None
    parameters = tuple(_parameters(node.args))
    return TritonFunction(
        node.name,
        node.lineno,
        parameters,
        tuple(node.decorator_list),
        node,
        _named(jit, "do_not_specialize", parameters),
        _named(jit, "do_not_specialize_on_alignment", parameters),
    )


def _parameters(arguments: ast.arguments) -> Iterator[TritonParameter]:
    every = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(every) - len(arguments.defaults))
    pairs = [*zip(every, [*defaults, *arguments.defaults], strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    for argument, default in pairs:
        annotation = "" if argument.annotation is None else ast.unparse(argument.annotation)
        constexpr = annotation.strip("'\"").rpartition(".")[2] == "constexpr"
        yield TritonParameter(
            argument.arg, constexpr, None if default is None else ast.unparse(default), annotation
        )


def _named(jit: ast.expr, keyword: str, parameters: tuple[TritonParameter, ...]) -> frozenset[str]:
    """Parameters that a keyword of the decorator lists, by name or by place."""
    given = (
        next((k.value for k in jit.keywords if k.arg == keyword), None) if isinstance(jit, ast.Call) else None
    )
    found = set()
    for element in given.elts if isinstance(given, ast.List | ast.Tuple) else ():
        if isinstance(element, ast.Constant):
            place = element.value
            found.add(parameters[place].name if isinstance(place, int) else str(place))
    return frozenset(found)
