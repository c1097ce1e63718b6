"""The part of a user's Python file that Triton compiles: the kernel, and what it reaches in the file.

Nothing else of the file ever runs: no host code, no import but Triton's, no decorator but `triton.jit`. Lines
keep their numbers, so that errors of the compiler name the user's own.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from warpsmith.domain.kernels.triton_function import TOO_DEEP, dotted, jit_decorator, jit_names

_MODULES = ("triton", "math")
"""Modules whose imports are kept."""
_CONSTANT_CALLS = ("tl.constexpr", "triton.language.constexpr", "constexpr", "float", "int", "bool", "tuple")
_CONSTEXPR = ("triton.language.constexpr", "triton.language.core.constexpr")
_IS_CLASS = "is a class; a kernel can use constants and functions"
_SEVERAL = "has several statements; write each on a line of its own"
_KEPT_OF_JIT = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline", "debug")
_CONSTANT_NODES = (
    *(ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare),
    *(ast.IfExp, ast.Name, ast.Attribute, ast.Call, ast.Load, ast.Subscript, ast.keyword),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
_GROWING = (ast.Pow, ast.LShift, ast.Mult, ast.Mod)
"""Operators whose result may be much larger than its operands."""
_LINES = re.compile(r"\r\n|\r|\n")
"""Ends of lines as Python counts them; others, such as form feeds, end none."""


class NotSelfContained(ValueError):
    """The kernel needs something of the file that is neither a constant nor a `@triton.jit` function."""


@dataclass(frozen=True)
class _NamedStatement:
    """A statement of the file that gives a name its value."""

    node: ast.stmt
    needs: frozenset[str]
    problem: str = ""
    """Reason for which the kernel cannot use the statement; empty if it can."""


@dataclass
class _KernelFile:
    lines: list[str]
    jit: frozenset[str]
    """Dotted names that mean `triton.jit` in the file."""
    known: dict[str, _NamedStatement] = field(default_factory=dict)
    meanings: dict[str, set[str]] = field(default_factory=dict)
    """Meanings of each name of the file: dotted names of imports, and "" where it is no import."""


def kernel_module(text: str, entry: str) -> str:
    """The text of a module with `entry` and everything in the file that it reaches.

    Raises:
        NotSelfContained: it reaches what cannot be kept; the message names the line.
        ValueError: the text is no Python.
    """
    try:
        return _module(text, entry)
    except (MemoryError, RecursionError) as exc:
        raise ValueError(f"kernel.source {TOO_DEEP}") from exc


def _module(text: str, entry: str) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as exc:
        raise ValueError(f"kernel.source is no Python: {exc}") from exc
    file = _KernelFile(_LINES.split(text), jit_names(tree))
    for statement in _statements(tree.body):
        for name, definition in _definitions(statement, file.jit):
            file.known[name] = definition
            file.meanings.setdefault(name, set()).add(_meaning(name, definition.node))
    if entry not in file.known or not isinstance(file.known[entry].node, ast.FunctionDef):
        found = ", ".join(n for n, d in file.known.items() if isinstance(d.node, ast.FunctionDef)) or "none"
        raise NotSelfContained(f"the file has no @triton.jit function {entry}; it has: {found}")
    kept: dict[int, ast.stmt] = {}
    left, seen = [entry], {entry}
    while left:
        name = left.pop()
        if name not in file.known:
            continue
        definition = file.known[name]
        if definition.problem:
            raise NotSelfContained(f"line {definition.node.lineno}: {name} {definition.problem}")
        _require_known_calls(file, definition.node)
        kept[definition.node.lineno] = definition.node
        for need in definition.needs - seen:
            seen.add(need)
            left.append(need)
    return _written(file, list(kept.values()))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at top level, and those within `if` and `try`, where names are given as well."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            inside = [s for handler in node.handlers for s in handler.body]
            yield from _statements([*inside, *node.orelse, *node.finalbody, *node.body])
        else:
            yield node


def _definitions(node: ast.stmt, jit: frozenset[str]) -> Iterator[tuple[str, _NamedStatement]]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for name, _, root in _imported(node):
            yield name, _NamedStatement(node, frozenset(), _of_module(root, node.names))
    elif isinstance(node, ast.FunctionDef):
        yield node.name, _function(node, jit)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for name in _names(target):
                yield name, _assignment(node)
    elif isinstance(node, ast.ClassDef):
        yield node.name, _NamedStatement(node, frozenset(), _IS_CLASS)


def _of_module(root: str, names: list[ast.alias]) -> str:
    if root not in _MODULES:
        return f"comes from {root}, which is not sent; put what the kernel uses of it into the file"
    if any(a.name == "*" for a in names):
        return "is imported with *; name what the kernel uses"
    return ""


def _function(node: ast.FunctionDef, jit: frozenset[str]) -> _NamedStatement:
    if jit_decorator(node, jit) is None and not any(_stays(d) for d in node.decorator_list):
        return _NamedStatement(node, frozenset(), "is no @triton.jit function")
    heads = _heads(node)
    for head in heads:
        if not _is_constant(head):
            words = f"has {ast.unparse(head)!r}, which is no constant, in its head"
            return _NamedStatement(node, frozenset(), words)
    outside = [*heads, *(d for d in node.decorator_list if _stays(d))]
    needs = {n for part in node.body for n in _loaded(part)} - _own_names(node)
    decorator = jit_decorator(node, jit)
    if decorator is not None:
        outside.append(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return _NamedStatement(node, frozenset(needs | {n for part in outside for n in _loaded(part)}))


def _assignment(node: ast.Assign | ast.AnnAssign) -> _NamedStatement:
    parts = [p for p in (node.value, getattr(node, "annotation", None)) if p is not None]
    if node.value is None or not all(_is_constant(p) for p in parts):
        return _NamedStatement(node, frozenset(), "is no constant, and the kernel uses it; write its value")
    return _NamedStatement(node, frozenset(n for part in parts for n in _loaded(part)))


def _is_constant(node: ast.AST) -> bool:
    """True for an expression of literals, types and names, which are looked at by themselves."""
    for part in ast.walk(node):
        if not isinstance(part, _CONSTANT_NODES):
            return False
        if isinstance(part, ast.Call) and dotted(part.func) not in _CONSTANT_CALLS:
            return False
        if isinstance(part, ast.Attribute) and (not dotted(part) or "__" in part.attr):
            return False
        if isinstance(part, ast.BinOp) and isinstance(part.op, _GROWING) and _is_huge(part):
            return False
    return True


def _is_huge(node: ast.BinOp) -> bool:
    """True if a side is a text or a number with which an operation may take too much memory."""
    values = [s.value for s in (node.left, node.right) if isinstance(s, ast.Constant)]
    return any(isinstance(v, str | bytes) or (isinstance(v, int) and abs(v) > 1 << 40) for v in values)


def _meaning(name: str, node: ast.stmt) -> str:
    """The dotted name that a statement gives to `name`; empty if the statement is no import."""
    found = _imported(node) if isinstance(node, ast.Import | ast.ImportFrom) else ()
    return next((meaning for own, meaning, _ in found if own == name), "")


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """Names that an import gives, each with its dotted name and the root of its module."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            root = "." if node.level else (node.module or "").partition(".")[0]
            yield alias.asname or alias.name, f"{node.module}.{alias.name}", root
        else:
            root = alias.name.partition(".")[0]
            yield alias.asname or root, alias.name if alias.asname else root, root


def _require_known_calls(file: _KernelFile, node: ast.stmt) -> None:
    """Refuse a call in a constant or a head whose name stands for something else than a type.

    Raises:
        NotSelfContained: the message names the line.
    """
    parts = _heads(node) if isinstance(node, ast.FunctionDef) else [node]
    for call in (c for part in parts for c in ast.walk(part) if isinstance(c, ast.Call)):
        root, dot, rest = dotted(call.func).partition(".")
        for meaning in file.meanings.get(root, {root}):
            is_builtin = not dot and root not in file.meanings and root != "constexpr"
            if not is_builtin and f"{meaning}{dot}{rest}" not in _CONSTEXPR:
                raise NotSelfContained(
                    f"line {node.lineno}: {root} stands for something else than a type; write the value"
                )


def _own_names(node: ast.FunctionDef) -> set[str]:
    """Names of a function's parameters and locals."""
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {a.arg for a in _arguments(node.args)} | {n.id for n in stored}


def _heads(node: ast.FunctionDef) -> list[ast.AST]:
    """Defaults and annotations of a function's parameters."""
    heads: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    return heads + [a.annotation for a in _arguments(node.args) if a.annotation is not None]


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    rest = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _loaded(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _names(target: ast.expr) -> Iterator[str]:
    return (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def _stays(decorator: ast.expr) -> bool:
    return dotted(decorator).endswith("constexpr_function")


def _written(file: _KernelFile, kept: list[ast.stmt]) -> str:
    """The kept statements at their own lines; every other line is empty."""
    out = [""] * (len(file.lines) + 1)
    taken: set[int] = set()
    for node in sorted(kept, key=lambda n: n.lineno):
        end = node.end_lineno or node.lineno
        span = range(node.lineno, end + 1)
        if taken & set(span):
            raise NotSelfContained(f"line {node.lineno}: {_SEVERAL}")
        taken |= set(span)
        for line in span:
            text = file.lines[line - 1]
            out[line] = text[node.col_offset :] if not text[: node.col_offset].strip() else text
        first = file.lines[node.lineno - 1]
        if first[: node.col_offset].strip() or _after(file, node):
            raise NotSelfContained(f"line {node.lineno}: {_SEVERAL}")
        if isinstance(node, ast.FunctionDef):
            _decorate(out, node, file.jit)
    return "\n".join(out[1:]) + "\n"


def _after(file: _KernelFile, node: ast.stmt) -> bool:
    """True if another statement follows on the last line of this one."""
    line = file.lines[(node.end_lineno or node.lineno) - 1].encode()
    rest = line[node.end_col_offset or 0 :].decode(errors="replace").strip()
    return bool(rest) and not rest.startswith("#")


def _decorate(out: list[str], node: ast.FunctionDef, names: frozenset[str]) -> None:
    """The decorator that stays, on the line above `def`."""
    for decorator in node.decorator_list:
        for line in range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1):
            out[line] = ""
    jit = jit_decorator(node, names)
    given = [] if not isinstance(jit, ast.Call) else [k for k in jit.keywords if k.arg in _KEPT_OF_JIT]
    words = ", ".join(f"{k.arg}={ast.unparse(k.value)}" for k in given if _is_plain(k.value))
    if jit is None:
        text = next("@" + ast.unparse(d) for d in node.decorator_list if _stays(d))
    else:
        called = ast.unparse(jit.func if isinstance(jit, ast.Call) else jit)
        text = f"@{called}({words})" if words else f"@{called}"
    out[node.lineno - 1] = text


def _is_plain(node: ast.expr) -> bool:
    """True for a literal, or a list of literals."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return all(isinstance(p, ast.Constant) for p in parts)
