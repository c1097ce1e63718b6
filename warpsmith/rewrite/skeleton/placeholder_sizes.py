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


def _bytes(fields: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    try:
        count = 1
        for extent in fields["shape"]:
            count *= int(Expression(str(extent)).evaluate(sizes))
        return count * Dtype(fields["dtype"]).size_bytes
    except (ExpressionError, ValueError):
        return 0
