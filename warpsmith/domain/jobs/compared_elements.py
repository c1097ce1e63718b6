"""Conditions for the elements of an output that are compared (`kept`): names, and checks at submission."""

from collections.abc import Mapping
from dataclasses import dataclass

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.expression_checks import DEVICE_NAMES, check_number
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.errors import ExpressionError


@dataclass(frozen=True)
class MaskPlan:
    """The condition of an output for one workload."""

    expression: Expression
    scope: tuple[tuple[str, Value], ...]
    """Values of the names that are numbers."""
    inputs: tuple[str, ...]
    """Names that are inputs. Their extents are the output's first ones, or 1."""


def index_names(rank: int) -> tuple[str, ...]:
    """Names of the indices of an output with so many extents, slowest first."""
    return tuple(f"i{axis}" for axis in range(rank))


def mask_plan(kernel: Kernel, argument: Argument, names: Mapping[str, Value]) -> MaskPlan | None:
    """The condition of an output in numbers; None if all its elements count.

    Args:
        names: dimensions, and what else shapes may name.

    Raises:
        ExpressionError: a name is unknown or stands for two things, or an input's extents do not fit.
    """
    if argument.kept is None:
        return None
    expression, used = argument.kept, argument.kept.names
    indices = index_names(len(argument.shape))
    masks = {a.name: a for a in kernel.declared if _may_say(a)}
    for name in sorted(used):
        meanings = [
            *(["an index"] if name in indices else []),
            *(["a dimension or parameter"] if name in names else []),
            *(["an input"] if name in masks else []),
        ]
        if len(meanings) > 1:
            words = f"{name!r} is {' and '.join(meanings)}; rename one"
            raise ExpressionError(expression.text, words)
        if not meanings:
            raise ExpressionError(expression.text, _unknown(name, indices, names, masks))
    inputs = tuple(sorted(used & masks.keys()))
    for name in inputs:
        _check_extents(expression, argument, masks[name], names)
    scope = tuple(sorted((n, names[n]) for n in used & names.keys()))
    return MaskPlan(expression, scope, inputs)


def check_mask(
    kernel: Kernel, argument: Argument, where: str, scope: Mapping[str, Value], workload: int
) -> None:
    """Check that the condition of an output can be evaluated. What names the device is skipped.

    Raises:
        ValueError: it cannot; the message names the field, which begins with `where`.
    """
    if argument.kept is None:
        return
    used = argument.kept.names
    shapes = [e for a in kernel.declared if a is argument or a.name in used for e in a.shape]
    if (used & DEVICE_NAMES) or any(e.names & DEVICE_NAMES for e in shapes):
        return
    try:
        plan = mask_plan(kernel, argument, scope)
    except ExpressionError as exc:
        raise ValueError(f"{where}.kept: {exc.message} (workload {workload})") from exc
    assert plan is not None
    # One element is as good as any for whether all parts are numbers.
    element = dict.fromkeys((*index_names(len(argument.shape)), *plan.inputs), 1)
    check_number(f"{where}.kept", argument.kept, {**scope, **element}, workload)


def _may_say(argument: Argument) -> bool:
    """True if a condition may name an argument: an input of integers or bool, which no kernel writes."""
    return argument.role is Role.INPUT and not argument.dtype.is_float and argument.image is None


def _unknown(
    name: str, indices: tuple[str, ...], names: Mapping[str, Value], masks: Mapping[str, Argument]
) -> str:
    numbers = sorted(n for n in names if n not in DEVICE_NAMES)
    may = f"indices {', '.join(indices)}; dimensions {', '.join(numbers)}"
    if masks:
        may += f"; inputs {', '.join(sorted(masks))}"
    return (
        f"unknown name {name!r} (known: {may}; an input here has the role input and holds integers or bool)"
    )


def _check_extents(
    expression: Expression, output: Argument, mask: Argument, names: Mapping[str, Value]
) -> None:
    extents = [e.integer(names) for e in mask.shape]
    first = [e.integer(names) for e in output.shape][: len(extents)]
    if len(extents) == len(first) and all(m in (1, e) for m, e in zip(extents, first, strict=True)):
        return
    words = f"{mask.name} has the extents {extents}; needed are the first of {output.name}, {first}, or 1"
    raise ExpressionError(expression.text, words)
