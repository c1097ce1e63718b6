"""A kernel's text in the usual spelling."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from warpsmith.domain.argument import Role
from warpsmith.domain.expressions import Expression, Value
from warpsmith.errors import ExpressionError
from warpsmith.rewrite.analysis.draft import Draft
from warpsmith.rewrite.form.comparisons import denials, turned, without_equality, without_sign_casts
from warpsmith.rewrite.form.expressions import Spelling
from warpsmith.rewrite.form.loops import (
    bare_blocks,
    counted_whiles,
    own_counters,
    set_in_headers,
    steps_of_blocks,
)
from warpsmith.rewrite.form.places import pointers_written_out, subscripts
from warpsmith.rewrite.form.sums import ordered
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

Habit = Callable[[Spelling], Iterator[Edit]]
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
    counts = frozenset(_counts(draft))
    for _ in range(_MOST_ROUNDS):
        before = draft.kernel.text
        for habit in HABITS:
            edits = list(outermost(habit(Spelling(draft.facts, counts, is_small))))
            after = draft.rewritten(edits) if edits else draft
            draft = after if len(after.kernel.text) <= most else draft
        if draft.kernel.text == before:
            break
    return draft


def _counts(draft: Draft) -> Iterator[str]:
    """The kernel's own names of scalar arguments that are never negative."""
    source = draft.source
    names = [v.name for v in source.variables if v.is_parameter and v.scope == source.kernel]
    for name, argument in zip(names, draft.kernel.arguments, strict=False):
        value = argument.value if argument.role is Role.SCALAR else None
        if value is not None and argument.dtype is not None and not argument.dtype.is_float:
            scopes = ({**w.scope(), **draft.values()} for w in draft.job.workloads)
            if all(_is_count(value, scope) for scope in scopes):
                yield name


def _is_count(value: Expression, scope: Mapping[str, Value]) -> bool:
    try:
        return value.integer(scope) >= 0
    except ExpressionError:
        return False


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


def outermost(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Edits that do not overlap: of two that do the one that begins first, or is longer."""
    end = -1
    for edit in sorted(edits, key=lambda e: (e.start, -e.end)):
        if edit.start >= end:
            yield edit
            end = max(edit.end, edit.start)
