"""Likely causes of a wrong output, for the text of a refusal. Only people read it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.jobs.job import Job, NumpyReference, Tolerance
from warpsmith.domain.jobs.plan import BufferPlan
from warpsmith.domain.templates.outcome import WrongElement
from warpsmith.tuning.outputs.unwritten import UNWRITTEN, hidden_unwritten, unwritten
from warpsmith.verify.compare import ErrorReport, passes, root_mean_square
from warpsmith.verify.dtypes import widened
from warpsmith.verify.element_masks import ElementMask
from warpsmith.verify.run_report import Array, Ranges
from warpsmith.verify.tolerance import passing_atol

Wide = NDArray[np.float64]

NEARLY_ALL = 0.9
"""Share of wrong elements above which the declared type is the first suspect."""
FEW = 16
"""Elements below which any relation may be chance."""
RELATED = 0.01
"""Difference, as a share of the typical element, up to which a relation between two results is named."""
SHOWN, NEAR = 4, 4096
"""Limits on the wrong elements that are told one by one, and on how far they lie behind the first."""
SMALL_ERROR = 0.01
"""Error, as a share of the typical element, below which it may be rounding; the message then names a
tolerance."""


@dataclass(frozen=True)
class Mismatch:
    """An output beside what is wanted."""

    buffer: BufferPlan
    got: Array
    want: Array
    tolerance: Tolerance
    error: ErrorReport
    ranges: Ranges | None
    """Element ranges of the output that were brought back; None: all."""
    mask: ElementMask | None = None
    """Mask of the elements that count and are compared; None: all."""

    def hides_unwritten(self, poison: bytes) -> bool:
        """True if elements that the launch never wrote are within the tolerance; see `hidden_unwritten`."""
        return bool(hidden_unwritten(self.got, self.want, self.tolerance, poison, self.places).size)

    def first_few(self) -> list[WrongElement]:
        """The first wrong element and the next few that differ near it."""
        first = self.error.first_wrong
        if first is None:
            return []
        near = slice(first, first + NEAR)
        with np.errstate(all="ignore"):
            apart = np.flatnonzero(self.got[near] != self.want[near])[:SHOWN] + first
        name, places = self.buffer.name, self.places()
        return [
            WrongElement(output=name, element=places[i], got=str(self.got[i]), want=str(self.want[i]))
            for i in apart
            if i == first or not passes(self.got[i : i + 1], self.want[i : i + 1], self.tolerance)
        ]

    def places(self) -> NDArray[np.int64]:
        """Positions of the compared elements in the whole output."""
        if self.mask is not None:
            return self.mask.places(self.ranges)
        if self.ranges is None:
            return np.arange(self.got.size)
        return np.concatenate([np.arange(a, b) for a, b in self.ranges])


def why_wrong(job: Job, mismatch: Mismatch, poison: bytes, *, own: bool) -> str:
    """The reason why an output is refused, and a likely remedy.

    Args:
        poison: the four bytes that filled the output; empty: it was not filled.
        own: True for the user's kernel, whose declaration may be wrong.
    """
    got, error = mismatch.got, mismatch.error
    missing = unwritten(got, mismatch.want, poison, mismatch.places)
    if missing.size:
        words = f"{missing.size} of {got.size} elements were {UNWRITTEN}, the first is element {missing[0]}"
        if own:
            words += f"; where {mismatch.buffer.name} keeps what it holds, its role is inout"
            if mismatch.mask is None:
                words += ", and `kept` says which elements count if nobody reads these"
        return words if missing.size >= error.wrong else f"{words}; besides, {error.detail}"
    detail = error.detail
    if mismatch.mask is not None and error.first_wrong is not None:
        place = int(mismatch.places()[error.first_wrong])
        detail += f" (of those that count, of which this is element {place} of {mismatch.buffer.name})"
    return detail + _advice(job, mismatch) if own else detail


def _advice(job: Job, mismatch: Mismatch) -> str:
    buffer, tolerance = mismatch.buffer, mismatch.tolerance
    got, want = mismatch.got, mismatch.want
    if not buffer.dtype.is_float:
        return ""
    given = isinstance(job.reference, NumpyReference)
    strange = _not_finite(mismatch) if given else ""
    if strange:
        return strange
    needed = passing_atol(got, want, tolerance.rtol)
    if needed <= SMALL_ERROR * root_mean_square(want):
        whose = "the job's" if buffer.name in job.tolerances else "the default here"
        return f"; atol {needed:.2g} would pass, {whose} is {tolerance.atol:.2g} (rtol {tolerance.rtol:.2g})"
    if not given or got.size < FEW or mismatch.error.wrong < NEARLY_ALL * got.size:
        return ""
    related = _factor(mismatch) or _transposed(mismatch)
    if related:
        return f"; {related}: a fault of reference.source or of the kernel"
    return (
        f"; nearly all are wrong: does reference.source compute what the kernel does, and is {buffer.name} "
        f"{buffer.dtype.value} in the source, as declared?"
    )


def _not_finite(mismatch: Mismatch) -> str:
    """Names the side that has NaN or infinities where the other has numbers; empty if neither has."""
    got, want = np.isfinite(_wide(mismatch.got)), np.isfinite(_wide(mismatch.want))
    of_reference, of_kernel = int((got & ~want).sum()), int((want & ~got).sum())
    if not of_reference and not of_kernel:
        return ""
    if of_reference >= of_kernel:
        words = (
            f"; reference.source gives NaN or infinity in {of_reference} of {got.size} elements where the "
        )
        return f"{words}kernel gives numbers: is an input outside its domain, or does it divide by zero?"
    words = f"; the kernel gives NaN or infinity in {of_kernel} of {got.size} elements where reference.source"
    return f"{words} gives numbers: is an input outside its domain, such as a negative one of log or sqrt?"


def _factor(mismatch: Mismatch) -> str:
    """Factor between the result and the reference's, in words; empty if there is none."""
    got, want = _wide(mismatch.got), _wide(mismatch.want)
    with np.errstate(all="ignore"):
        size = float((want * want).sum())
        factor = float((got * want).sum()) / size if size else 0.0
        if factor in (0.0, 1.0) or not _alike(got / factor, want):
            return ""
    inverse = abs(factor) < 1.0
    whole = 1.0 / factor if inverse else factor
    near = round(whole)
    shown = f"{'1/' * inverse}{near}" if abs(whole - near) < RELATED else f"{factor:.4g}"
    return f"the kernel's result is {shown} times the reference's everywhere"


def _transposed(mismatch: Mismatch) -> str:
    """Words for a result that is the reference's with its axes swapped; else empty."""
    shape = mismatch.buffer.shape
    if mismatch.got.size != mismatch.buffer.elements or len(shape) != 2 or min(shape) < 2:
        return ""
    got, want = _wide(mismatch.got), _wide(mismatch.want)
    with np.errstate(all="ignore"):
        for rows, columns in (shape, shape[::-1]):
            if _alike(got, want.reshape(rows, columns).T.ravel()):
                return "the reference's result is the kernel's with its axes swapped"
    return ""


def _alike(got: Wide, want: Wide) -> bool:
    size = root_mean_square(want)
    return size > 0.0 and root_mean_square(got - want) <= RELATED * size


def _wide(values: Array) -> Wide:
    return widened(values)
