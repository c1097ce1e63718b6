"""Placeholder sizes of dimensions that a device has room for."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import Expression
from warpsmith.errors import ExpressionError

_MOST_BYTES = 1 << 27
"""Bytes of all buffers: half of what `validate` launches, so that copies have room as well."""
_SMALLEST = 16
_TURNS = 64


def fitting(
    dimensions: Mapping[str, tuple[str, int]], buffers: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[str, int]]:
    """The dimensions with sizes halved, the largest first, until the buffers fit.

    Args:
        dimensions: name and size, by the argument that holds it.
        buffers: fields of arguments in a job file.
    """
    found = dict(dimensions)
    for _ in range(_TURNS):
        sizes = dict(found.values())
        held = [(_bytes(b, sizes), str(b["shape"])) for b in buffers if isinstance(b.get("shape"), list)]
        if sum(n for n, _ in held) <= _MOST_BYTES:
            break
        words = set(re.findall(r"[A-Za-z_]\w*", max(held)[1]))
        large = [(size, key) for key, (name, size) in found.items() if name in words and size > _SMALLEST]
        if not large:
            break
        size, key = max(large)
        found[key] = (found[key][0], size // 2)
    return found


def above_zero(
    dimensions: Mapping[str, tuple[str, int]], extents: Sequence[str]
) -> dict[str, tuple[str, int]]:
    """The dimensions with one size after the other doubled or halved, until no extent is below 1.

    Args:
        dimensions: see `fitting`.
        extents: of the grid and of buffers, as expressions; those that need more than sizes are left out.
    """
    found = dict(dimensions)
    low = _low(extents, found)
    for _ in range(_TURNS):
        if not low:
            break
        tries = [
            {**found, key: (name, changed)}
            for key, (name, size) in found.items()
            for changed in (size * 2, size // 2)
            if changed >= _SMALLEST
        ]
        best = min(tries, key=lambda t: _low(extents, t), default=found)
        if _low(extents, best) >= low:
            break
        found, low = best, _low(extents, best)
    return found


def _low(extents: Sequence[str], dimensions: Mapping[str, tuple[str, int]]) -> int:
    """Sum over the extents of how far each lies below 1."""
    sizes = dict(dimensions.values())
    below = 0
    for extent in extents:
        try:
            below += max(0, 1 - int(Expression(extent).evaluate(sizes)))
        except ExpressionError:
            continue
    return below


def _bytes(fields: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    try:
        count = 1
        for extent in fields["shape"]:
            count *= int(Expression(str(extent)).evaluate(sizes))
        return count * Dtype(fields["dtype"]).size_bytes
    except (ExpressionError, ValueError):
        return 0
