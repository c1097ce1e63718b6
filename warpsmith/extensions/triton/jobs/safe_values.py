"""Values that a file writes out as literals, evaluated from its syntax tree; nothing of it is run.

The language is that of lists of configurations: literals, arithmetic, comprehensions, `range`, `filter`,
`itertools.product`, and functions of the file whose bodies are assignments, `if`, `for`, `append` and
`return`.
"""

import ast
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from warpsmith.domain.kernels.triton_function import last_name

MOST_STEPS = 200_000
"""Limit on the parts that one evaluation visits."""
_MOST_ITEMS = 10_000
"""Limit on the elements of one list."""
_DEEPEST = 60
"""Limit on the depth of expressions; a call of a function counts as four."""
_MOST_REPEATS = 8
_MOST_BITS = 64

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_SIMPLE: Mapping[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "len": len,
    "int": int,
    "bool": bool,
    "abs": abs,
    "list": list,
    "tuple": tuple,
    "sorted": sorted,
    "sum": sum,
    "dict": dict,
    "constexpr": lambda a: a,
    "cdiv": lambda a, b: -(-a // b),
    "next_power_of_2": lambda a: 1 << max(int(a) - 1, 0).bit_length(),
}


class NotLiteral(Exception):
    """A part that is not evaluated.

    Args:
        line: its line in the file.
        words: what it is.
    """

    def __init__(self, line: int, words: str) -> None:
        super().__init__(f"line {line}: {words}")
        self.line = line
        self.words = words


@dataclass(frozen=True)
class Config:
    """A `triton.Config`."""

    kwargs: dict[str, Any]
    options: dict[str, Any]
    """`num_warps`, `num_stages` and the others that the call names."""
    line: int


@dataclass
class Module:
    """A file's module-level names, and its functions."""

    tree: ast.Module
    remarks: list[str] = field(default_factory=list)
    """Assumptions that an evaluation made."""
    _steps: int = 0
    _values: dict[str, list[ast.expr]] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for statement in self.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._values.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._values.setdefault(name, []).append(value)
        found = (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef))
        for node in found:
            self.functions.setdefault(node.name, node)

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression at module level.

        Raises:
            NotLiteral: a part of it is outside of the language above.
        """
        self._steps = 0
        try:
            return _Evaluation(self).value(node, {})
        except RecursionError as exc:
            raise NotLiteral(node.lineno, "is nested too deeply") from exc

    def count(self, node: ast.AST) -> None:
        """Count a step.

        Raises:
            NotLiteral: there were too many.
        """
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise NotLiteral(getattr(node, "lineno", 0), "takes too many steps")

    def named(self, name: str) -> ast.expr | None:
        """The expression that a module-level name is assigned once, or last; None for other names."""
        return self._values[name][-1] if name in self._values else None

    def assume(self, node: ast.AST, words: str) -> None:
        """Note an assumption, with its line."""
        text = f"line {getattr(node, 'lineno', 0)}: {words}"
        if text not in self.remarks:
            self.remarks.append(text)


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Continue(Exception):
    pass


@dataclass
class _Evaluation:
    module: Module
    depth: int = 0

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        self.module.count(node)
        self.depth += 1
        try:
            if self.depth > _DEEPEST:
                raise NotLiteral(node.lineno, "is nested too deeply")
            return self._value(node, scope)
        except (TypeError, ValueError, KeyError, IndexError, ArithmeticError, AttributeError) as exc:
            raise NotLiteral(node.lineno, f"{_short(node)} has no value") from exc
        finally:
            self.depth -= 1

    def _value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._name(node, name, scope)
            case ast.List(elts=elts):
                return list(self._elements(elts, scope))
            case ast.Tuple(elts=elts):
                return tuple(self._elements(elts, scope))
            case ast.Set(elts=elts):
                return set(self._elements(elts, scope))
            case ast.Dict():
                return self._dict(node, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return _binary(op, self.value(left, scope), self.value(right, scope), node)
            case ast.UnaryOp(op=op, operand=operand):
                found = self.value(operand, scope)
                return not found if isinstance(op, ast.Not) else -found if isinstance(op, ast.USub) else found
            case ast.ListComp() | ast.GeneratorExp():
                return [self.value(node.elt, inner) for inner in self._scopes(node.generators, scope)]
            case ast.DictComp():
                pairs = self._scopes(node.generators, scope)
                return {self.value(node.key, s): self.value(node.value, s) for s in pairs}
        return self._decided(node, scope)

    def _decided(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        """Conditions, parts of other values, and calls."""
        match node:
            case ast.BoolOp(op=op, values=values):
                return self._bool(op, values, scope)
            case ast.Compare():
                return self._compare(node, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self._test(test, scope) else orelse, scope)
            case ast.Subscript(value=value, slice=key):
                return self._subscript(value, key, scope)
            case ast.Attribute(value=value, attr=attr):
                return self._attribute(node, self.value(value, scope), attr)
            case ast.Call():
                return self._call(node, scope)
        raise NotLiteral(node.lineno, f"{_short(node)} is not evaluated")

    def _name(self, node: ast.Name, name: str, scope: dict[str, Any]) -> Any:
        if name in scope:
            return scope[name]
        found = self.module.named(name)
        if found is None:
            raise NotLiteral(node.lineno, f"{name} is not known here")
        return self.value(found, {})

    def _elements(self, elts: Iterable[ast.expr], scope: dict[str, Any]) -> Iterator[Any]:
        for elt in elts:
            if isinstance(elt, ast.Starred):
                yield from self.value(elt.value, scope)
            else:
                yield self.value(elt, scope)

    def _dict(self, node: ast.Dict, scope: dict[str, Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found |= self.value(value, scope)
            else:
                found[self.value(key, scope)] = self.value(value, scope)
        return found

    def _bool(self, op: ast.boolop, values: Iterable[ast.expr], scope: dict[str, Any]) -> Any:
        found: Any = None
        for value in values:
            found = self.value(value, scope)
            if bool(found) is isinstance(op, ast.Or):
                break
        return found

    def _compare(self, node: ast.Compare, scope: dict[str, Any]) -> bool:
        if "os.environ" in ast.unparse(node.comparators[-1]) and isinstance(node.ops[0], ast.In | ast.NotIn):
            self.module.assume(node, "environment variables are taken to be unset")
            return isinstance(node.ops[0], ast.NotIn)
        left = self.value(node.left, scope)
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other, scope)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _test(self, node: ast.expr, scope: dict[str, Any]) -> bool:
        """The truth of a condition; one that only a running program knows is taken to be true, and noted."""
        try:
            return bool(self.value(node, scope))
        except NotLiteral:
            self.module.assume(node, f"{_short(node)} is taken to be true")
            return True

    def _scopes(self, generators: list[ast.comprehension], scope: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if not generators:
            yield scope
            return
        first, *rest = generators
        for item in _items(self.value(first.iter, scope), first.iter):
            self.module.count(first.iter)
            inner = {**scope}
            _bind(first.target, item, inner)
            if all(self.value(test, inner) for test in first.ifs):
                yield from self._scopes(rest, inner)

    def _subscript(self, value: ast.expr, key: ast.expr, scope: dict[str, Any]) -> Any:
        if isinstance(key, ast.Slice):
            bounds = [None if b is None else self.value(b, scope) for b in (key.lower, key.upper, key.step)]
            return self.value(value, scope)[slice(*bounds)]
        return self.value(value, scope)[self.value(key, scope)]

    def _attribute(self, node: ast.expr, value: Any, attr: str) -> Any:
        if isinstance(value, Config):
            return value.kwargs if attr == "kwargs" else value.options[attr]
        if attr == "value" and isinstance(value, bool | int | float | str):
            return value  # of a tl.constexpr
        raise NotLiteral(node.lineno, f"{_short(node)} is not evaluated")

    # Calls

    def _call(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        name = last_name(node.func)
        if name == "Config":
            return self._config(node, scope)
        if isinstance(node.func, ast.Attribute) and name in ("get", "items", "keys", "values", "copy"):
            if name == "get" and ast.unparse(node.func.value) == "os.environ":
                name = "getenv"
            else:
                owner = self.value(node.func.value, scope)
                if isinstance(owner, dict | list):
                    return getattr(owner, name)(*self._elements(node.args, scope))
        if name == "getenv":
            self.module.assume(node, "environment variables are taken to be unset")
            return self.value(node.args[1], scope) if len(node.args) > 1 else None
        if name in self.module.functions and isinstance(node.func, ast.Name):
            return self._function(self.module.functions[name], node, scope)
        if name.startswith(("is_hip", "is_cuda")):
            self.module.assume(node, f"{name}() is taken to be {name.startswith('is_cuda')}")
            return name.startswith("is_cuda")
        return self._builtin(name, node, scope)

    def _builtin(self, name: str, node: ast.Call, scope: dict[str, Any]) -> Any:
        if name == "filter" and len(node.args) == 2:
            return self._filtered(node, scope)
        args = list(self._elements(node.args, scope))
        keywords = {k.arg: self.value(k.value, scope) for k in node.keywords if k.arg}
        if name == "range" and not keywords and 0 < len(args) <= 3:
            return list(_items(range(*args), node))
        if name == "product" and 0 <= keywords.get("repeat", 1) <= _MOST_REPEATS:
            return list(_items(itertools.product(*args, repeat=keywords.get("repeat", 1)), node))
        if name in ("zip", "enumerate"):
            return list(zip(*args, strict=False)) if name == "zip" else list(enumerate(*args))
        if name in _SIMPLE:
            return _SIMPLE[name](*args, **keywords)
        raise NotLiteral(node.lineno, f"{_short(node)} is not evaluated")

    def _config(self, node: ast.Call, scope: dict[str, Any]) -> Config:
        given: dict[str, Any] = {}
        for keyword in node.keywords:
            found = self.value(keyword.value, scope)
            given |= found if keyword.arg is None else {keyword.arg: found}
        args = list(self._elements(node.args, scope))
        given |= dict(zip(("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg"), args, strict=False))
        kwargs = given.pop("kwargs", {})
        given.pop("pre_hook", None)
        return Config(dict(kwargs), given, node.lineno)

    def _filtered(self, node: ast.Call, scope: dict[str, Any]) -> list[Any]:
        items = list(self.value(node.args[1], scope))
        test = node.args[0]
        if isinstance(test, ast.Name) and test.id in self.module.functions:
            function = self.module.functions[test.id]
            try:
                return [item for item in items if self._run(function, {function.args.args[0].arg: item})]
            except NotLiteral as exc:
                self.module.assume(node, f"the filter {test.id} is left out ({exc})")
                return items
        if isinstance(test, ast.Lambda) and len(test.args.args) == 1:
            return [i for i in items if self.value(test.body, {**scope, test.args.args[0].arg: i})]
        raise NotLiteral(node.lineno, f"{_short(node)} is not evaluated")

    def _function(self, function: ast.FunctionDef, node: ast.Call, scope: dict[str, Any]) -> Any:
        if function.name.startswith(("is_hip", "is_cuda")):
            self.module.assume(
                node, f"{function.name}() is {function.name.startswith('is_cuda')} on CUDA devices"
            )
            return function.name.startswith("is_cuda")
        names = [a.arg for a in function.args.args]
        given: dict[str, Any] = {}
        for argument, default in zip(reversed(names), reversed(function.args.defaults), strict=False):
            given[argument] = self.value(default, {})
        given |= dict(zip(names, self._elements(node.args, scope), strict=False))
        given |= {k.arg: self.value(k.value, scope) for k in node.keywords if k.arg}
        return self._run(function, given)

    def _run(self, function: ast.FunctionDef, scope: dict[str, Any]) -> Any:
        self.depth += 3
        try:
            self._body(function.body, scope)
        except _Return as found:
            return found.value
        finally:
            self.depth -= 3
        return None

    def _body(self, body: Iterable[ast.stmt], scope: dict[str, Any]) -> None:
        for statement in body:
            self.module.count(statement)
            match statement:
                case ast.Return(value=value):
                    raise _Return(None if value is None else self.value(value, scope))
                case ast.Assign(targets=[target], value=value):
                    _bind(target, self.value(value, scope), scope)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    _bind(target, self.value(value, scope), scope)
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                    scope[name] = _binary(op, scope[name], self.value(value, scope), value)
                case ast.If(test=test, body=inner, orelse=other):
                    self._body(inner if self._test(test, scope) else other, scope)
                case ast.For(target=target, iter=items, body=inner, orelse=[]):
                    self._loop(target, items, inner, scope)
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(value=owner, attr="append" | "extend" as how), args=[item]
                    )
                ):
                    found, added = self.value(owner, scope), self.value(item, scope)
                    new = list(_items(added, item)) if how == "extend" else [added]
                    if len(found) + len(new) > _MOST_ITEMS:
                        raise NotLiteral(item.lineno, f"has more than {_MOST_ITEMS} elements")
                    found.extend(new)
                case ast.Continue():
                    raise _Continue
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    continue
                case _:
                    raise NotLiteral(statement.lineno, f"{_short(statement)} is not evaluated")

    def _loop(
        self, target: ast.expr, items: ast.expr, body: Iterable[ast.stmt], scope: dict[str, Any]
    ) -> None:
        for item in _items(self.value(items, scope), items):
            _bind(target, item, scope)
            try:
                self._body(body, scope)
            except _Continue:
                continue


def _items(found: Any, node: ast.AST) -> Iterator[Any]:
    for count, item in enumerate(found):
        if count >= _MOST_ITEMS:
            raise NotLiteral(getattr(node, "lineno", 0), f"has more than {_MOST_ITEMS} elements")
        yield item


def _bind(target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
    match target:
        case ast.Name(id=name):
            scope[name] = value
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            for part, item in zip(elts, value, strict=True):
                _bind(part, item, scope)
        case _:
            raise NotLiteral(target.lineno, f"{_short(target)} is not evaluated")


def _binary(op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    line = getattr(node, "lineno", 0)
    if type(op) not in _BINARY:
        raise NotLiteral(line, "has an operator that is not evaluated")
    if isinstance(op, ast.Pow | ast.LShift) and not (isinstance(right, int) and abs(right) <= _MOST_BITS):
        raise NotLiteral(line, "has too large an exponent")
    long = [len(x) for x in (left, right) if isinstance(x, str | bytes | list | tuple)]
    times = [x for x in (left, right) if isinstance(x, int)]
    if isinstance(op, ast.Mult) and long and times and long[0] * abs(times[0]) > _MOST_ITEMS:
        raise NotLiteral(line, f"has more than {_MOST_ITEMS} elements")
    if isinstance(op, ast.Mod) and isinstance(left, str):
        raise NotLiteral(line, "formats a text")
    try:
        found = _BINARY[type(op)](left, right)
    except (TypeError, ValueError, ArithmeticError) as exc:
        raise NotLiteral(line, "has no value") from exc
    if isinstance(found, int) and abs(found) > 2**_MOST_BITS:
        raise NotLiteral(line, "is too large a number")
    if isinstance(found, list | tuple | str | bytes) and len(found) > _MOST_ITEMS:
        raise NotLiteral(line, f"has more than {_MOST_ITEMS} elements")
    return found


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
