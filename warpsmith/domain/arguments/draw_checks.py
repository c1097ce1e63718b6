"""Checks that a draw can fill a buffer."""

from collections.abc import Mapping
from math import prod

from warpsmith.domain.arguments.draw import ARRANGED, Distribution, Draw, Routing, number_of
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expression_checks import DEVICE_NAMES, check_number
from warpsmith.domain.expressions import Expression, Value
from warpsmith.errors import ExpressionError


def check_draw(
    where: str,
    draw: Draw,
    dtype: Dtype,
    shape: tuple[Expression, ...],
    scope: Mapping[str, Value],
    index: int,
) -> None:
    """Check that a draw fills a buffer of these extents. One that names the device is skipped.

    Raises:
        ValueError: it does not; the message names the field, which begins with `where`.
    """
    bounds = {"low": draw.low, "high": draw.high, "least": draw.least}
    given = {name: bound for name, bound in bounds.items() if isinstance(bound, Expression)}
    for name, bound in given.items():
        check_number(f"{where}.{name}", bound, scope, index)
    if any(e.names & DEVICE_NAMES for e in (*given.values(), *shape)):
        return
    try:
        extents = tuple(e.integer(scope) for e in shape)
        problem = draw_problem(draw.resolved(scope), dtype, extents)
    except ExpressionError as exc:
        raise ValueError(f"{where}: {exc.message} (workload {index})") from exc
    if problem:
        raise ValueError(f"{where}.{problem} (workload {index})")


def draw_problem(draw: Draw, dtype: Dtype, shape: tuple[int, ...]) -> str:
    """Reason why a resolved draw cannot fill a buffer, after the name of the field; empty if it can."""
    if draw.distribution is Distribution.FILE:
        return _file_problem(draw, dtype, shape)
    if draw.distribution not in ARRANGED:
        return ""
    name = draw.distribution.value
    if dtype.is_float or dtype is Dtype.BOOL:
        return f"distribution: {name} gives integers, and the argument is {dtype.value}"
    (low, high), least = draw.range, number_of(draw.least)
    for field, number in (("low", low), ("high", high), ("least", least)):
        if number != int(number):
            return f"{field}: {number:g} is no whole number"
    count = shape[-1] if draw.per_row else prod(shape)
    if draw.routing is not None:
        return _routing_problem(draw.routing, int(high), dtype, count)
    if draw.distribution is Distribution.PERMUTATION:
        return _range_problem(dtype, low, low + count - 1)
    if draw.distribution is Distribution.DISTINCT:
        if high - low < count:
            return f"high: only {max(0, high - low):.0f} integers lie from low to high, for {count} elements"
        return _range_problem(dtype, low, high - 1)
    return _offsets_problem(low, high, least, count) or _range_problem(dtype, low, high)


def _offsets_problem(low: float, high: float, least: float, count: int) -> str:
    if least < 0:
        return "least: must not be negative, as offsets never decrease"
    if high - low < least * (count - 1):
        return f"high: {count - 1} steps of at least {least:.0f} from {low:.0f} end beyond {high:.0f}"
    return "high: a single offset is low and high at once" if count == 1 and high != low else ""


def _routing_problem(routing: Routing, tokens: int, dtype: Dtype, count: int) -> str:
    if tokens < 1:
        return "high: is the number of tokens, at least 1"
    rows = tokens * routing.chosen
    filled = min(routing.experts, rows)
    most = (rows + filled * (routing.block - 1)) // routing.block
    needed = {"rows": most * routing.block, "experts": most, "count": 1}[routing.part]
    if count < needed:
        return f"routing: {needed} elements may be filled; the argument has {count}"
    return _range_problem(dtype, 0, max(rows + routing.experts * (routing.block - 1), routing.experts))


def _range_problem(dtype: Dtype, low: float, high: float) -> str:
    bits = 8 * dtype.size_bytes
    unsigned = dtype.value.startswith("u")
    first, last = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if low < first:
        return f"low: {low:.0f} is below what {dtype.value} holds"
    return f"high: {high:.0f} is beyond what {dtype.value} holds" if high > last else ""


def _file_problem(draw: Draw, dtype: Dtype, shape: tuple[int, ...]) -> str:
    if draw.data is None:
        return ""
    elements = prod(shape)
    if draw.npy.itemsize != dtype.size_bytes or not _alike(draw.npy.kind, dtype):
        return f"file: its elements are {draw.npy.kind}{8 * draw.npy.itemsize}, not {dtype.value}"
    if draw.npy.elements < elements:
        return f"file: has {draw.npy.elements} elements; the argument has {elements}"
    return ""


def _alike(kind: str, dtype: Dtype) -> bool:
    """True if a NumPy kind holds elements of a type; types that NumPy lacks come as raw bits."""
    if dtype in (Dtype.FLOAT16, Dtype.FLOAT32, Dtype.FLOAT64):
        return kind == "float"
    if dtype is Dtype.BOOL:
        return kind in ("bool", "uint")
    if dtype.is_float:
        return kind in ("uint", "void")
    return kind == ("uint" if dtype.value.startswith("u") else "int")
