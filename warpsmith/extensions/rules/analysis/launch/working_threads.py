"""Threads that a kernel needs, as far as its own checks say: the rest of its launch has no work."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from math import prod

from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.kernels.launch import Launch
from warpsmith.errors import ExpressionError
from warpsmith.extensions.rules.analysis.draft import Draft
from warpsmith.extensions.rules.analysis.indices.index_bounds import bound, guarded
from warpsmith.extensions.rules.analysis.kernel_facts import AXES
from warpsmith.extensions.rules.analysis.threads.places_read import PlacesRead, places_read

SLACK = 1.25
"""Share of the blocks that have work up to which a launch is as its author means it; one block more is
always so, since `n / 128 + 1` is a common way to round up."""

_TURNS = re.compile(r"\batom|\bfetch_|\basm\b|\bvolatile\b|\b__ld(?:acquire|volatile)")


class Counts(Enum):
    """Unit of the limit of an axis."""

    THREADS = auto()
    BLOCKS = auto()
    NOTHING = auto()
    """The kernel never reads its place along the axis, so that all threads along it do the same."""


@dataclass(frozen=True)
class Need:
    """Limit of a kernel along an axis."""

    number: int
    """0 for x."""
    counts: Counts
    limit: str = "1"
    """An expression of the job: threads or blocks from this one on do nothing."""

    @property
    def axis(self) -> str:
        """x, y or z."""
        return AXES[self.number]

    def blocks(self, launch: Launch) -> str:
        """Blocks that would do, as an expression; it may be 0 or less."""
        if self.counts is not Counts.THREADS:
            return self.limit
        return f"ceil_div({self.limit}, {_text(launch.block, self.number)})"


@dataclass(frozen=True)
class LaunchWork:
    """A launch in numbers, against what has work."""

    threads: int
    working: int
    idle_axes: tuple[int, ...]
    """Axes along which there is more than a little too much."""


def needs(draft: Draft) -> tuple[Need, ...] | str:
    """The limits of a kernel along the axes of its launch, or the reason why they are unclear.

    Axes of which nothing is known are left out.

    Raises:
        LookupError: the kernel is not found in its source.
    """
    launch, facts = draft.kernel.launch, draft.facts
    read = places_read(facts)
    if read.unclear:
        return read.unclear
    have = range(max(len(launch.grid), len(launch.block)))
    found = [need for n in have if (need := _need(draft, read, n)) is not None]
    return tuple(found) or "no check at the top of the kernel bounds a thread's index"


def _need(draft: Draft, read: PlacesRead, n: int) -> Need | None:
    axis = AXES[n]
    if not read.along(axis):
        return Need(n, Counts.NOTHING)
    if read.size_of_grid(axis):
        return None
    checks = guarded(draft.facts)
    for counts, place in ((Counts.THREADS, "gid"), (Counts.BLOCKS, "bid")):
        limit = bound(draft.facts, draft.kernel, checks, axis, place)
        if limit is not None:
            return Need(n, counts, tidy(limit))
    return None


def takes_turns(draft: Draft) -> bool:
    """True if a thread may find other work each time that it runs, such as by a counter that all share."""
    return _TURNS.search(places_read(draft.facts).text) is not None


def work(launch: Launch, found: tuple[Need, ...], names: Mapping[str, Value]) -> LaunchWork | None:
    """The threads of a launch and those that have work; None if an extent cannot be evaluated.

    Args:
        names: values of dimensions, parameters and device limits.
    """
    try:
        grid = [Expression(_text(launch.grid, n)).integer(names) for n in range(3)]
        block = [Expression(_text(launch.block, n)).integer(names) for n in range(3)]
        working, idle = [g * b for g, b in zip(grid, block, strict=True)], []
        for need in found:
            n, limit = need.number, max(Expression(need.limit).integer(names), 0)
            if need.counts is Counts.NOTHING:
                working[n] = 1
                idle += [n] if grid[n] * block[n] > 1 else []
                continue
            blocks = max(1, -(-limit // block[n]) if need.counts is Counts.THREADS else limit)
            working[n] = min(working[n], limit if need.counts is Counts.THREADS else limit * block[n])
            idle += [n] if grid[n] > blocks + 1 and grid[n] >= SLACK * blocks else []
    except ExpressionError:
        return None
    return LaunchWork(prod(grid) * prod(block), prod(working), tuple(idle))


def enough(launch: Launch, found: tuple[Need, ...], axes: tuple[int, ...]) -> Launch:
    """The launch that would do, with the axes that have too much made smaller."""
    grid, block = list(launch.grid), list(launch.block)
    for need in found:
        if need.number not in axes:
            continue
        if need.number < len(grid):
            grid[need.number] = Expression(need.blocks(launch))
        if need.counts is Counts.NOTHING and need.number < len(block):
            block[need.number] = Expression(1)
    return launch.model_copy(update={"grid": tuple(grid), "block": tuple(block)})


def too_much(
    draft: Draft, found: tuple[Need, ...], workloads: tuple[Workload, ...], device: Mapping[str, Value]
) -> tuple[Workload, LaunchWork] | None:
    """The first workload whose launch has more than a little too much, and its threads; None without one.

    Args:
        device: its limits by name; empty if none is known.
    """
    for workload in workloads:
        names = {**device, **workload.scope(), **draft.values()}
        counted = work(draft.kernel.launch, found, names)
        if counted is not None and counted.idle_axes:
            return workload, counted
    return None


def tidy(text: str) -> str:
    """An expression of integers without brackets and zeros that change nothing."""
    return ast.unparse(_Zeros().visit(ast.parse(text, mode="eval")))


class _Zeros(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        zero = isinstance(node.right, ast.Constant) and node.right.value == 0
        if zero and isinstance(node.op, ast.Add | ast.Sub):
            return node.left
        return node


def _text(extents: tuple[Expression, ...], n: int) -> str:
    return extents[n].text if n < len(extents) else "1"
