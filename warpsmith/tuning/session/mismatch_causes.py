"""Likely causes of a wrong output, for the text of a refusal. Only people read it."""

from dataclasses import dataclass

import numpy as np

from warpsmith.domain.job import Job, Tolerance
from warpsmith.domain.plan import BufferPlan
from warpsmith.verify.compare import ErrorReport, root_mean_square
from warpsmith.verify.run_report import Array, Ranges
from warpsmith.verify.tolerance import passing_atol

UNWRITTEN = "never written"
NEARLY_ALL = 0.9
"""Share of wrong elements above which the declared type is the first suspect."""
SMALL_ERROR = 0.01
"""Error, as a share of the typical element, below which it may be rounding; the message then names a
tolerance."""


@dataclass(frozen=True)
class Mismatch:
    """An output that is wrong."""

    buffer: BufferPlan
    got: Array
    want: Array
    tolerance: Tolerance
    error: ErrorReport
    ranges: Ranges | None
    """Where the compared elements lie; None: all of them are compared."""


def why_wrong(job: Job, mismatch: Mismatch, poison: bytes, *, own: bool) -> str:
    """The reason why an output is refused, and a likely remedy.

    Args:
        poison: the four bytes that filled the output; empty: it was not filled.
        own: True for the user's kernel, whose declaration may be wrong.
    """
    got, error = mismatch.got, mismatch.error
    missing = unwritten(got, mismatch.want, poison, mismatch.ranges)
    if missing.size:
        words = f"{missing.size} of {got.size} elements were {UNWRITTEN}, the first is element {missing[0]}"
        if own:
            words += f"; where {mismatch.buffer.name} keeps what it holds, its role is inout"
        return words if missing.size >= error.wrong else f"{words}; besides, {error.detail}"
    return error.detail + _advice(job, mismatch) if own else error.detail


def unwritten(got: Array, want: Array, poison: bytes, ranges: Ranges | None) -> Array:
    """Indices, in the whole buffer, of elements that still hold the fill bytes."""
    places = np.arange(got.size) if ranges is None else np.concatenate([np.arange(a, b) for a, b in ranges])
    if not poison or not got.size:
        return places[:0]
    width = got.dtype.itemsize
    filled = np.frombuffer(poison * -(-width // len(poison)) * 2, np.uint8)
    phases = np.stack([filled[p : p + width] for p in range(0, max(len(poison), width), width)])
    raw = np.ascontiguousarray(got).view(np.uint8).reshape(-1, width)
    alike: Array = (raw == phases[places % len(phases)]).all(axis=1) & (got != want)
    found: Array = places[alike]
    return found


def _advice(job: Job, mismatch: Mismatch) -> str:
    buffer, tolerance = mismatch.buffer, mismatch.tolerance
    got, want = mismatch.got, mismatch.want
    if not buffer.dtype.is_float:
        return ""
    needed = passing_atol(got, want, tolerance.rtol)
    if needed <= SMALL_ERROR * root_mean_square(want):
        whose = "the job's" if buffer.name in job.tolerances else "the default here"
        return f"; atol {needed:.2g} would pass, {whose} is {tolerance.atol:.2g} (rtol {tolerance.rtol:.2g})"
    if got.size >= 16 and mismatch.error.wrong >= NEARLY_ALL * got.size:
        return f"; nearly all are wrong: is {buffer.name} {buffer.dtype.value} in the source, as declared?"
    return ""
