"""Launches of a kernel in the host code of its own file."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from warpsmith.domain.kernels.triton_function import TritonFunction, last_name
from warpsmith.extensions.triton.jobs.host_values import Extents, HostNames, HostTensor, Value, atom

_MOST_AXES = 3


@dataclass
class TritonLaunch:
    """Launch of a kernel in host code, `kernel[grid](...)`."""

    line: int
    grid: tuple[ast.expr, ...] | None
    """Over atoms and `META.NAME`; None if it is not understood."""
    given: dict[str, Value | None]
    """Values that the call passes, by parameter of the kernel or launch option; None: not understood."""
    texts: dict[str, str]
    """Texts of the passed values in the call, by the names of `given`."""
    scope: HostNames
    constants: dict[str, ast.expr] = field(default_factory=dict)
    """Literals and types that the call passes."""

    @property
    def understood(self) -> int:
        """The number of values that are understood."""
        return (self.grid is not None) * 100 + sum(v is not None for v in self.given.values())


def host_launches(tree: ast.Module, function: TritonFunction) -> tuple[TritonLaunch, ...]:
    """The launches of a kernel in its file, those first of which most is understood."""
    found: list[TritonLaunch] = []
    for body, arguments in _bodies(tree):
        walk = _Walk(function, HostNames())
        walk.body(s for s in tree.body if _is_literal(s))
        walk.enter(arguments)
        walk.body(body)
        found += walk.found
    return tuple(sorted(found, key=lambda launch: -launch.understood))


def _bodies(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], ast.arguments | None]]:
    yield tree.body, None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not any(
            "jit" in ast.unparse(d) for d in node.decorator_list
        ):
            yield node.body, node.args


@dataclass
class _Walk:
    function: TritonFunction
    scope: HostNames
    found: list[TritonLaunch] = field(default_factory=list)
    grids: dict[str, ast.expr] = field(default_factory=dict)

    def enter(self, arguments: ast.arguments | None) -> None:
        if arguments is None:
            return
        given = [*arguments.posonlyargs, *arguments.args]
        pairs = zip(reversed(given), reversed(arguments.defaults), strict=False)
        self.scope.defaults |= {a.arg: d for a, d in pairs}
        keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        self.scope.defaults |= {a.arg: d for a, d in keywords if d is not None}
        for argument in (*given, *arguments.kwonlyargs):
            self.scope.values[argument.arg] = atom(argument.arg)

    def body(self, statements: Iterable[ast.stmt], is_sure: bool = True) -> None:
        for statement in statements:
            match statement:
                case ast.FunctionDef(name=name):
                    if (grid := _returned(statement)) is not None:
                        self.grids[name] = grid
                case ast.ClassDef():
                    continue
                case (
                    ast.If(body=inner, orelse=other)
                    | ast.For(body=inner, orelse=other)
                    | ast.While(body=inner, orelse=other)
                ):
                    self.body(inner, False)
                    self.body(other, False)
                case ast.With(body=inner) | ast.Try(body=inner):
                    self.body(inner, is_sure)
                case ast.Assign(targets=targets, value=value):
                    self._calls(statement)
                    for target in targets:
                        self._assign(target, value, is_sure)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._calls(statement)
                    self._assign(target, value, is_sure)
                case ast.AugAssign(target=ast.Name(id=name)):
                    self.scope.values.pop(name, None)
                case ast.Assert(test=test):
                    self._equal(test)
                case _:
                    self._calls(statement)

    def _assign(self, target: ast.expr, value: ast.expr, is_sure: bool) -> None:
        match target, value:
            case ast.Name(id=name), ast.Lambda():
                self.grids[name] = value
                self.scope.values.pop(name, None)
            case ast.Name(id=name), _:
                if isinstance(value, ast.Tuple | ast.List):
                    self.grids[name] = value
                self._bind(name, self.scope.value(value), is_sure)
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                found = [self.scope.value(v) for v in values]
                for part, item in zip(names, found, strict=True):
                    if isinstance(part, ast.Name):
                        self._bind(part.id, item, is_sure)
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if (
                parts := self.scope.unpacked(len(names), values)
            ) is not None:
                for place, extent in zip(names, parts, strict=True):
                    if isinstance(place, ast.Name):
                        self._bind(place.id, extent, is_sure)
            case ast.Tuple(elts=names) | ast.List(elts=names), _:
                self._unpack(names, self.scope.value(value), is_sure)

    def _bind(self, name: str, found: Value | None, is_sure: bool) -> None:
        if not is_sure and name in self.scope.values and not isinstance(found, HostTensor):
            return  # one branch of several: what holds without it is the better guess
        if found is None:
            self.scope.values.pop(name, None)
            return
        if isinstance(found, HostTensor):
            found = HostTensor(found.name or name, found.shape, found.dtype)
        if isinstance(found, ast.Name):
            self.scope.called.setdefault(self.scope.equal(found.id), name)
        elif isinstance(found, ast.expr):
            # A launch may pass the name, and a grid that uses it then follows the parameter.
            local = f"local.{name}.{len(self.scope.locals)}"
            self.scope.locals[local] = found
            found = atom(local)
        self.scope.values[name] = found

    def _unpack(self, names: list[ast.expr], found: Value | None, is_sure: bool) -> None:
        if names and isinstance(found, Extents) and isinstance(names[0], ast.Starred):
            names = names[1:]
            parts = [self.scope.part(found, n - len(names)) for n in range(len(names))]
        elif isinstance(found, Extents) and not any(isinstance(n, ast.Starred) for n in names):
            parts = [*self.scope.ranked(found, len(names))]
        else:
            parts = []
        known = [part for part in parts if part is not None]
        plain = [n.id if isinstance(n, ast.Name) else "" for n in names]
        if len(known) != len(names):
            for name in filter(None, plain):
                self.scope.values.pop(name, None)
            return
        self._bind_all(plain, known, is_sure)

    def _bind_all(self, names: list[str], parts: list[ast.expr], is_sure: bool) -> None:
        for name, part in zip(names, parts, strict=True):
            before = self.scope.values.get(name)
            if isinstance(before, ast.Name) and isinstance(part, ast.Name) and before.id != name:
                self.scope.join(before, part)  # a name that two shapes give is one size
            elif name:
                self._bind(name, part, is_sure)

    def _equal(self, test: ast.expr) -> None:
        for part in test.values if isinstance(test, ast.BoolOp) else [test]:
            match part:
                case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                    a, b = self.scope.number(left), self.scope.number(right)
                    if a is not None and b is not None:
                        self.scope.join(a, b)

    def _calls(self, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            match node:
                case ast.Call(func=ast.Subscript(value=owner, slice=grid)) if (
                    last_name(owner) == self.function.name
                ):
                    self.found.append(self._launch(node, grid))

    def _launch(self, call: ast.Call, grid: ast.expr) -> TritonLaunch:
        given: dict[str, ast.expr] = {}
        for parameter, argument in zip(self.function.parameters, call.args, strict=False):
            if isinstance(argument, ast.Starred):
                break
            given[parameter.name] = argument
        given |= {k.arg: k.value for k in call.keywords if k.arg}
        values = {name: self._passed(node) for name, node in given.items()}
        # A grid is a function of what the call passes, so both see the same names.
        return TritonLaunch(
            call.lineno,
            self._grid(grid),
            values,
            {name: " ".join(ast.unparse(node).split()) for name, node in given.items()},
            self.scope,
            {n: v for n, v in given.items() if isinstance(v, ast.Constant) or _is_type(v)},
        )

    def _passed(self, node: ast.expr) -> Value | None:
        if isinstance(node, ast.Name) and isinstance(
            found := self.scope.values.get(node.id), ast.expr | HostTensor
        ):
            return (
                HostTensor(found.name, found.shape, found.dtype) if isinstance(found, HostTensor) else found
            )
        return self.scope.value(node)

    def _grid(self, node: ast.expr) -> tuple[ast.expr, ...] | None:
        if isinstance(node, ast.Name) and node.id in self.grids:
            node = self.grids[node.id]
        if isinstance(node, ast.Lambda):
            node = node.body
        parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        found = [self.scope.number(p) for p in parts]
        known = [p for p in found if p is not None]
        return tuple(known) if 0 < len(known) == len(parts) <= _MOST_AXES else None


def _is_literal(statement: ast.stmt) -> bool:
    """True for the assignment of a number at module level."""
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant | ast.BinOp)


def _is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and last_name(node.value) in ("tl", "language")


def _returned(function: ast.FunctionDef) -> ast.expr | None:
    """The result of a function whose only result is a tuple."""
    found = [s.value for s in ast.walk(function) if isinstance(s, ast.Return)]
    return found[0] if len(found) == 1 and isinstance(found[0], ast.Tuple) else None


def passed_tensor(launch: TritonLaunch | None, name: str) -> HostTensor | None:
    """The tensor that a launch passes for a parameter."""
    found = None if launch is None else launch.given.get(name)
    return found if isinstance(found, HostTensor) else None
