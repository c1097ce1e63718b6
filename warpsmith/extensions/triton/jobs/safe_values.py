"""Values that a Triton file writes out as literals, such as lists of configurations; nothing of it is run."""

import ast
from dataclasses import dataclass, replace
from typing import Any

from warpsmith.extensions.scaffold.python_text.evaluator import (
    Evaluator,
    Names,
    NotLiteral,
    called_name,
    shown,
)

_POSITIONS = ("kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg")
_PLATFORM = ("is_hip", "is_cuda")


@dataclass(frozen=True)
class Config:
    """A `triton.Config`."""

    kwargs: dict[str, Any]
    options: dict[str, Any]
    """`num_warps`, `num_stages` and the others that the call names."""
    line: int
    hook: ast.expr | None = None
    """Its `pre_hook`."""


class Module(Evaluator):
    """A file's module-level names, and its functions.

    Attributes:
        remarks: assumptions that an evaluation made.
    """

    def __init__(self, tree: ast.Module) -> None:
        functions: dict[str, ast.FunctionDef] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, node)
        super().__init__(functions)
        self.remarks: list[str] = []
        self._values: dict[str, ast.expr] = {}
        for statement in tree.body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    self._values[name] = value

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression at module level.

        Raises:
            NotLiteral: a part of it is outside of the language.
        """
        self.steps = 0
        try:
            return self.value(node, {})
        except RecursionError as exc:
            raise NotLiteral(node.lineno, "is nested too deeply") from exc

    def known(self, node: ast.expr) -> Any:
        """The value of an expression at module level; None if it is not evaluated."""
        try:
            return self.evaluate(node)
        except NotLiteral:
            return None

    def assigned(self, name: str) -> ast.expr | None:
        """The expression that a module-level name is assigned once, or last; None for other names."""
        return self._values.get(name)

    def assume(self, node: ast.AST, words: str) -> None:
        """Note an assumption, with its line."""
        text = f"line {getattr(node, 'lineno', 0)}: {words}"
        if text not in self.remarks:
            self.remarks.append(text)

    def test(self, node: ast.expr, scope: Names) -> bool:
        """The truth of a condition; one that only a running program knows is taken to be true, and noted."""
        try:
            return super().test(node, scope)
        except NotLiteral:
            self.assume(node, f"{shown(node)} is taken to be true")
            return True

    def _of_Name(self, node: ast.Name, scope: Names) -> Any:
        found = self.assigned(node.id)
        return super()._of_Name(node, scope) if node.id in scope or found is None else self.value(found, {})

    def _of_Compare(self, node: ast.Compare, scope: Names) -> Any:
        if "os.environ" in ast.unparse(node.comparators[-1]) and isinstance(node.ops[0], ast.In | ast.NotIn):
            self.assume(node, "environment variables are taken to be unset")
            return isinstance(node.ops[0], ast.NotIn)
        return super()._of_Compare(node, scope)

    def _of_Attribute(self, node: ast.Attribute, scope: Names) -> Any:
        value = self.value(node.value, scope)
        if isinstance(value, Config):
            return value.kwargs if node.attr == "kwargs" else value.options[node.attr]
        if node.attr == "value" and isinstance(value, bool | int | float | str):
            return value  # of a tl.constexpr
        return self.unread(node, scope)

    def _of_Call(self, node: ast.Call, scope: Names) -> Any:
        name = called_name(node)
        if name == "getenv" or (name == "get" and ast.unparse(node.func) == "os.environ.get"):
            self.assume(node, "environment variables are taken to be unset")
            return self.value(node.args[1], scope) if len(node.args) > 1 else None
        if name.startswith(_PLATFORM):
            is_cuda = name.startswith("is_cuda")
            own = name in self.functions and isinstance(node.func, ast.Name)
            self.assume(
                node, f"{name}() is {f'{is_cuda} on CUDA devices' if own else f'taken to be {is_cuda}'}"
            )
            return is_cuda
        if name == "Config":
            return self._config(node, scope)
        if name == "filter" and len(node.args) == 2:
            return self._filtered(node, scope)
        return super()._of_Call(node, scope)

    def function(self, node: ast.Call, owner: Any, arguments: Any, keywords: Names) -> Any:
        """The value of a call of a function that the file does not define: one of Python, or a `Config`."""
        if called_name(node) != "Config":
            return super().function(node, owner, arguments, keywords)
        given = keywords | dict(zip(_POSITIONS, arguments, strict=False))
        kwargs = given.pop("kwargs", {})
        return Config(dict(kwargs), given, node.lineno)

    def _config(self, node: ast.Call, scope: Names) -> Any:
        """A `Config` with its hook, which is no value."""
        hooks = [k.value for k in node.keywords if k.arg == "pre_hook"]
        given = [k for k in node.keywords if k.arg != "pre_hook"]
        found = super()._of_Call(ast.copy_location(ast.Call(node.func, node.args, given), node), scope)
        known = [h for h in hooks if not (isinstance(h, ast.Name) and scope.get(h.id, h) is None)]
        return replace(found, hook=known[0]) if known and isinstance(found, Config) else found

    def _filtered(self, node: ast.Call, scope: Names) -> list[Any]:
        items = list(self.value(node.args[1], scope))
        match node.args[0]:
            case ast.Name(id=name) if name in self.functions:
                function = self.functions[name]
                try:
                    return [i for i in items if self.result(function, {function.args.args[0].arg: i})]
                except NotLiteral as exc:
                    self.assume(node, f"the filter {name} is left out ({exc})")
                    return items
            case ast.Lambda(args=ast.arguments(args=[only]), body=body):
                return [i for i in items if self.value(body, {**scope, only.arg: i})]
        self.unread(node, scope)
        return []
