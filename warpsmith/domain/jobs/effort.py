"""Upper bound on the work of checking a job's expressions, known before any of them is evaluated."""

from collections.abc import Iterable, Iterator

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.arguments.field import Field
from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.kernel import Kernel

MAX_PARTS = 400_000
"""Limit on the parts of expressions that checking a job evaluates, over all workloads."""
_EACH = 3
"""Cost of an expression beside that of its parts, in parts."""


def check_effort(kernel: Kernel, others: Iterable[Expression], workloads: int) -> None:
    """Check that all expressions can be evaluated for all workloads within about a second.

    Raises:
        ValueError: they cannot; the message names the field.
    """
    most = MAX_PARTS // workloads
    parts = 0
    for expression in (*_of_kernel(kernel), *others):
        parts += _EACH + expression.parts
        if parts > most:
            raise ValueError(
                f"workloads: {workloads} of them with more than {most} parts of expressions each "
                f"are more than can be checked ({MAX_PARTS}); list fewer workloads, or shorter expressions"
            )


def _of_kernel(kernel: Kernel) -> Iterator[Expression]:
    for _, launch in kernel.placed_launches():
        yield from (*launch.grid, *launch.block, *launch.cluster, launch.shared_bytes)
    for argument in kernel.declared:
        yield from _of_argument(argument)


def _of_argument(argument: Argument) -> Iterator[Expression]:
    yield from argument.shape
    if argument.kept is not None:
        yield argument.kept
    yield from _of_field(argument)
    for field in argument.fields:
        yield from _of_nested(field)
    if argument.draw is not None:
        bounds = (argument.draw.low, argument.draw.high, argument.draw.least)
        yield from (b for b in bounds if isinstance(b, Expression))


def _of_nested(field: Field) -> Iterator[Expression]:
    waiting = [field]
    while waiting:
        inner = waiting.pop()
        yield from _of_field(inner)
        waiting += inner.fields


def _of_field(field: Argument | Field) -> Iterator[Expression]:
    yield from (field.offset, field.step, *field.values)
    if field.value is not None:
        yield field.value
    if isinstance(field.to, tuple):
        # Each address that is listed is checked by itself.
        yield from (field.offset for _ in field.to)
