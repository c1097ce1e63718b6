"""The decorator `triton.autotune` of a function as a search space.

The words are those of Triton 3 (its documentation, "triton.autotune" and "triton.Config").
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpsmith.domain.kernels.triton_function import TritonFunction, last_name
from warpsmith.extensions.scaffold.python_text.evaluator import NotLiteral, shown
from warpsmith.extensions.triton.jobs.pruning import Condition, pruning_conditions
from warpsmith.extensions.triton.jobs.safe_values import Config, Module
from warpsmith.extensions.triton.jobs.zeroing_hooks import zeroed_by

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Launch options that a job may tune."""
OPTION_DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
"""Values of Triton for options that a configuration leaves out."""
_POSITIONS = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook", "post_hook")
_HOOKS = ("pre_hook", "post_hook")
_MOST_VALUES = 64
"""Limit on the values of one parameter."""


@dataclass(frozen=True)
class TunedParameter:
    """A parameter of the space."""

    name: str
    values: tuple[Any, ...]
    """Distinct, numbers in their order."""
    default: Any


@dataclass(frozen=True)
class Autotune:
    """Search space and notes from the `triton.autotune` of a function."""

    line: int
    """From 1; that of the decorator. 0 if there is none."""
    tunables: tuple[TunedParameter, ...] = ()
    fixed: dict[str, Any] = field(default_factory=dict)
    """Values that every configuration gives and that no space can have: None and texts."""
    mutated: frozenset[str] = frozenset()
    """Parameters that it resets or restores between runs: the kernel reads and writes them."""
    zeroed: frozenset[str] = frozenset()
    """Those among them that are zero before a run."""
    conditions: tuple[Condition, ...] = ()
    remarks: tuple[str, ...] = ()
    """Facts for comments."""
    problems: tuple[str, ...] = ()
    """Parts of the decorator that are not understood, with lines."""


def read_autotune(function: TritonFunction, module: Module) -> Autotune:
    """The space of a function; without tunables if it has no such decorator or none that can be read."""
    found = next((d for d in function.decorators if _is_autotune(d)), None)
    if not isinstance(found, ast.Call):
        return Autotune(0)
    given = dict(zip(_POSITIONS, found.args, strict=False))
    given |= {k.arg: k.value for k in found.keywords if k.arg}
    module.remarks.clear()
    problems: list[str] = []
    configs = _configs(given.get("configs"), found, module, problems)
    names = {p.name for p in function.parameters if p.is_constexpr}
    tunables, fixed = _space(configs, names, problems)
    conditions, remarks = _pruned(given.get("prune_configs_by"), module, problems)
    zeroed, restored = (
        set(_words(given.get(name), name, module, problems)) for name in ("reset_to_zero", "restore_value")
    )
    hooks = (*(given.get(name) for name in _HOOKS), *(c.hook for c in configs))
    zeroed |= set(_hooked(hooks, module, problems))
    own = {p.name for p in function.parameters}
    problems += (f"{name}, which the decorator resets, is no parameter" for name in sorted(zeroed - own))
    return Autotune(
        found.lineno,
        tuple(tunables),
        fixed,
        frozenset(zeroed | restored),
        frozenset(zeroed),
        tuple(conditions),
        (*module.remarks, *_partial(configs, tunables), *remarks),
        tuple(problems),
    )


def _is_autotune(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func).endswith("autotune")


def _configs(node: ast.expr | None, call: ast.Call, module: Module, problems: list[str]) -> list[Config]:
    if node is None:
        problems.append(f"line {call.lineno}: the configurations of the decorator are not found")
        return []
    try:
        found = module.evaluate(node)
    except NotLiteral as exc:
        problems.append(f"{exc} (a part of the configurations of line {call.lineno})")
        return _readable(node, module)
    return [c for c in found if isinstance(c, Config)] if isinstance(found, list | tuple) else []


def _readable(node: ast.expr, module: Module) -> list[Config]:
    """The configurations of a list that can be evaluated, without the others."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else ()
    return [found for part in parts if isinstance(found := module.known(part), Config)]


def _space(
    configs: Sequence[Config], names: set[str], problems: list[str]
) -> tuple[list[TunedParameter], dict[str, Any]]:
    tunables: list[TunedParameter] = []
    fixed: dict[str, Any] = {}
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for c in configs for name in (*c.kwargs, *c.options)):
        missing = OPTION_DEFAULTS.get(name)
        columns[name] = [c.kwargs.get(name, c.options.get(name, missing)) for c in configs]
    for name, column in columns.items():
        if name not in names and name not in OPTIONS:
            problems.append(
                f"line {configs[0].line}: {name} of the configurations is no tl.constexpr parameter"
            )
        elif any(map(_may_be_searched, column)):
            tunables.append(_tunable(name, column, configs[0].line, problems))
        elif name in names:
            fixed[name] = column[0]
    return tunables, fixed


def _tunable(name: str, column: list[Any], line: int, problems: list[str]) -> TunedParameter:
    """A parameter with the values of all configurations that a space can have.

    Args:
        line: that of the first configuration, for messages.
    """
    values = _distinct(v for v in column if _may_be_searched(v))
    if len(values) < len(_distinct(column)):
        odd = next(v for v in column if not _may_be_searched(v))
        problems.append(f"line {line}: {name} is {odd!r} in some configurations, left out here")
    default = column[0] if _may_be_searched(column[0]) else values[0]
    if len(values) > _MOST_VALUES:
        problems.append(f"{name} has {len(values)} values; the first {_MOST_VALUES} are listed")
        values = [default, *(v for v in values if v != default)][:_MOST_VALUES]
    return TunedParameter(name, tuple(_ordered(values)), default)


def _may_be_searched(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (isinstance(value, str) and value.isidentifier())


def _distinct(values: Iterable[Any]) -> list[Any]:
    # True equals 1 in Python, but is a different value for a kernel.
    return [v for _, v in {(type(v), repr(v)): v for v in values}.items()]


def _ordered(values: list[Any]) -> list[Any]:
    return sorted(values) if len({isinstance(v, str) for v in values}) == 1 else values


def _partial(configs: Sequence[Config], tunables: Sequence[TunedParameter]) -> Iterator[str]:
    size = 1
    for tunable in tunables:
        size *= len(tunable.values)
    distinct = {tuple(sorted(map(repr, {**c.kwargs, **c.options}.items()))) for c in configs}
    if len(distinct) < size:
        yield (
            f"the list has {len(distinct)} of these {size} combinations; the search may take the others too, "
            "and its baseline is the list's first"
        )


def _pruned(node: ast.expr | None, module: Module, problems: list[str]) -> tuple[list[Condition], list[str]]:
    if node is None or _is_none(node):
        return [], []
    while isinstance(node, ast.Name) and (named := module.assigned(node.id)) is not None:
        node = named
    if not isinstance(node, ast.Dict):
        problems.append(f"line {node.lineno}: prune_configs_by is not read")
        return [], []
    conditions: list[Condition] = []
    remarks: list[str] = []
    for key, value in zip(node.keys, node.values, strict=True):
        word = key.value if isinstance(key, ast.Constant) else ""
        if word == "early_config_prune":
            found = pruning_conditions(value, module)
            conditions += found.conditions
            problems += found.problems
        elif word in ("perf_model", "top_k"):
            remarks.append(f"line {value.lineno}: {word} only orders what is tried, and is not taken over")
    return conditions, remarks


def _hooked(hooks: Iterable[ast.expr | None], module: Module, problems: list[str]) -> Iterator[str]:
    """Names of the parameters that hooks set to zero; a problem for each hook that does anything else."""
    for hook in {ast.unparse(h): h for h in hooks if h is not None and not _is_none(h)}.values():
        words = zeroed_by(hook, module)
        yield from words
        if not words:
            problems.append(f"line {hook.lineno}: the hook {shown(hook)} is not taken over")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _words(node: ast.expr | None, name: str, module: Module, problems: list[str]) -> Iterator[str]:
    """The texts of a list; a problem if it is not read."""
    found = [] if node is None or _is_none(node) else module.known(node)
    if not isinstance(found, list | tuple) or not all(isinstance(w, str) for w in found):
        problems.append(f"line {getattr(node, 'lineno', 0)}: {name} is not read")
    else:
        yield from found
