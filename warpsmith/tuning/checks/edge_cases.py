"""Edge cases to try: small random shapes with values, relations and scalars by lot."""

import math
import random
from collections.abc import Iterator

from warpsmith.domain.jobs.job import NumpyReference, Workload
from warpsmith.domain.jobs.plan import Family
from warpsmith.errors import ExpressionError
from warpsmith.tuning.session.device_session import Case, DeviceSession
from warpsmith.verify.edge_cases import EDGE_CASES, SCALED, SPECIAL, EdgeCase, kind_of

EDGE_CASE_BYTES = 128 << 10
"""Limit on the bytes of all buffers of an edge case's shape. A job that is larger everywhere has none."""
LISTED_BYTES = 1 << 20
"""Limit on the bytes of a listed workload that serves as the shape of an edge case."""
MOST_SHAPES = 24
"""Number of different shapes that edge cases share: some kernels are compiled for their shape at launch."""
SCALED_ELEMENTS = 256
"""Least number of elements of an output whose own size says how large its elements are."""
LARGE = SCALED | SPECIAL
"""Kinds with the larger ones of these shapes: in few elements special values of one input hide another's."""
LOT_BITS = 32
"""Bits of what is drawn by lot with a variant, and so is the same wherever the case is tried."""
_ALIGNED = (1, 1, 4, 16)
_KEPT, _BETWEEN = 0.4, 0.7
_TRIES = 200


def proposed_edge_cases(session: DeviceSession) -> list[Case]:
    """Every edge case, each with a shape by lot; empty if the defence is off or no shape is small enough."""
    if not session.inputs.defences.worlds:
        return []
    shapes = list(_shapes(session, random.SystemRandom()))
    if not shapes:
        return []
    chosen = random.SystemRandom()
    lot = EDGE_CASES * chosen.getrandbits(LOT_BITS)
    wanted = [lot + n for n in range(EDGE_CASES) if _is_told(session, kind_of(n))]
    many = [w for w in shapes if _outputs(session, w) >= SCALED_ELEMENTS]
    return [
        Case(chosen.choice(many if many and kind_of(variant) in LARGE else shapes), Family.EDGE_CASE, variant)
        for variant in wanted
        if many or kind_of(variant) not in SCALED
    ]


def at_listed_shape(session: DeviceSession, missed: list[Case]) -> list[Case]:
    """Moves edge cases to the smallest listed workload, for a kernel that is right on few other shapes."""
    smallest = min(session.job.workloads, key=lambda w: bytes_of(session, w) or math.inf)
    size = bytes_of(session, smallest)
    if size is None or size > LISTED_BYTES:
        return []
    return [Case(smallest, Family.EDGE_CASE, case.variant) for case in missed]


def bytes_of(session: DeviceSession, workload: Workload) -> int | None:
    """Bytes of all buffers of a shape; None if it has none or a buffer would be empty."""
    try:
        plan = session.inputs.plan(workload)
    except ExpressionError:
        return None
    if any(extent < 1 for b in plan.buffers for extent in b.shape):
        return None
    return sum(b.size_bytes for b in plan.buffers)


def _outputs(session: DeviceSession, workload: Workload) -> int:
    """Number of elements of the smallest output."""
    return min((b.elements for b in session.inputs.plan(workload).mutated), default=0)


def _is_told(session: DeviceSession, kind: EdgeCase) -> bool:
    """True if the job has edge cases of a kind: not-a-number and infinity only if it says so, and integers
    beyond the usual only if a reference says where the user's kernel reads beyond its buffers."""
    if kind in SPECIAL:
        return session.job.non_finite
    return isinstance(session.job.reference, NumpyReference) or kind is not EdgeCase.INTEGERS


def _shapes(session: DeviceSession, lots: random.Random) -> Iterator[Workload]:
    kernel = session.inputs.user_template.configured(session.job.space.defaults)
    found: set[str] = set()
    for _ in range(_TRIES):
        shape = _shape(session, lots)
        if shape is None or shape.key in found:
            continue
        try:
            if not session.inputs.allowed(session.inputs.user_template, kernel, [shape]):
                continue
        except ExpressionError:
            continue
        found.add(shape.key)
        yield shape
        if len(found) == MOST_SHAPES:
            return


def _shape(session: DeviceSession, lots: random.Random) -> Workload | None:
    """A shape by lot: some extents of a listed workload, others at random, until it is small enough."""
    listed = dict(lots.choice(session.job.workloads).dimensions)
    drawn = {
        n: extent if lots.random() < _KEPT else _extent(2 * extent, lots) for n, extent in listed.items()
    }
    for _ in range(64):
        workload = Workload(dimensions=drawn)
        size = bytes_of(session, workload)
        if size is None:
            return None
        if size <= EDGE_CASE_BYTES:
            return workload
        above_one = [n for n, extent in drawn.items() if extent > 1]
        if not above_one:  # a table whose size follows from no dimension
            return None
        name = lots.choice(above_one)
        drawn[name] = _extent(max(1, drawn[name] // 2), lots)
    return None


def _extent(most: int, lots: random.Random) -> int:
    extent = round(math.exp(lots.uniform(0.0, math.log(most)))) if most > 1 else 1
    multiple = lots.choice(_ALIGNED)
    return max(1, extent // multiple * multiple)
