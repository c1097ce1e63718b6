"""The elements of an output that count, and those of a report that are left if the others are left out.

They follow from the plan alone: inputs are drawn here again, and nothing that a kernel could have written is
looked at.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.jobs.compared_elements import MaskPlan, index_names
from warpsmith.domain.jobs.plan import BufferPlan, WorkloadPlan
from warpsmith.errors import ExpressionError
from warpsmith.search.spaces.array_expressions import ArrayWalker
from warpsmith.verify.checked_ranges import sample_ranges
from warpsmith.verify.inputs import draw_buffer
from warpsmith.verify.run_report import Array, Ranges, RunReport

BOX_ELEMENTS = 1 << 20
"""Elements for which a condition is evaluated at once."""
BLOCK_ELEMENTS = 1 << 16
"""Elements of a block of which it is known how many count before it."""
MOST_RANGES = 1024
"""Limit on the ranges of a sample; with more, some elements between those that count are brought back too."""

Bools = NDArray[np.bool_]
Places = NDArray[np.int64]


class ElementMask:
    """The elements of one output that count.

    Args:
        mask: [elements] of the flat output: true of those that count.

    Attributes:
        count: how many there are.
    """

    def __init__(self, mask: Bools) -> None:
        self._mask = mask
        starts = range(0, mask.size, BLOCK_ELEMENTS)
        blocks = [int(np.count_nonzero(mask[at : at + BLOCK_ELEMENTS])) for at in starts]
        self._before = np.concatenate([[0], np.cumsum(blocks, dtype=np.int64)]).astype(np.int64)
        self.count = int(self._before[-1])

    def of(self, values: Array, ranges: Ranges | None = None) -> Array:
        """Select the values of an output that count.

        Args:
            values: the whole output, or what lies in `ranges` of it, joined in order.
        """
        return values[self.at(ranges)]

    def at(self, ranges: Ranges | None = None) -> Bools:
        """Mask over the whole output, or over ranges of it: true of elements that count."""
        if ranges is None:
            return self._mask
        return np.concatenate([self._mask[a:b] for a, b in ranges])

    def places(self, ranges: Ranges | None = None) -> Places:
        """Positions in the whole output of the elements that count, or of those in `ranges`."""
        if ranges is None:
            return np.flatnonzero(self._mask)
        return np.concatenate([a + np.flatnonzero(self._mask[a:b]) for a, b in ranges])

    def within(self, ranges: Ranges) -> Ranges:
        """The ranges of what counts that lie in these ranges of the whole output."""
        return [(self._number_before(a), self._number_before(b)) for a, b in ranges]

    def sample(self, row: int, rng: np.random.Generator, budget: int) -> Ranges:
        """Ranges of the whole output that hold about `budget` elements that count; see `sample_ranges`.

        Args:
            row: extent of the output's fastest dimension.
        """
        if not self.count:
            return [(0, 1)]
        rows = max(1, self._mask.size // max(1, row))
        chosen = sample_ranges(self.count, max(1, self.count // rows), rng, budget)
        return _joined(np.concatenate([self._numbered(a, b) for a, b in chosen]))

    def _number_before(self, at: int) -> int:
        block = at // BLOCK_ELEMENTS
        inside = np.count_nonzero(self._mask[block * BLOCK_ELEMENTS : at])
        return int(self._before[block]) + int(inside)

    def _numbered(self, start: int, stop: int) -> Places:
        """Places of the elements that count, from one number to another."""
        first = int(np.searchsorted(self._before, start, "right")) - 1
        last = int(np.searchsorted(self._before, stop, "left"))
        begin = first * BLOCK_ELEMENTS
        places = begin + np.flatnonzero(self._mask[begin : last * BLOCK_ELEMENTS])
        before = int(self._before[first])
        return places[start - before : stop - before]


def element_masks(plan: WorkloadPlan) -> dict[str, ElementMask]:
    """By name, the outputs of a plan of which not all elements count.

    An element at which the condition has no value, because it divides by zero, counts.

    Raises:
        ExpressionError: a condition compares a word with a number.
    """
    return {b.name: ElementMask(_mask(plan, b, b.kept)) for b in plan.mutated if b.kept is not None}


def counted(outputs: Mapping[str, Array], masks: Mapping[str, ElementMask]) -> Mapping[str, Array]:
    """Whole outputs without the elements that do not count."""
    return {n: masks[n].of(values) if n in masks else values for n, values in outputs.items()}


def counted_ranges(
    ranges: Mapping[str, Ranges] | None, masks: Mapping[str, ElementMask]
) -> Mapping[str, Ranges] | None:
    """Ranges of outputs as ranges of what counts of them."""
    if ranges is None:
        return None
    return {n: masks[n].within(spans) if n in masks else spans for n, spans in ranges.items()}


def counted_report(
    report: RunReport, ranges: Mapping[str, Ranges] | None, masks: Mapping[str, ElementMask]
) -> RunReport:
    """A report without the elements that do not count.

    Args:
        ranges: where the elements lie that were brought back; None: all were.
    """
    if not masks:
        return report
    there: Mapping[str, Ranges] = ranges or {}
    again = report.repeated_ranges

    def left(outputs: Mapping[str, Array], spans: Mapping[str, Ranges]) -> Mapping[str, Array]:
        return {n: masks[n].of(v, spans.get(n)) if n in masks else v for n, v in outputs.items()}

    repeated = None if report.repeated is None else left(report.repeated, {**there, **again})
    ranges_again = counted_ranges(again, masks) or {}
    return replace(
        report, outputs=left(report.outputs, there), repeated=repeated, repeated_ranges=ranges_again
    )


def _mask(plan: WorkloadPlan, output: BufferPlan, condition: MaskPlan) -> Bools:
    shape, rank = output.shape, len(output.shape)
    read = {b.name: b for b in plan.buffers if b.name in condition.inputs}
    inputs = {}
    for name, buffer in read.items():
        drawn = draw_buffer(buffer, plan.seed, plan.variant, plan.family)
        inputs[name] = drawn.reshape(buffer.shape + (1,) * (rank - len(buffer.shape)))
    mask = np.empty(shape, np.bool_)
    for box in _boxes(shape):
        scope: dict[str, Any] = dict(condition.scope)
        for axis, name in enumerate(index_names(rank)):
            along = [1] * rank
            along[axis] = -1
            scope[name] = np.arange(box[axis].start, box[axis].stop).reshape(along)
        for name, values in inputs.items():
            part = tuple(s if e > 1 else slice(None) for s, e in zip(box, values.shape, strict=True))
            scope[name] = values[part].astype(np.int64)
        mask[box] = _holds(condition, scope)
    return mask.reshape(-1)


def _holds(condition: MaskPlan, scope: Mapping[str, Any]) -> Bools:
    walker = ArrayWalker(scope)
    try:
        with np.errstate(all="ignore"):
            holds = np.asarray(walker.visit(condition.expression.tree)).astype(np.bool_)
    except (TypeError, ValueError, OverflowError) as exc:
        raise ExpressionError(condition.expression.text, f"cannot be evaluated: {exc}") from exc
    return holds if walker.suspect is None else np.logical_or(holds, walker.suspect)


def _boxes(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Boxes that cover a shape, of at most `BOX_ELEMENTS` each, and of few only where there are few."""
    axis = next((a for a in range(len(shape)) if math.prod(shape[a + 1 :]) <= BOX_ELEMENTS), 0)
    step = max(1, BOX_ELEMENTS // max(1, math.prod(shape[axis + 1 :])))
    rest = tuple(slice(0, e) for e in shape[axis + 1 :])
    for outer in np.ndindex(shape[:axis]):
        for start in range(0, shape[axis], step):
            stop = min(start + step, shape[axis])
            yield (*(slice(i, i + 1) for i in outer), slice(start, stop), *rest)


def _joined(places: Places) -> Ranges:
    """Ranges that hold these places, which ascend; `MOST_RANGES` of them at most."""
    gaps = np.diff(places)
    cut = np.flatnonzero(gaps > 1)
    if cut.size >= MOST_RANGES:
        widest = np.argpartition(gaps[cut], cut.size - MOST_RANGES + 1)[cut.size - MOST_RANGES + 1 :]
        cut = np.sort(cut[widest])
    starts = places[np.concatenate([[0], cut + 1])]
    stops = places[np.concatenate([cut, [places.size - 1]])] + 1
    return list(zip(starts.tolist(), stops.tolist(), strict=True))
