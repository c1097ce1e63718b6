"""A kernel's text in the usual spelling."""

import math
from collections.abc import Callable, Iterable, Iterator

from warpsmith.errors import ExpressionError
from warpsmith.rewrite.analysis.draft import Draft
from warpsmith.rewrite.analysis.kernel_facts import Facts
from warpsmith.rewrite.form.comparisons import denials, turned, without_equality
from warpsmith.rewrite.form.loops import counted_whiles, own_counters, set_in_headers, steps_of_blocks
from warpsmith.rewrite.form.places import subscripts
from warpsmith.rewrite.form.sums import ordered
from warpsmith.rewrite.form.updates import shortened
from warpsmith.rewrite.form.values import needless_casts, places_written_out
from warpsmith.rewrite.source.syntax_tree import Edit

Habit = Callable[[Facts], Iterator[Edit]]
"""Edits that bring one thing into its usual form and keep what the kernel does."""

HABITS: tuple[Habit, ...] = (
    subscripts,
    denials,
    shortened,
    counted_whiles,
    set_in_headers,
    turned,
    without_equality,
    own_counters,
    steps_of_blocks,
    needless_casts,
    places_written_out,
    ordered,
)
"""Loops have their header before a comparison is turned to its counter."""
_MOST_ROUNDS = 6
_MOST_ELEMENTS = 1 << 31
"""Elements from which on the index of one may not fit into an `int`."""


def usually_spelt(draft: Draft) -> Draft:
    """The draft in the usual spelling; the same one if its kernel is spelt so already.

    Each habit proves that its edit keeps the kernel's meaning, and leaves alone what it cannot prove.

    Raises:
        LookupError: the kernel is not found.
    """
    habits = [h for h in HABITS if h is not subscripts or _has_small_buffers(draft)]
    for _ in range(_MOST_ROUNDS):
        before = draft.kernel.text
        for habit in habits:
            draft = _with(draft, habit)
        if draft.kernel.text == before:
            break
    return draft


def _with(draft: Draft, habit: Habit) -> Draft:
    edits = list(outermost(habit(draft.facts)))
    return draft.rewritten(edits) if edits else draft


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
