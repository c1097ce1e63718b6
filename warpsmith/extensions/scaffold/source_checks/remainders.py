"""Finds grids that divide an extent and drop the remainder, such as `w // 16` for 650 columns."""

import ast
import re
from collections.abc import Iterator, Mapping

from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.source_text import code_of
from warpsmith.errors import ExpressionError
from warpsmith.job_files.finding import Finding

_STRIDES = re.compile(r"\bgridDim\b|\bget_global_size\b|\bget_num_groups\b|\bnum_blocks\b")
"""Words of a kernel that knows how many blocks there are, so that few may do the work of many."""
_MULTIPLES = (ast.Name, ast.Constant, ast.BinOp, ast.Mult, ast.Sub, ast.Load)
"""Parts of a dividend that is an extent. One with a sum may be rounded up: `(w + 15) // 16`."""


def remainder_findings(job: Job, scope: Mapping[str, Value]) -> Iterator[Finding]:
    """Warnings for each axis of a grid that leaves the rest of a division without a block.

    Args:
        scope: limits of a device by name.
    """
    text = "\n".join((job.kernel.source or "", *job.kernel.files.values()))
    if _STRIDES.search(code_of(text, characters=False)):
        return
    for n, extent in enumerate(job.kernel.launch.grid):
        for divided in _divisions(extent.tree):
            found = next((f for w in job.workloads if (f := _left(job, divided, w, scope))), "")
            if found:
                yield Finding(f"kernel.launch.grid.{n}", found, is_error=False)


def _divisions(node: ast.expr) -> Iterator[ast.BinOp]:
    """Divisions of extents that are factors of an expression."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "max":
        for argument in node.args:
            yield from _divisions(argument)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _divisions(node.left)
        yield from _divisions(node.right)
    elif (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.FloorDiv)
        and all(isinstance(part, _MULTIPLES) for part in ast.walk(node.left))
    ):
        yield node


def _left(job: Job, divided: ast.BinOp, workload: Workload, scope: Mapping[str, Value]) -> str:
    """Remainder of a division on a workload, in words; empty without one."""
    names = {**scope, **workload.scope(), **job.space.defaults}
    extent, step = ast.unparse(divided.left), ast.unparse(divided.right)
    try:
        whole, each = Expression(extent).integer(names), Expression(step).integer(names)
    except ExpressionError:
        return ""
    if each <= 0 or whole % each == 0:
        return ""
    return (
        f"{ast.unparse(divided)} drops a remainder: {whole % each} of {whole} are left to no block "
        f"({workload.key}), unless the kernel takes them elsewhere; ceil_div({extent}, {step}) covers them"
    )
