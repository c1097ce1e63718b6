"""A kernel's text in the usual spelling."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from warpsmith.domain.argument import Role
from warpsmith.errors import ExpressionError
from warpsmith.rewrite.analysis.draft import Draft
from warpsmith.rewrite.form.comparisons import denials, turned, without_equality, without_sign_casts
from warpsmith.rewrite.form.expressions import Edits, Spelling
from warpsmith.rewrite.form.loops import (
    bare_blocks,
    counted_whiles,
    own_counters,
    set_in_headers,
    steps_of_blocks,
)
from warpsmith.rewrite.form.places import pointers_written_out, subscripts
from warpsmith.rewrite.form.sums import bare_operands, ordered
from warpsmith.rewrite.form.updates import shortened
from warpsmith.rewrite.form.values import (
    first_of_block_written_out,
    global_indices,
    named_coordinates,
    narrow_indices,
    needless_casts,
    places_written_out,
    unused_locals,
)
from warpsmith.rewrite.source.syntax_tree import Edit
from warpsmith.rewrite.source.work_limit import spend

Habit = Callable[[Spelling], Iterator[Edits]]
"""Edits that bring one thing into its usual form and keep what the kernel does."""

HABITS: tuple[Habit, ...] = (
    subscripts,
    pointers_written_out,
    denials,
    shortened,
    counted_whiles,
    set_in_headers,
    without_sign_casts,
    turned,
    without_equality,
    own_counters,
    bare_blocks,
    steps_of_blocks,
    needless_casts,
    narrow_indices,
    places_written_out,
    first_of_block_written_out,
    named_coordinates,
    global_indices,
    unused_locals,
    bare_operands,
    ordered,
)
"""Loops have their header before a comparison is turned to its counter."""
_MOST_ROUNDS = 6
_MOST_GROWTH = 3
_MOST_ELEMENTS = 1 << 31
"""Elements from which on the index of one may not fit into an `int`."""


def usually_spelt(draft: Draft) -> Draft:
    """The draft in the usual spelling; the same one if its kernel is spelt so already.

    Each habit proves that its edit keeps the kernel's meaning, and leaves alone what it cannot prove.

    Raises:
        LookupError: the kernel is not found.
    """
    most, is_small = _MOST_GROWTH * len(draft.kernel.text) + 4000, _has_small_buffers(draft)
    least = dict(_least_scalars(draft))
    counts, extents = (frozenset(n for n, value in least.items() if value >= low) for low in (0, 1))
    for _ in range(_MOST_ROUNDS):
        before = draft.kernel.text
        for habit in HABITS:
            edits = apart(habit(Spelling(draft.facts, counts, extents, is_small)))
            after = draft.rewritten(edits) if edits else draft
            draft = after if len(after.kernel.text) <= most else draft
        if draft.kernel.text == before:
            break
    return draft


def _least_scalars(draft: Draft) -> Iterator[tuple[str, int]]:
    """The kernel's own names of whole scalar arguments, with their least value.

    On the workloads, and where every dimension is 1: a template may be asked for other shapes, too.
    """
    source = draft.source
    names = [v.name for v in source.variables if v.is_parameter and v.scope == source.kernel]
    scopes = [w.scope() for w in draft.job.workloads]
    scopes.append(dict.fromkeys(scopes[0], 1))
    for name, argument in zip(names, draft.kernel.arguments, strict=False):
        value = argument.value if argument.role is Role.SCALAR else None
        if value is not None and argument.dtype is not None and not argument.dtype.is_float:
            with suppress(ExpressionError):
                yield name, min(value.integer({**scope, **draft.values()}) for scope in scopes)


def _has_small_buffers(draft: Draft) -> bool:
    """True if an `int` numbers the elements of every buffer."""
    shapes = [a.shape for a in draft.kernel.arguments]
    try:
        return all(
            math.prod(e.integer({**w.scope(), **draft.values()}) for e in shape) < _MOST_ELEMENTS
            for w in draft.job.workloads
            for shape in shapes
        )
    except ExpressionError:
        return False


def apart(found: Iterable[Edits]) -> list[Edit]:
    """Edits of changes that do not meet: of two that do the first; the other comes in the next round."""
    chosen: list[Edit] = []
    for edits in found:
        spend(1 + len(edits) * len(chosen) // 16)
        # What is inserted at one place may stand beside another insertion, in no certain order.
        if not any(e.start <= c.end and c.start <= e.end for e in edits for c in chosen):
            chosen += edits
    return chosen
