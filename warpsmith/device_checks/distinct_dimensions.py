"""Small dimensions of which no two are equal, so that a shape with two of them swapped is another one."""

import ast
from collections.abc import Iterator, Mapping

from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.templates.space import holds
from warpsmith.errors import ExpressionError

LEAST_VARIED = 32
"""Dimensions below it (heads, channels, a filter's width) are kept: kernels are often written for them."""
_STEPS = (1, 2, 4, 8, 16, 32, 64, 128)


def distinct_dimensions(job: Job, own: Workload, most: int) -> dict[str, int] | None:
    """Dimensions up to `most`, different from each other, that divide without rest where the workload's do
    and meet the constraints that it meets; None if none were found."""
    varied = [name for name, size in own.dimensions.items() if size >= LEAST_VARIED]
    if len(varied) < 2:
        return None
    for step in _STEPS:
        sizes = dict(own.dimensions)
        for name, size in zip(varied, _sizes(most, step), strict=False):
            sizes[name] = size
        new = [sizes[name] for name in varied]
        if len(set(new)) == len(varied) and _is_alike(job, own.dimensions, sizes):
            return sizes
    return None


def _sizes(most: int, step: int) -> Iterator[int]:
    """Multiples of a step, the largest first, whose factors are primes: 251, 241, 239 for 256 and 1."""
    for factor in range(most // step, 1, -1):
        if all(factor % d for d in range(2, int(factor**0.5) + 1)):
            yield factor * step


def _is_alike(job: Job, own: Mapping[str, int], new: Mapping[str, int]) -> bool:
    """True if divisions without rest stay so with the new dimensions, and constraints that hold still do."""
    before: Mapping[str, Value] = {**job.space.defaults, **own}
    after: Mapping[str, Value] = {**job.space.defaults, **new}
    if any(holds((c,), before) and not holds((c,), after) for c in job.space.constraints):
        return False
    return not any(_rest(*sides, before) == 0 != _rest(*sides, after) for sides in _divisions(job))


def _rest(dividend: Expression, divisor: Expression, scope: Mapping[str, Value]) -> int:
    try:
        return dividend.integer(scope) % (divisor.integer(scope) or 1)
    except ExpressionError:
        return -1


def _divisions(job: Job) -> Iterator[tuple[Expression, Expression]]:
    """The two sides of every division in the job's shapes, values and launches."""
    kernel = job.kernel
    texts = [e for a in kernel.declared for e in (*a.shape, *a.values, *([a.value] if a.value else []))]
    for _, launch in kernel.placed_launches():
        texts += [*launch.grid, *launch.block]
    for text in texts:
        for node in ast.walk(text.tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Div):
                yield Expression(ast.unparse(node.left)), Expression(ast.unparse(node.right))
