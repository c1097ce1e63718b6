"""Chooses the configuration of a dispatch table for a shape that is no workload.

Two workloads span a box in the space of dimensions, and the smallest box around a shape decides. A
configuration serves the shape if it was faster than the baseline by more than `least_speedup` on every
workload in that box, and if the shape is as divisible as those workloads. If a corner of the box is no
workload, the configuration must have been faster by `UNKNOWN_CORNER`, since the shape may be unlike
everything measured. The baseline serves all other shapes: outside of all boxes, between workloads too far
apart, or if neighbours disagree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from warpsmith.domain.expressions import Value
from warpsmith.domain.job import Job, Workload
from warpsmith.domain.launch_size import LaunchSize, evaluated, evaluated_launch
from warpsmith.domain.space import Configuration, Constraint, allows
from warpsmith.domain.template import Template
from warpsmith.errors import ExpressionError
from warpsmith.http_models import DispatchEntry, DispatchLaunch, JobResult
from warpsmith.tuning.session.launch_limits import beyond_limits

LEAST_GAIN = 0.05
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
"""One value per dimension, in the order of the names."""


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


def least_speedup(aa_width: float) -> float:
    """Least speed-up that counts as faster on a workload.

    Args:
        aa_width: the noise of the workload, relative to a time.
    """
    return 1 + max(LEAST_GAIN, NOISES * aa_width)


def server_of(shape: Shape, ordered: Sequence[Box]) -> int | None:
    """Server of a shape that is no workload, before constraints and limits; None: the baseline."""
    box = next((b for b in ordered if b.holds(shape)), None)
    return box.server if box is not None and box.divides(shape) else None


def _size(box: Box) -> float:
    return sum(math.log(b / a) for a, b in zip(box.low, box.high, strict=True))


def launches_of(entry: DispatchEntry) -> tuple[DispatchLaunch, ...]:
    """The launches of a sequence, or the only one, which takes all arguments.

    Raises:
        ValueError: an older version wrote the entry, without the launch expressions.
    """
    if entry.launches:
        return entry.launches
    if entry.launch is None:
        raise ValueError("the result does not say what launches are made of; tune the job again")
    only = DispatchLaunch(
        entry=entry.entry,
        arguments=(),
        grid=entry.grid,
        block=entry.block,
        shared_bytes=entry.shared_bytes,
        local_bytes=entry.local_bytes,
        launch=entry.launch,
        local_arguments=entry.local_arguments,
    )
    return (only,)


@dataclass(frozen=True)
class Server:
    """A tuned kernel of the dispatch table, or the user's kernel."""

    entry: DispatchEntry
    configuration: Configuration
    constraints: tuple[Constraint, ...]


class Lookup:
    """The dispatch table of a result, for every shape.

    Raises:
        ValueError: an older version wrote the result, without the launch expressions.
    """

    def __init__(self, result: JobResult) -> None:
        entries = {e.workload: e for e in result.dispatch}
        if result.limits is None or any(e.launch is None for e in result.dispatch):
            raise ValueError("the result does not say what launches are made of; tune the job again")
        self.job: Job = result.job
        self.limits = result.limits
        self.own = Template(kernel=self.job.kernel, space=self.job.space).configured(self.job.space.defaults)
        self.dimensions = tuple(sorted(result.job.workloads[0].dimensions))
        self.servers: list[Server] = []
        self.table: dict[Shape, int | None] = {}
        spaces = {c.id: c.space for c in result.candidates}
        numbers: dict[tuple[str, str], int] = {}
        workloads = [w for w in result.job.workloads if w.key in entries]
        for workload in workloads:
            entry = entries[workload.key]
            number = None
            if entry.candidate is not None and entry.configuration is not None:
                name = (entry.candidate, str(sorted(entry.configuration.items())))
                number = numbers.setdefault(name, len(self.servers))
                if number == len(self.servers):
                    constraints = spaces[entry.candidate].constraints
                    self.servers.append(Server(entry, entry.configuration, constraints))
            self.table[self.shape(workload.dimensions)] = number
        known = self._speedups(workloads, entries)
        keys = [w.key for w in workloads]
        widths = {c.workload: c.aa_width for c in result.comparisons}
        largest = max(widths.values(), default=0.0)
        least = [least_speedup(widths.get(key, largest)) for key in keys]
        self.boxes = boxes(list(self.table), [[k.get(key, 0.0) for key in keys] for k in known], least)

    def _speedups(
        self, workloads: list[Workload], entries: Mapping[str, DispatchEntry]
    ) -> list[dict[str, float]]:
        """Verified speedups of each server by workload.

        One configuration may win on several workloads; it was then verified on each.
        """
        known: list[dict[str, float]] = [{} for _ in self.servers]
        for workload in workloads:
            number = self.table[self.shape(workload.dimensions)]
            for key, speedup in entries[workload.key].speedups.items():
                if number is not None and (key == workload.key or key not in known[number]):
                    known[number][key] = speedup
        return known

    def shape(self, dimensions: Mapping[str, int]) -> Shape:
        """The values of the dimensions, in the order of `dimensions`."""
        return tuple(dimensions[name] for name in self.dimensions)

    def pick(self, dimensions: Mapping[str, int]) -> int | None:
        """Number in `servers` for a shape; None: the baseline."""
        shape = self.shape(dimensions)
        if shape in self.table:
            return self.table[shape]
        number = server_of(shape, self.boxes)
        return number if number is not None and self._fits(number, dimensions) else None

    def size(self, number: int | None, dimensions: Mapping[str, int]) -> LaunchSize:
        """The launches of a server for a shape, as numbers.

        Args:
            number: what `pick` gives.

        Raises:
            ExpressionError: they cannot be evaluated.
        """
        scope = self._scope(number, dimensions)
        if number is None:
            return evaluated(self.own.kernel, scope)
        entry = self.servers[number].entry
        first, *then = (evaluated_launch(s.launch, scope, s.local_arguments) for s in launches_of(entry))
        scratch = tuple(a.bytes_expression.integer(scope) for a in entry.scratch_arguments)
        return replace(first, then=tuple(then), scratch_bytes=scratch)

    def _scope(self, number: int | None, dimensions: Mapping[str, int]) -> dict[str, Value]:
        configuration = self.own.configuration if number is None else self.servers[number].configuration
        return {**self.limits.scope(), **dimensions, **configuration}

    def _fits(self, number: int, dimensions: Mapping[str, int]) -> bool:
        constraints = self.servers[number].constraints
        try:
            if allows(constraints, self._scope(number, dimensions)) is not None:
                return False
            return not beyond_limits(self.size(number, dimensions), self.limits)
        except ExpressionError:
            return False
