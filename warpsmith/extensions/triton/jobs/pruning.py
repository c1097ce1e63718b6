"""Functions that prune configurations, and heuristics, as expressions of a job."""

import ast
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from warpsmith.domain.kernels.triton_function import TritonFunction, last_name
from warpsmith.extensions.triton.jobs.arithmetic import translated, with_names
from warpsmith.extensions.triton.jobs.safe_values import Module


@dataclass(frozen=True)
class Condition:
    """A condition on configurations; its names are parameters of the kernel and launch options."""

    tree: ast.expr
    line: int
    function: str


@dataclass(frozen=True)
class Pruning:
    """Conditions of a pruning function, and the parts that are no arithmetic of parameters."""

    conditions: tuple[Condition, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Heuristic:
    """A `tl.constexpr` parameter that `triton.heuristics` computes."""

    name: str
    tree: ast.expr | None
    """Over parameters of the kernel; None if it is no arithmetic of them."""
    text: str
    line: int


_Loop = Generator[Condition, None, str]
"""The conditions of a loop; it ends with the name of the list that the loop makes."""


class _Untranslated(Exception):
    def __init__(self, node: ast.AST) -> None:
        self.line = getattr(node, "lineno", 0)


def pruning_conditions(node: ast.expr, module: Module) -> Pruning:
    """The conditions of a pruning function that is a comprehension or a loop over the configurations."""
    function = module.functions.get(node.id) if isinstance(node, ast.Name) else node
    name = node.id if isinstance(node, ast.Name) else "the lambda"
    if not isinstance(function, ast.FunctionDef | ast.Lambda):
        return Pruning(
            (), (f"line {node.lineno}: the pruning function {ast.unparse(node)} is not in this file",)
        )
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if function.args.kwarg is not None:
        names.append(function.args.kwarg.arg)
    reader = _ConfigConditions(module, names[0] if names else "", frozenset(names[1:]), name)
    if isinstance(function, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(function.body, lineno=function.lineno)]
    else:
        body = function.body
    try:
        return Pruning(tuple(reader.conditions(body)))
    except _Untranslated as exc:
        words = f"line {function.lineno}: write what {name} prunes as constraints"
        return Pruning((), (f"{words} (line {exc.line} is no arithmetic of parameters)",))


def read_heuristics(function: TritonFunction, module: Module) -> tuple[Heuristic, ...]:
    """The values that `triton.heuristics` computes, in its order."""
    found: list[Heuristic] = []
    for decorator in function.decorators:
        if not (isinstance(decorator, ast.Call) and last_name(decorator.func) == "heuristics"):
            continue
        given = decorator.args[0] if decorator.args else next((k.value for k in decorator.keywords), None)
        while isinstance(given, ast.Name) and (named := module.assigned(given.id)) is not None:
            given = named
        if isinstance(given, ast.Dict):
            pairs = zip(given.keys, given.values, strict=True)
            found += [_heuristic(ast.literal_eval(k), v, module) for k, v in pairs if _is_word(k)]
    return tuple(found)


def _heuristic(name: str, node: ast.expr, module: Module) -> Heuristic:
    arguments, body = _single(node, module)
    reader = _ConfigConditions(module, "", frozenset(arguments), name)
    tree = None if body is None else reader.translated(body, {})
    return Heuristic(name, tree, " ".join(ast.unparse(node).split()), node.lineno)


def _single(node: ast.expr, module: Module) -> tuple[list[str], ast.expr | None]:
    """Arguments and result of a lambda, or of a function that only returns something."""
    if isinstance(node, ast.Lambda):
        return [a.arg for a in node.args.args], node.body
    function = module.functions.get(node.id) if isinstance(node, ast.Name) else None
    if function is not None:
        rest = [s for s in function.body if not isinstance(s, ast.Expr)]
        if len(rest) == 1 and isinstance(rest[0], ast.Return):
            return [a.arg for a in function.args.args], rest[0].value
    return [], None


@dataclass(frozen=True)
class _ConfigConditions:
    module: Module
    configs: str
    """Name of the list of configurations."""
    given: frozenset[str]
    """Names of the mappings with the kernel's arguments."""
    function: str

    def conditions(self, body: list[ast.stmt]) -> Iterator[Condition]:
        """Raises:
        _Untranslated: a statement is neither arithmetic nor one of the loops that are known.
        """
        values: dict[str, ast.expr] = {}
        lists = {self.configs}
        for statement in body:
            match statement:
                case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom():
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp() as value):
                    yield from self._comprehension(value, values, lists)
                    lists.add(name)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                    continue
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, value, values)
                case ast.For(target=ast.Name(id=name), iter=ast.Name(id=source), body=inner, orelse=[]):
                    if source not in lists:
                        raise _Untranslated(statement)
                    made = yield from self._loop(inner, name, {**values})
                    lists.add(made)
                case ast.Return(value=ast.ListComp() as value):
                    yield from self._comprehension(value, values, lists)
                    return
                case ast.Return(value=ast.Name(id=name)) if name in lists:
                    return
                case ast.Return(value=ast.BoolOp(op=ast.Or(), values=[ast.Name(id=name), *_])) if (
                    name in lists
                ):
                    return  # a list that would be empty is not pruned; no search starts with an empty space
                case _:
                    raise _Untranslated(statement)

    def _comprehension(
        self, node: ast.ListComp, values: Mapping[str, ast.expr], lists: set[str]
    ) -> Iterator[Condition]:
        match node:
            case ast.ListComp(
                elt=ast.Name(id=kept),
                generators=[ast.comprehension(target=ast.Name(id=name), iter=ast.Name(id=source), ifs=tests)],
            ) if kept == name and source in lists:
                for test in tests:
                    yield self._condition(test, {**values, name: _config(name)})
            case _:
                raise _Untranslated(node)

    def _loop(self, body: list[ast.stmt], name: str, values: dict[str, ast.expr]) -> _Loop:
        values[name] = _config(name)
        for statement in body:
            match statement:
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, value, values)
                case ast.If(test=test, body=[ast.Continue()], orelse=[]):
                    yield self._condition(ast.UnaryOp(ast.Not(), test, lineno=test.lineno), values)
                case ast.If(test=test, body=[only], orelse=[]) if _appends(only, name):
                    yield self._condition(test, values)
                    return _appends(only, name)
                case _ if _appends(statement, name):
                    return _appends(statement, name)
                case _:
                    raise _Untranslated(statement)
        raise _Untranslated(body[-1])

    def _assign(self, target: ast.expr, value: ast.expr, values: dict[str, ast.expr]) -> None:
        match target, value:
            case ast.Name(id=name), _:
                pairs = [(name, value)]
            case ast.Tuple(elts=names), ast.Tuple(elts=parts) if len(names) == len(parts):
                pairs = [(last_name(n), part) for n, part in zip(names, parts, strict=True)]
            case _:
                raise _Untranslated(target)
        for name, part in pairs:
            found = part if ast.unparse(part).endswith(".kwargs") else self.translated(part, values)
            if found is not None:
                values[name] = found
            else:
                values.pop(name, None)

    def _condition(self, test: ast.expr, values: Mapping[str, ast.expr]) -> Condition:
        found = self.translated(test, values)
        if found is None:
            raise _Untranslated(test)
        return Condition(found, test.lineno, self.function)

    def translated(self, node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr | None:
        """The arithmetic over the kernel's parameters; None if it is none."""

        def leaf(part: ast.expr) -> ast.expr | None:
            match part:
                case ast.Name(id=name):
                    return self._named(name, values)
                case ast.Subscript(value=owner, slice=ast.Constant(value=str() as word)):
                    return ast.Name(word, ast.Load()) if self._is_mapping(owner, values) else None
                case ast.Call(
                    func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str() as w), *_]
                ):
                    return ast.Name(w, ast.Load()) if self._is_mapping(owner, values) else None
                case ast.Attribute(value=ast.Name(id=name), attr=word):
                    known = name in values and ast.unparse(values[name]) == _mark(name)
                    return ast.Name(word, ast.Load()) if known and word != "kwargs" else None
                case ast.Compare(
                    left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]
                ):
                    found = self.translated(left, values)
                    return None if found is None else ast.Compare(found, [op], [ast.Constant(None)])
            return None

        return translated(node, leaf)

    def _named(self, name: str, values: Mapping[str, ast.expr]) -> ast.expr | None:
        if name in values:
            return values[name]
        found = None if self.module.assigned(name) is None else self.module.known(ast.Name(name, lineno=0))
        return ast.Constant(found) if isinstance(found, bool | int | float) else None

    def _is_mapping(self, owner: ast.expr, values: Mapping[str, ast.expr]) -> bool:
        match owner:
            case ast.Name(id=name):
                return name in self.given or (
                    name in values and ast.unparse(values[name]).endswith(".kwargs")
                )
            case ast.Attribute(value=ast.Name(id=name), attr="kwargs"):
                return name in values
        return False


def _is_word(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _mark(name: str) -> str:
    return f"config_{name}"


def _config(name: str) -> ast.expr:
    return ast.Name(_mark(name), ast.Load())


def _appends(statement: ast.stmt, item: str) -> str:
    """Name of the list that a statement appends an item to; empty for other statements."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="append"),
                args=[ast.Name(id=name)],
                keywords=[],
            )
        ) if name == item:
            return owner
    return ""


def replaced(tree: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """The tree with these names replaced, and comparisons with None decided: what is passed is not None."""
    return with_names(_NoneTestsDecided().visit(tree), dict(values))


class _NoneTestsDecided(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        match node.ops:
            case [ast.Is()]:
                return ast.Constant(False)
            case [ast.IsNot()]:
                return ast.Constant(True)
        return node
