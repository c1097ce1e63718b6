"""Shapes between workloads, drawn in secret: what a dispatch table serves there was run there first."""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.templates.outcome import CheckedShape, Rejected, Stage
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import search_plan
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.checks.extra_cases import judged, size_bytes
from warpsmith.tuning.session.device_session import Case
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.winners.finalists import Finalist, Name, searched_speedups
from warpsmith.tuning.winners.one_timing import timed_once
from warpsmith.tuning.winners.shape_boxes import Box, DispatchRow, Shape, box_of, table_boxes
from warpsmith.tuning.winners.winner_election import Decision, Election

SHAPES = 2
"""Shapes that are drawn in every box."""
MOST_BOXES = 16
"""Limit on the boxes that are looked into; those that hold most come first."""
DRAWS = 64
"""Draws after which a box is taken to hold no further shape."""


@dataclass
class Between:
    """Results on shapes between the workloads of a job, over all rounds of withdrawing winners."""

    job: Job
    election: Election
    baseline: BaselineResult | None
    _looked: dict[tuple[Name, Box], list[CheckedShape]] = field(default_factory=dict)

    def settled(
        self, decided: Mapping[str, Decision], alive: Callable[[], bool]
    ) -> tuple[dict[str, Decision], tuple[CheckedShape, ...]]:
        """Run every server on shapes between its workloads; one that is wrong there gives way to the next.

        Returns:
            The decisions that stand, and the shapes on which their servers were right and faster.
        """
        now = dict(decided)
        if not self.election.base.inputs.defences.between:
            return now, ()
        while True:
            servers, boxes = self._table(now)
            refused: dict[Name, Rejected] = {}
            for number, finalist in enumerate(servers):
                asked = [b for b in boxes if b.server == number and (finalist.name, b) not in self._looked]
                if asked and alive():
                    found = self._look(finalist, asked, boxes)
                    if found is not None:
                        refused[finalist.name] = found
            if not refused:
                asked_of = {(servers[b.server].name, b) for b in boxes if b.server is not None}
                passed = [c for at in asked_of for c in self._looked.get(at, ())]
                return now, tuple(sorted(passed, key=lambda c: sorted(c.dimensions.items())))
            now = self.election.without(now, refused)

    def _table(self, decided: Mapping[str, Decision]) -> tuple[list[Finalist], list[Box]]:
        """The servers, and the boxes of their table, which name them by their places."""
        servers: list[Finalist] = []
        numbers: dict[Name, int] = {}
        rows = []
        for one in decided.values():
            number, speedups = None, dict[str, float]()
            server = one.winner if self.election.checks_all else one.server
            if server is not None and one.comparison is not None:
                number = numbers.setdefault(server.name, len(servers))
                if number == len(servers):
                    servers.append(server)
                speedups = searched_speedups(self.job, server, self.baseline)
                speedups[one.workload.key] = one.comparison.speedup.low
            rows.append(DispatchRow(one.workload.key, self._shape(one.workload), number, speedups))
        # Who is wrong in a box is found even if it gains too little to serve it.
        return servers, table_boxes(rows, widths=None)

    def _look(self, finalist: Finalist, asked: Sequence[Box], boxes: Sequence[Box]) -> Rejected | None:
        """Run a server on secret shapes of its boxes; the first rejection if it is wrong on one."""
        PROGRESS.at("verification: shapes between the workloads")
        most = sorted(asked, key=lambda b: -_room(b))[:MOST_BOXES]
        drawn = {box: self._drawn(finalist, box, boxes) for box in most}
        found = tried(self.election, finalist, [w for shapes in drawn.values() for w in shapes])
        if isinstance(found, Rejected):
            return found
        for box in asked:
            self._looked[finalist.name, box] = [
                CheckedShape(
                    dimensions=w.dimensions,
                    candidate=finalist.candidate,
                    configuration=finalist.configuration,
                    speedup=found[w.key],
                )
                for w in drawn.get(box, ())
                if found.get(w.key, 0.0) > 1.0
            ]
        return None

    def _drawn(self, finalist: Finalist, box: Box, boxes: Sequence[Box]) -> list[Workload]:
        """Shapes about which this box decides, that the server may take, no larger than the job's largest."""
        base, found = self.election.base, dict[str, Workload]()
        inputs, largest = base.inputs, max(size_bytes(base, w) for w in self.job.workloads)
        kernel = finalist.template.configured(finalist.configuration)
        for _ in range(DRAWS):
            shape = _lot(box)
            workload = Workload(dimensions=dict(zip(self._names, shape, strict=True)))
            try:
                if (
                    box_of(shape, boxes) == box
                    and not inputs.is_listed(workload)
                    and inputs.allowed(finalist.template, kernel, [workload])
                    and size_bytes(base, workload) <= largest
                    and not isinstance(size_within_limits(kernel, workload, base.info), Rejected)
                ):
                    found[workload.key] = workload
            except ExpressionError:
                continue
            if len(found) == SHAPES:
                break
        return list(found.values())

    @property
    def _names(self) -> list[str]:
        return sorted(self.job.workloads[0].dimensions)

    def _shape(self, workload: Workload) -> Shape:
        return tuple(workload.dimensions[name] for name in self._names)


def tried(election: Election, finalist: Finalist, shapes: Sequence[Workload]) -> dict[str, float] | Rejected:
    """Speed-ups of a finalist over the user's kernel on other shapes, by their keys.

    Shapes whose reference fails, or that cannot be timed, are left out.

    Returns:
        The first rejection instead if the finalist is wrong on one.
    """
    kernel, compiled = election.binary(finalist)
    if isinstance(compiled, Rejected):
        return compiled
    base, fresh = election.base, election.base.sibling()
    plan = search_plan(election.base.job.objective.cache)
    found: dict[str, float] = {}
    try:
        for shape in shapes:
            try:
                # As a list, so that the check goes on to its end and unloads the kernel.
                result = next((r for _, r in list(judged(fresh, kernel, compiled, [Case(shape)]))), None)
            except KernelRefused:
                if timed_once(base, shape, *election.own, plan) is not None:
                    raise
                continue  # the user's kernel does not run there either
            if isinstance(result, Rejected):
                words = f"between the workloads, at {shape.key}: {result.reason}"[:2000]
                return result.model_copy(update={"reason": words, "workload": shape.key})
            if result is not None:
                own_us = timed_once(base, shape, *election.own, plan)
                best_us = timed_once(fresh, shape, kernel, compiled, plan)
                if own_us and best_us:
                    found[shape.key] = own_us / best_us
            base.release(shape)
            fresh.release(shape)
            base.expected.forget(shape)
    except ChildDied as exc:
        return Rejected(stage=Stage.RUN, reason=f"ended its process between workloads: {exc}")
    except (KernelRefused, ExpressionError) as exc:
        return Rejected(stage=Stage.LAUNCH, reason=str(exc))
    finally:
        fresh.close()
    return found


def _room(box: Box) -> float:
    """Number of shapes in a box, as its logarithm."""
    extents = zip(box.low, box.high, box.multiples, strict=True)
    return sum(math.log((high - low) // multiple + 1) for low, high, multiple in extents)


def _lot(box: Box) -> Shape:
    """A random shape of a box, as divisible as it asks for, each drawn evenly in its logarithm."""
    lots = secrets.SystemRandom()
    shape = []
    for low, high, multiple in zip(box.low, box.high, box.multiples, strict=True):
        drawn = math.exp(lots.uniform(math.log(low), math.log(high)))
        least, most = -(-low // multiple), high // multiple
        shape.append(multiple * min(most, max(least, round(drawn / multiple))))
    return tuple(shape)
