"""The `tl.constexpr` parameters of a function: which are tuned, and what the others are."""

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.triton_function import TritonFunction, TritonParameter, last_name
from warpsmith.extensions.scaffold.python_text.evaluator import NotLiteral
from warpsmith.extensions.triton.jobs.arithmetic import expression_text
from warpsmith.extensions.triton.jobs.autotune import OPTION_DEFAULTS, OPTIONS, Autotune, TunedParameter
from warpsmith.extensions.triton.jobs.dimensions import Dimensions
from warpsmith.extensions.triton.jobs.host_launch import TritonLaunch
from warpsmith.extensions.triton.jobs.host_values import HostTensor
from warpsmith.extensions.triton.jobs.name_guesses import around, is_size, is_switch, is_tile
from warpsmith.extensions.triton.jobs.pointer_uses import whole_rows
from warpsmith.extensions.triton.jobs.pruning import Heuristic
from warpsmith.extensions.triton.jobs.safe_values import Module

_USUAL_TILE = 64
_USUAL_GROUP = 8
_WARPS = (2, 4, 8)
_STAGES = (2, 3, 4)


@dataclass(frozen=True)
class FixedValue:
    """A `tl.constexpr` parameter with one value."""

    name: str
    text: str
    """Value in the words of a job file, without YAML's quotes."""
    comment: str = ""
    is_guess: bool = False


@dataclass
class ConstexprReader:
    """Values of a function's `tl.constexpr` parameters."""

    function: TritonFunction
    autotune: Autotune
    launch: TritonLaunch | None
    dimensions: Dimensions
    module: Module
    _tuned: set[str] = field(default_factory=set)
    _done: dict[str, FixedValue] = field(default_factory=dict)

    def tunables(self) -> tuple[list[TunedParameter], dict[str, str]]:
        """Parameters of the space, with comments on those that are proposed."""
        found = list(self.autotune.tunables)
        comments: dict[str, str] = {}
        known = {t.name for t in found} | self.autotune.fixed.keys()
        computed = self._computed() | self._rows().keys()
        for parameter in self._parameters():
            name = parameter.name
            if name in known or name in computed or not is_tile(name) or self._is_computed(name):
                continue
            given = self._constant(name, parameter)
            default = given or (_USUAL_GROUP if name.startswith("GROUP") else _USUAL_TILE)
            least = 1 if name.startswith("GROUP") else 16
            values = around(default, least) if default & (default - 1) == 0 else [default]
            found.append(TunedParameter(name, tuple(values), default))
            comments[name] = "powers of two around the file's own" if given else "a guess"
        if not self.autotune.tunables:
            for tunable in self._options():
                found.append(tunable)
                comments[tunable.name] = "a proposal"
        self._tuned = {t.name for t in found}
        return found, comments

    def fix_from_host(self) -> None:
        """Read the values that host code passes, so that other expressions may name them."""
        for parameter in self._parameters():
            if parameter.name not in self._tuned:
                found = self._from_host(parameter)
                if found is not None:
                    self._done[parameter.name] = found

    def fixed(self, heuristics: Sequence[Heuristic]) -> list[FixedValue]:
        """The values of the parameters that are not tuned, in the function's order."""
        computed = {h.name: h for h in heuristics}
        for name, value in self.autotune.fixed.items():
            self._done[name] = FixedValue(name, literal_text(value))
        for parameter in self._parameters():
            name = parameter.name
            if name in self._tuned or name in self.autotune.fixed:
                continue
            if name in computed:
                self._done[name] = self._of_heuristic(computed[name])
        order = [p for p in self._parameters() if p.name not in self._tuned]
        found = [self._done.get(p.name) or self._unknown(p) for p in order]
        return [f for f in found if f is not None]

    def _parameters(self) -> list[TritonParameter]:
        return [p for p in self.function.parameters if p.is_constexpr]

    def _rows(self) -> dict[str, str]:
        """Tiles that hold a whole row, with its size, where host code says no number."""
        found = whole_rows(self.function)
        plain = {p.name: p for p in self._parameters()}
        return {n: size for n, size in found.items() if n in plain and self._constant(n, plain[n]) is None}

    def _computed(self) -> set[str]:
        """Names that `triton.heuristics` computes."""
        found: set[str] = set()
        for decorator in self.function.decorators:
            if isinstance(decorator, ast.Call) and last_name(decorator.func) == "heuristics":
                for node in ast.walk(decorator):
                    if isinstance(node, ast.Dict):
                        found |= {str(k.value) for k in node.keys if isinstance(k, ast.Constant)}
        return found

    def _is_computed(self, name: str) -> bool:
        """True if host code passes arithmetic over sizes, which no search may change."""
        given = self.launch.given.get(name) if self.launch else None
        if not isinstance(given, ast.expr) or self.dimensions.constant(given) is not None:
            return False
        text = self._of_local(given)
        return isinstance(given, ast.Name) is False or (
            text is not None and not isinstance(text, ast.Constant)
        )

    def _of_local(self, given: ast.expr) -> ast.expr | None:
        scope = self.launch.scope if self.launch else None
        return scope.locals.get(given.id) if scope and isinstance(given, ast.Name) else None

    def _constant(self, name: str, parameter: TritonParameter) -> int | None:
        passed = self.launch.given.get(name) if self.launch else None
        if (given := _count(self.dimensions.constant(passed))) is not None:
            return given
        defaults = self.launch.scope.defaults if self.launch else {}
        if isinstance(passed, ast.Name) and (given := _count(defaults.get(passed.id))) is not None:
            return given
        text = parameter.default or ""
        return int(text) if text.isdecimal() and int(text) > 0 else None

    def _options(self) -> Iterator[TunedParameter]:
        loops = any(isinstance(n, ast.For | ast.While) for n in ast.walk(self.function.node))
        for name, usual in (("num_warps", _WARPS), ("num_stages", _STAGES)):
            given = self.dimensions.constant(self.launch.given.get(name)) if self.launch else None
            default = _count(given) or OPTION_DEFAULTS[name]
            if name == "num_stages" and not loops and given is None:
                continue  # stages are those of a loop
            yield TunedParameter(name, tuple(sorted({*usual, default})), default)

    def _from_host(self, parameter: TritonParameter) -> FixedValue | None:
        name = parameter.name
        if self.launch is None or name not in self.launch.texts:
            return None
        node = self.launch.constants.get(name)
        if node is not None and not isinstance(node, ast.Constant):
            return FixedValue(name, f"tl.{last_name(node)}")
        given, text = self.launch.given.get(name), self.launch.texts[name]
        constant = self.dimensions.constant(given)
        if constant is not None:
            return self._of_constant(name, constant)
        if isinstance(given, ast.Name):
            if given.id in self.launch.scope.defaults:
                return self._of_default(name, given.id)
            if given.id.isidentifier() and not is_size(name):
                return None  # a choice of whoever calls the host function
        tree = self.dimensions.tree_of_host(given) if isinstance(given, ast.expr) else None
        found = expression_text(tree)
        if tree is not None and found is not None:
            return self._of_tree(name, tree, found)
        return self._of_presence(name, text, isinstance(given, HostTensor))

    @staticmethod
    def _of_presence(name: str, text: str, is_tensor: bool) -> FixedValue | None:
        """A parameter that says if host code has a tensor; None for others."""
        if is_tensor or " is not None" in text or " is None" in text:
            value = "true" if is_tensor or " is not None" in text else "false"
            return FixedValue(name, value, f"the host passes {text}", True)
        return None

    def _of_tree(self, name: str, tree: ast.expr, text: str) -> FixedValue | None:
        """A parameter for which host code passes arithmetic; None if a part of it is a tuple."""
        assert self.launch is not None
        self._keep(name, tree)
        if any(isinstance(n, ast.Tuple) for n in ast.walk(tree)):
            return None
        return FixedValue(name, text, f"as line {self.launch.line} passes it")

    def _of_constant(self, name: str, constant: ast.Constant) -> FixedValue | None:
        if isinstance(constant.value, str) and not is_plain_text(constant.value):
            return None
        self._keep(name, constant)
        return FixedValue(name, literal_text(constant.value))

    def _of_default(self, name: str, host_name: str) -> FixedValue | None:
        assert self.launch is not None
        default = self.launch.scope.defaults[host_name]
        found = self._of_constant(name, default) if isinstance(default, ast.Constant) else None
        words = f"the default of {host_name} in host code"
        return None if found is None else FixedValue(name, found.text, words, True)

    def _keep(self, name: str, tree: ast.expr) -> None:
        if not (isinstance(tree, ast.Constant) and not isinstance(tree.value, bool | int | float)):
            self.dimensions.constexprs[name] = tree

    def _of_heuristic(self, heuristic: Heuristic) -> FixedValue:
        tree = self.dimensions.of_kernel(heuristic.tree)
        text = expression_text(tree)
        known = {*self.dimensions.names, *self.dimensions.tunables}
        if tree is not None and isinstance(tree, ast.Constant):
            return FixedValue(
                heuristic.name, literal_text(tree.value), f"as line {heuristic.line} computes it"
            )
        if tree is not None and text is not None and Expression(text).names <= known:
            self._keep(heuristic.name, tree)
            return FixedValue(heuristic.name, text, f"as line {heuristic.line} computes it")
        return FixedValue(heuristic.name, "false", f"line {heuristic.line}: {_short(heuristic.text)}", True)

    def _unknown(self, parameter: TritonParameter) -> FixedValue | None:
        name = parameter.name
        said = self.launch.texts.get(name, "") if self.launch else ""
        comment = f"the host passes {_short(said)}" if said else ""
        if name in (rows := self._rows()):
            tree = self.dimensions.of_kernel(ast.Name(rows[name], ast.Load()))
            if (text := expression_text(tree)) is not None:
                words = comment or f"the kernel takes all of {rows[name]} at once"
                return FixedValue(name, f"next_pow2({text})", words, True)
        if parameter.default is not None and (default := self._default(parameter.default)) is not None:
            is_literal = parameter.default[0] in "-0123456789'\"TFN"
            return None if is_literal and not said else FixedValue(name, default, comment, bool(said))
        low = name.lower()
        if "dtype" in low or low.endswith(("_type", "_ty")):
            return FixedValue(name, "tl.float32", comment, True)
        if is_switch(name) or not is_size(name):
            return FixedValue(name, "false", comment, True)
        dimension = self.dimensions.add(name)
        self.dimensions.constexprs[name] = ast.Name(dimension, ast.Load())
        return FixedValue(name, dimension, comment, True)

    def _default(self, text: str) -> str | None:
        """The default of a parameter as a job file writes it; None if it is not found in the file."""
        node = ast.parse(text, mode="eval").body
        if isinstance(node, ast.Attribute) and last_name(node.value) in ("tl", "language"):
            return f"tl.{node.attr}"
        try:
            found = self.module.evaluate(node)
        except NotLiteral:
            return None
        fits = found is None or isinstance(found, bool | int | float)
        return literal_text(found) if fits or (isinstance(found, str) and is_plain_text(found)) else None


def options_of(launch: TritonLaunch | None, autotune: Autotune, dimensions: Dimensions) -> Iterator[str]:
    """Launch options whose values only the host program knows."""
    for name in OPTIONS:
        if launch is None or name not in launch.texts or autotune.tunables:
            continue
        if dimensions.constant(launch.given.get(name)) is None:
            said = f"the host computes {name} ({_short(launch.texts[name])})"
            yield f"line {launch.line}: {said}; its values are a proposal"


def _count(node: ast.expr | None) -> int | None:
    """The number above 0 that a constant is; None for others."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int and value > 0 else None


def literal_text(value: object) -> str:
    """A literal of Python as a job file writes it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"'{value}'" if isinstance(value, str) else str(value)


def is_plain_text(text: str) -> bool:
    """True if a text can stand between the quotes of a job file."""
    return text.isprintable() and "'" not in text and "\\" not in text


def _short(text: str) -> str:
    return text if len(text) <= 70 else f"{text[:67]}..."
