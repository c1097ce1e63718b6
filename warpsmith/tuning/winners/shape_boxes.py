"""Boxes of shapes between workloads, and which configuration may serve the shapes in them.

Two workloads span a box in the space of dimensions, and the smallest box around a shape decides. A
configuration serves the box if it was faster than the baseline by more than `least_speedup` on every
workload in it, and if it was right and faster on a shape that was drawn there in secret; it serves shapes
that are as divisible as those workloads. If a corner of the box is no workload, the configuration must have
been faster by `UNKNOWN_CORNER`, since the shape may be unlike everything measured. The baseline serves all
other shapes: outside of all boxes, between workloads too far apart, or if neighbours disagree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

LEAST_BOX_GAIN = 0.05
"""Least relative gain on every workload of a box. All but one of these figures are unverified ones of the
search."""
UNKNOWN_CORNER = 1.5
"""Least speed-up on every workload of a box that has a corner without a workload."""
NOISES = 2.0
"""Least gain on a noisy workload, in units of its A/A width."""
MOST_STEP = 4.0
"""Ratio between workloads, in any dimension, above which nothing is inferred for shapes between them."""
ALIGNED = 16
"""Power of two beyond which divisibility makes no difference."""

Shape = tuple[int, ...]
"""Extents of a workload, in the order of the dimensions' names."""


@dataclass(frozen=True)
class Box:
    """The shapes between two workloads, both included."""

    low: Shape
    high: Shape
    multiples: Shape
    """Required divisor of each dimension."""
    server: int | None
    """Number of the server; None: the baseline."""

    def holds(self, shape: Shape) -> bool:
        """True if a shape lies in the box."""
        return all(a <= x <= b for a, x, b in zip(self.low, shape, self.high, strict=True))

    def divides(self, shape: Shape) -> bool:
        """True if a shape is as divisible as the workloads."""
        return all(x % m == 0 for x, m in zip(shape, self.multiples, strict=True))


def boxes(
    shapes: Sequence[Shape],
    speedups: Sequence[Sequence[float]],
    least: Sequence[float],
    step: float = MOST_STEP,
    aligned: int = ALIGNED,
    unknown_corner: float = UNKNOWN_CORNER,
) -> list[Box]:
    """Every box that two shapes span, smallest first.

    Args:
        shapes: shapes of the workloads.
        speedups: [servers][workloads], baseline time divided by the configuration's time; 0 if it was not
            timed.
        least: [workloads], speed-ups that a configuration must exceed on the workloads of a box to serve it.
        unknown_corner: the least of these limits if a corner of the box is no workload.
    """
    known = set(shapes)
    found: dict[tuple[Shape, Shape], Box] = {}
    for one, other in combinations(shapes, 2):
        low = tuple(map(min, one, other))
        high = tuple(map(max, one, other))
        if (low, high) in found or any(b > step * a for a, b in zip(low, high, strict=True)):
            continue
        bounds = Box(low, high, low, None)
        inside = [i for i, s in enumerate(shapes) if bounds.holds(s)]
        multiples = tuple(
            low[d] if low[d] == high[d] else min(min(shapes[i][d] & -shapes[i][d], aligned) for i in inside)
            for d in range(len(low))
        )
        complete = known.issuperset(product(*zip(low, high, strict=True)))
        limits = {i: least[i] if complete else max(least[i], unknown_corner) for i in inside}
        able = {
            server: min(own[i] for i in inside)
            for server, own in enumerate(speedups)
            if all(own[i] > limit for i, limit in limits.items())
        }
        best = max(able, key=lambda server: able[server], default=None)
        found[low, high] = Box(low, high, multiples, best)
    return sorted(found.values(), key=lambda b: (_size(b), b.low, b.high))


@dataclass(frozen=True)
class DispatchRow:
    """A workload of a dispatch table."""

    key: str
    shape: Shape
    server: int | None
    """Number of what serves it; None: the baseline."""
    speedups: Mapping[str, float]
    """Speed-ups of its server by workload; those of its own workload are verified."""


def table_boxes(rows: Sequence[DispatchRow], widths: Mapping[str, float] | None) -> list[Box]:
    """The boxes of a dispatch table, smallest first, before any shape in them was looked at.

    Args:
        widths: A/A widths by workload; where one is missing, the largest stands for it. None: no gain is
            asked for, so that a box names whoever is best there.
    """
    servers = max((row.server + 1 for row in rows if row.server is not None), default=0)
    known: list[dict[str, float]] = [{} for _ in range(servers)]
    for row in rows:
        # One configuration may win on several workloads; it was then verified on each.
        for key, speedup in row.speedups.items():
            if row.server is not None and (key == row.key or key not in known[row.server]):
                known[row.server][key] = speedup
    shapes, speedups = [row.shape for row in rows], [[k.get(r.key, 0.0) for r in rows] for k in known]
    if widths is None:
        return boxes(shapes, speedups, [0.0] * len(rows), unknown_corner=0.0)
    largest = max(widths.values(), default=0.0)
    return boxes(shapes, speedups, [least_speedup(widths.get(row.key, largest)) for row in rows])


def confirmed(ordered: Sequence[Box], passed: Sequence[tuple[Shape, int]]) -> list[Box]:
    """The boxes with the baseline wherever no shape inside was passed by their server.

    Args:
        passed: shapes on which a server was right and faster, with its number.
    """
    found = {(box_of(shape, ordered), server) for shape, server in passed}
    return [box if (box, box.server) in found else replace(box, server=None) for box in ordered]


def box_of(shape: Shape, ordered: Sequence[Box]) -> Box | None:
    """The box that decides about a shape; None if none holds it."""
    return next((box for box in ordered if box.holds(shape)), None)


def least_speedup(aa_width: float) -> float:
    """Least speed-up that counts as faster on a workload.

    Args:
        aa_width: the noise of the workload, relative to a time.
    """
    return 1 + max(LEAST_BOX_GAIN, NOISES * aa_width)


def server_of(shape: Shape, ordered: Sequence[Box]) -> int | None:
    """Server of a shape that is no workload, before constraints and limits; None: the baseline."""
    box = box_of(shape, ordered)
    return box.server if box is not None and box.divides(shape) else None


def _size(box: Box) -> float:
    return sum(math.log(b / a) for a, b in zip(box.low, box.high, strict=True))
