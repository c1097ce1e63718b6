"""Reads the `@triton.jit` functions of a Python file without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

FP_FUSION = "enable_fp_fusion"
LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", FP_FUSION)
"""Options of a launch beside the function's own parameters."""
TOO_DEEP = "holds an expression that is nested too deeply"
_JIT = frozenset({"triton.jit", "triton.runtime.jit"})


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
    """The `@triton.jit` functions of a file, in order, those inside of functions and classes included.

    Raises:
        ValueError: the text is no Python; the message names the line.
    """
    tree = _tree(text)
    names = jit_names(tree)
    nodes = sorted(
        (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), key=lambda n: (n.lineno, n.col_offset)
    )
    try:
        return tuple(found for node in nodes if (found := _function(node, names)) is not None)
    except RecursionError as exc:
        raise ValueError(TOO_DEEP) from exc


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


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name; empty for other expressions."""
    return dotted(node).rpartition(".")[2]


def jit_names(tree: ast.AST) -> frozenset[str]:
    """Dotted names that mean `triton.jit` in a file, from its imports."""
    found = set(_JIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "triton":
            found |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
        elif isinstance(node, ast.Import):
            found |= {
                f"{alias.asname}.jit" for alias in node.names if alias.name == "triton" and alias.asname
            }
    return frozenset(found)


def jit_decorator(node: ast.FunctionDef, names: frozenset[str]) -> ast.expr | None:
    """The decorator by which Triton compiles a function; None without one."""
    for decorator in node.decorator_list:
        if dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) in names:
            return decorator
    return None


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as exc:
        line = getattr(exc, "lineno", None)
        if not exc.args or isinstance(exc, RecursionError):
            raise ValueError(TOO_DEEP) from exc
        raise ValueError(f"is no Python: {exc.args[0]}" + (f" (line {line})" if line else "")) from exc


def _function(node: ast.FunctionDef, names: frozenset[str]) -> TritonFunction | None:
    jit = jit_decorator(node, names)
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
        annotation = "" if argument.annotation is None else _annotation(argument.annotation)
        constexpr = annotation.rpartition(".")[2] == "constexpr"
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


def _annotation(node: ast.expr) -> str:
    quoted = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if quoted else ast.unparse(node)  # type: ignore[attr-defined]
